"""The pattern of a row of tokens, with names for its variables guessed from what stands beside them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from keystead.inventory.learning.tokens import MARK, is_word
from keystead.inventory.learning.tree import Node
from keystead.inventory.values import refine
from keystead.keys import KINDS

MOST_LISTED = 12  # values of an enumeration that are written out

# Kinds that name themselves, and what they are called.
_OWN_NAMES = {
    "unix_date": "unix_date", "unix_month": "unix_month", "date": "date", "month": "month", "week": "week",
    "time": "time", "unix_time": "unix_time", "unix_ms": "unix_ms", "email": "email", "phone": "phone", "ip": "ip",
    "timezone": "timezone", "domain": "domain", "url": "url",
    "query": "query", "text": "rest", "duration": "period", "boolean": "flag",
    "jwt": "token",
}
_ENDINGS = {"uuid": "_uuid", "sha256": "_sha256", "sha1": "_sha1", "md5": "_md5", "word": ""}
_PERSONAL_KINDS = frozenset(("email", "phone", "ip"))
_LAST_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*(?=[^A-Za-z0-9]*$)")


@dataclass(frozen=True, slots=True)
class Named:
    """``variables`` have kinds in the words of ``keystead.keys``; ``looks`` is what their values look like."""

    pattern: str
    variables: tuple[tuple[str, str], ...]
    looks: tuple[tuple[str, str], ...]
    personal: str  # the variable that names a person, if one does


def name(path: Sequence[tuple[str, Node]]) -> Named:
    """Name the variables of one path through a tree."""
    text, before = "", ""
    variables: dict[str, str] = {}
    looks: list[tuple[str, str]] = []
    personal = ""
    for token, node in path:
        end = 0
        for place, mark in enumerate(MARK.finditer(token)):
            text += token[end : mark.start()]
            before = _noun(token[: mark.start()]) or before
            values = list(node.values[place]) if place < len(node.values) else []
            kind = refine(mark.group(1), values)
            called = _free(_guess(kind, before), variables)
            variables[called] = _declared(kind, values, node.enumerated)
            looks.append((called, _looks(kind, values, node.enumerated)))
            personal = personal or (called if kind in _PERSONAL_KINDS else "")
            text += "{" + called + "}"
            before, end = "", mark.end()
        text += token[end:]
        if is_word(token):
            before = _noun(token) or before
    return Named(text, tuple(variables.items()), tuple(looks), personal)


def _noun(text: str) -> str:
    """The word that a piece of a key ends with, of one thing, in lower case."""
    found = _LAST_WORD.search(text)
    if found is None:
        return ""
    word = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", found.group()).lower().strip("_")
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word


def _guess(kind: str, before: str) -> str:
    if kind in _OWN_NAMES:
        return _OWN_NAMES[kind]
    ending = _ENDINGS.get(kind, "_id")
    if not before:
        return ending.strip("_") or "name"
    return before + ("" if before.endswith(ending) else ending)


def _free(wanted: str, taken: dict[str, str]) -> str:
    if wanted not in taken:
        return wanted
    number = 2
    while f"{wanted}_{number}" in taken:
        number += 1
    return f"{wanted}_{number}"


def _declared(kind: str, values: list[str], enumerated: bool) -> str:
    if enumerated and 1 < len(values) <= MOST_LISTED and not any(set("|:{}") & set(value) for value in values):
        return "|".join(sorted(values))
    if kind == "integer" and any(value.lstrip("-").startswith("0") and value != "0" for value in values):
        return "word"  # a whole number of ``keystead.keys`` has no leading zeros
    if kind in ("time", "url", "query") or any(":" in value for value in values if kind != "ip"):
        return "text"
    return kind if kind in KINDS else "word"


def _looks(kind: str, values: list[str], enumerated: bool) -> str:
    if enumerated:
        return "one of " + ", ".join(sorted(values)[:MOST_LISTED]) + (", …" if len(values) > MOST_LISTED else "")
    return kind

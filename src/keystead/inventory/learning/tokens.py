"""A concrete key as a row of tokens: words as they are, and values by their kind.

A token after the first begins with the separator before it, so a pattern is its tokens joined. What stands for a value
is ``VALUE + kind + END``; a token may be such a value, a word, or a mixture such as ``fair_`` and a number.
"""

import re
from typing import Final, NamedTuple

from keystead.inventory.values import recognise
from keystead.keys import spell_key

VALUE: Final = "\x00"
END: Final = "\x01"
MARK: Final = re.compile("\x00([^\x01]*)\x01")
WORD: Final = "\x00word\x01"
REST: Final = ":\x00text\x01"
SEPARATORS: Final = ":/|."
LONGEST_NAME: Final = 1000
MOST_TOKENS: Final = 16
_BRACKETS: Final = "#{}[]()<>"
_INNER: Final = re.compile(r"([_\-./|#@{}\[\]()=+,;~ ])")
_GLUED: Final = re.compile(r"([A-Za-z_]+?)(\d{3,})")
# Values that hold separators themselves are found before the name is split.
_SPANNING: Final = re.compile(
    r"(?<![^:/|.{}_\-])(?:"
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|(?:19|20)\d\d-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|(?:19|20)\d\d([/.])\d\d\1\d\d"
    r"|\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?"
    r"|[^\s:/|@{}]+@[^\s:/|@{}]+"
    r"|(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Etc|Europe|Indian|Pacific|US)(?:/[A-Z][\w+-]*){1,2}"
    r"|(?:[23fF][0-9a-fA-F]{2,3}:|::(?:1(?![0-9a-fA-F:])|[fF]{4}:))(?::?[0-9a-fA-F]{0,4}){0,8}(?:/\d{1,3})?"
    r")(?![^:/|.{}_\-])"
)
_MAY_SPAN: Final = re.compile(r"[@\-./]|::|(?::[0-9a-fA-F]{1,4}){7}").search
_TELLING: Final = frozenset(("date", "month", "time", "email", "ip", "timezone"))


class Tokens(NamedTuple):
    """``values`` has one tuple for each token: the concrete values that it stands for, in order."""

    tokens: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


def tokens_of(raw_key: bytes) -> Tokens:
    """Any bytes; what is not text is spelled with escapes, and what is too long is cut."""
    try:
        name = raw_key[:LONGEST_NAME].decode()
    except UnicodeDecodeError:
        return _binary(raw_key[:LONGEST_NAME])
    if not name.isprintable():
        return _binary(raw_key[:LONGEST_NAME])
    found: list[str] = []
    if _MAY_SPAN(name) is not None:
        name = _SPANNING.sub(lambda match: _set_aside(match.group(), found), name)
    separator = next((each for each in SEPARATORS if each in name), None)
    segments = name.split(separator) if separator is not None else [name]
    tokens: list[str] = []
    values: list[tuple[str, ...]] = []
    for place, segment in enumerate(segments):
        if place >= MOST_TOKENS:
            tokens.append(REST)
            values.append((":".join(segments[place:]),))
            break
        token, held = _token(segment, [found.pop(0) for _ in MARK.findall(segment)] if VALUE in segment else [])
        tokens.append(separator + token if place and separator is not None else token)
        values.append(held)
    return Tokens(tuple(tokens), tuple(values))


def _binary(raw: bytes) -> Tokens:
    """Segments that are not text are values, whatever they hold; around them the words are kept."""
    tokens: list[str] = []
    values: list[tuple[str, ...]] = []
    for place, segment in enumerate(raw.split(b":", MOST_TOKENS)):
        try:
            text = segment.decode()
        except UnicodeDecodeError:
            text = "\n"
        token, held = _token(text, []) if text.isprintable() else (f"{VALUE}binary{END}", (spell_key(segment),))
        tokens.append(":" + token if place else token)
        values.append(held)
    return Tokens(tuple(tokens), tuple(values))


def _set_aside(text: str, found: list[str]) -> str:
    kind = recognise(text)
    if kind in ("", "token", "number", "hex", "integer"):
        return text
    found.append(text)
    return f"{VALUE}{kind}{END}"


def _token(segment: str, aside: list[str]) -> tuple[str, tuple[str, ...]]:
    """The token of a segment and its values; ``aside`` are those that were found before, marked in it already."""
    if not aside:
        kind = recognise(segment)
        if kind:
            return f"{VALUE}{kind}{END}", (segment,)
        inner = segment.strip(_BRACKETS)
        if 0 < len(inner) < len(segment) and (kind := recognise(inner)):
            return segment.replace(inner, f"{VALUE}{kind}{END}", 1), (inner,)
        return _pieces(segment)
    if MARK.fullmatch(segment):
        return segment, (aside[0],)
    made, values, original, found = "", [], "", iter(aside)
    for place, piece in enumerate(re.split("(\x00[^\x01]*\x01)", segment)):
        if place % 2:
            made += piece
            values.append(next(found))
            original += values[-1]
        else:
            inner, held = _pieces(piece)
            made += inner
            values += held
            original += piece
    return _whole(original, made, tuple(values))


def _pieces(segment: str) -> tuple[str, tuple[str, ...]]:
    """A word, or a mixture of words and values."""
    if segment.isalpha() or not any(map(str.isdigit, segment)):
        return segment, ()
    made, values = "", []
    for piece in _INNER.split(segment):
        glued = _GLUED.fullmatch(piece)
        kind = recognise(piece) if piece else ""
        if kind:
            made += f"{VALUE}{kind}{END}"
            values.append(piece)
        elif glued is not None:
            made += f"{glued.group(1)}{VALUE}integer{END}"
            values.append(glued.group(2))
        else:
            made += piece
    return _whole(segment, made, tuple(values))


def _whole(segment: str, made: str, values: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Several values with nothing but signs between them are one: ``0100018f-…-000000``. Not so dates and addresses."""
    if len(values) > 1 and not any(map(str.isalpha, MARK.sub("", made))) and not _TELLING & set(MARK.findall(made)):
        return f"{VALUE}token{END}", (segment,)
    return made, values


def is_value(token: str) -> bool:
    """Whether a token is one value and nothing else, its separator apart."""
    return MARK.fullmatch(body(token)) is not None


def ends_in_value(token: str) -> bool:
    """Whether nothing but a bracket follows the last value of a token."""
    return token.rpartition(END)[2].strip("}])") == "" and END in token


def is_word(token: str) -> bool:
    return VALUE not in token


def kinds(token: str) -> list[str]:
    return MARK.findall(token)


def body(token: str) -> str:
    """A token without the separator before it."""
    return token[1:] if token[:1] in SEPARATORS and len(token) > 1 else token


def lead(token: str) -> str:
    """The separator before a token; empty for the first."""
    return token[: len(token) - len(body(token))]

"""What kind of value a piece of a concrete key is: a number, an identifier, a date, an address, or just a word.

The answers are the words of ``keystead.keys`` where it has one (``integer``, ``uuid``, ``email``…) and plain ones for
the rest. A word that somebody chose (``pending``, ``user_profile``, ``v2``) has no kind: only how many of them stand in
one place can tell whether they are values.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import ip_address
from string import ascii_lowercase, ascii_uppercase
from typing import Final


def _full(expression: str) -> Callable[[str], object]:
    return re.compile(expression).fullmatch


# Tried one after another, for texts that begin with a digit.
_FROM_DIGIT: Final = tuple((kind, _full(expression)) for kind, expression in (
    ("date", r"(?:19|20)\d\d([-_./])(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])"),
    ("month", r"(?:19|20)\d\d[-_./](?:0[1-9]|1[0-2])"),
    ("week", r"(?:19|20)\d\d[-_]?[Ww](?:0[1-9]|[1-4]\d|5[0-3])"),
    ("time", r"(?:19|20)\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])[T_ -](?:[01]\d|2[0-3])"
             r"(?:[:.-]?[0-5]\d){0,2}(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"),
    ("number", r"\d+\.\d+"),
    ("duration", r"\d+(?:ms|s|secs?|m|mins?|h|hr|hours?|d|days?|w|weeks?|mo|months?|y|years?)"),
    ("ulid", r"[0-7][0-9A-HJKMNP-TV-Z]{25}"),
))
_FROM_SIGN: Final = tuple((kind, _full(expression)) for kind, expression in (
    ("email", r"[^\s:/@{}]{1,128}@[^\s:/@{}]{1,190}"),
    ("query", r"[\w.-]+=[^&=]*(?:&[\w.-]+=[^&=]*)*"),
    ("url", r"[a-z][a-z0-9+.-]*://.+"),
    ("jwt", r"eyJ[\w-]+\.[\w-]+\.[\w-]+"),
    ("domain", r"(?:[a-z0-9][a-z0-9-]{0,62}\.)+"
               r"(?:com|net|org|io|dev|app|co|example|test|local|de|uk|fr|cn|jp|kr)"),
    ("integer", r"-\d{1,20}"),
    ("number", r"-\d+\.\d+"),
    ("phone", r"\+[1-9]\d{7,14}|(?:whatsapp|tel|sms):\+?\d{8,15}"),
))
_UUID: Final = _full(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_DAY: Final = _full(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
_HEX: Final = _full(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{6,}|(?=[A-F]*\d)(?=\d*[A-F])[0-9A-F]{8,}|0x[0-9a-fA-F]+")
_DIGESTS: Final = {24: "object_id", 32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}
_AREAS: Final = frozenset(("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Etc",
                           "Europe", "Indian", "Pacific", "US"))
_WORDS: Final = {"true": "boolean", "false": "boolean", "UTC": "timezone"}
_TOKEN_LETTERS: Final = re.compile(r"[A-Za-z0-9_+=.~-]+").fullmatch
_PREFIXED: Final = re.compile(r"(?:[a-z]{1,12}_){1,3}(?=[^_]*[A-Z0-9])([A-Za-z0-9_-]{8,})").fullmatch
_PLAIN: Final = re.compile(r"[a-z]+(?:[_-][a-z]+)*|[A-Z]+(?:_[A-Z]+)*|[A-Z][a-z]+(?:[A-Z][a-z]+)*").fullmatch
_LONG_SECONDS: Final = 5 * 365 * 86400  # numbers of ten digits further apart are no instants
# Letters of each case, digits and the rest as one sign each, and where one follows another: random text changes often.
_CLASSES: Final = str.maketrans(dict.fromkeys(map(chr, range(128)), "-") | dict.fromkeys("0123456789", "0")
                                | dict.fromkeys(ascii_lowercase, "a") | dict.fromkeys(ascii_uppercase, "A"))
_PLAIN_WORDS: Final = re.compile(r"(?<![A-Za-z0-9])[a-z]{4,}(?![A-Za-z0-9])").findall
_MIXED: Final = re.compile(r"[A-Za-z]\d|\d[A-Za-z]").search
_CAPITALS: Final = re.compile(r"AA+").findall
_CHANGE: Final = re.compile(r"(.)(?!\1)(?=.)").findall


@lru_cache(maxsize=65_536)
def recognise(segment: str) -> str:
    """The kind of a concrete value; empty for a plain word, a slug, or text that could be anything."""
    if segment.isdigit() and segment.isascii():
        return _whole_number(segment)
    if len(segment) < 32 and _PLAIN(segment) is not None:
        return _WORDS.get(segment.lower() if segment != "UTC" else segment, "")
    if len(segment) > 512:
        return "token"
    if _HEX(segment) is not None:
        return _DIGESTS.get(len(segment), "hex")
    if len(segment) == 36 and _UUID(segment) is not None:
        return "uuid"
    if segment[:1].isdigit():
        for kind, fits in _FROM_DIGIT:
            if fits(segment) is not None:
                return kind
    if not segment.isalnum():
        for kind, fits in _FROM_SIGN:
            if fits(segment) is not None:
                return kind
        if _is_ip(segment):
            return "ip"
        area, slash, _ = segment.partition("/")
        if slash and area in _AREAS and segment.count("/") <= 2:
            return "timezone"
    return "token" if _is_token(segment) else ""


def _whole_number(digits: str) -> str:
    if len(digits) in (10, 13) and "12" <= digits[:2] <= "19":
        return "unix_time" if len(digits) == 10 else "unix_ms"
    if len(digits) == 8 and _DAY(digits) is not None:
        return "date"
    return "integer" if len(digits) <= 20 else _DIGESTS.get(len(digits), "token")


def _is_ip(segment: str) -> bool:
    address, slash, bits = segment.partition("/")
    if ("." not in address and ":" not in address) or (slash and not bits.isdigit()):
        return False
    try:
        ip_address(address)
    except ValueError:
        return False
    return True


def _is_token(segment: str) -> bool:
    """A mixture as only a random generator writes it: of some length, and changing between cases and digits."""
    if _TOKEN_LETTERS(segment) is None or len(segment) < 10:
        return False
    prefixed = _PREFIXED(segment)
    body = prefixed.group(1) if prefixed is not None else segment
    if len(body) < 8 or len(_PLAIN_WORDS(segment)) > 1 + (prefixed is not None):
        return False
    letters = body.translate(_CLASSES)
    changes = len(_CHANGE(letters.replace("-", "")))
    if changes >= 0.35 * len(body) and len(body) >= 10 and (len(body) >= 16 or "0" in letters):
        return True
    if len(body) >= 24 and changes >= 6 and "0" in letters:
        return True
    # Names in camel case have single capitals; random letters have rows of them.
    if len(body) >= 16 and changes >= 5 and len(_CAPITALS(letters)) + ("0" in letters) >= 2:
        return True
    pieces = re.split(r"[^A-Za-z0-9]+", body)
    if not any(_MIXED(piece) for piece in pieces):  # words and numbers, side by side
        return False
    longest_word = max(map(len, re.split(r"[^A-Za-z]+", body)))
    return changes >= 2 and longest_word < 8 and len(body) >= (8 if prefixed is not None else 12)


def refine(kind: str, values: Iterable[str]) -> str:
    """The kind of a place, from what was recognised there and some of its values: whole numbers may be days or months.

    Days since 1970 lie between 2008 and 2035, months likewise; a single value, or values spread more widely, stay
    whole numbers.
    """
    if kind not in ("integer", "unix_time"):
        return kind
    numbers = {int(value) for value in values if value.lstrip("-").isdigit() and len(value) < 20}
    if kind == "unix_time":
        return "integer" if numbers and max(numbers) - min(numbers) > _LONG_SECONDS else kind
    if len(numbers) >= 2:
        low, high = min(numbers), max(numbers)
        if low >= 14_000 and high <= 24_000:
            return "unix_date"
        if low >= 460 and high <= 790 and high - low <= 240:
            return "unix_month"
    return kind

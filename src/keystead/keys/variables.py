"""The kinds of value that may stand in a pattern's placeholders.

A kind says which texts it accepts, turns a caller's value into text, and can make samples of itself. Whatever a kind
accepts when a key is written it also recognises when a live key is read, and the other way round: an argument is
never empty, is valid Unicode and holds no control characters.
"""

import random
import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from uuid import UUID

from keystead.errors import DeclarationError

Value = str | int | UUID | IPv4Address | IPv6Address

CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_WORD_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."


class Kind:
    """One kind of placeholder value, defined by a regular expression without groups that capture.

    ``spans_colons`` marks a kind whose values may hold colons, so that it can cover several segments of a key.
    ``characters`` is a regular expression for one character that may occur in a value.
    """

    spans_colons = False

    def __init__(
        self, name: str, expression: str, *, characters: str, says: str, sample: Callable[[random.Random], str]
    ) -> None:
        self.name = name
        self.expression = expression
        self.says = says
        self._full = re.compile(expression).fullmatch
        self._character = re.compile(characters)
        self._sample = sample

    def __repr__(self) -> str:
        return f"<kind {self.name}>"

    def accepts(self, text: str) -> bool:
        """Whether ``text``, already known to hold no control characters, is a value of this kind."""
        return self._full(text) is not None

    def recogniser(self) -> Callable[[str], object]:
        """The same as ``accepts`` in the quickest form: a call whose answer is true or not."""
        return self._full if type(self).accepts is Kind.accepts else self.accepts

    def may_contain(self, character: str) -> bool:
        return self._character.fullmatch(character) is not None

    def to_text(self, value: Value) -> str:
        """The text that goes into a key; whether it is acceptable is for ``accepts`` to say."""
        return value if isinstance(value, str) else str(value)

    def sample(self, rng: random.Random) -> str:
        """Some acceptable value."""
        return self._sample(rng)

    def witnesses(self) -> tuple[str, ...]:
        """A few values, chosen to reveal whether two kinds share any."""
        rng = random.Random(7)
        return tuple(dict.fromkeys(self.sample(rng) for _ in range(12)))


class OneOf(Kind):
    """An enumeration: exactly the values that are listed."""

    def __init__(self, *values: str) -> None:
        if not values:
            raise DeclarationError("an enumeration needs at least one value")
        for value in values:
            if not value or ":" in value or CONTROL.search(value):
                raise DeclarationError(f"enumeration value {value!r} must be text without colons or control characters")
        self.values = values
        letters = "".join(sorted(set("".join(values))))
        super().__init__(
            "one of " + "|".join(values),
            "(?:" + "|".join(re.escape(value) for value in sorted(values, key=len, reverse=True)) + ")",
            characters=f"[{re.escape(letters)}]",
            says="one of " + ", ".join(values),
            sample=lambda rng: rng.choice(values),
        )
        self._values = frozenset(values)

    def accepts(self, text: str) -> bool:
        return text in self._values

    def recogniser(self) -> Callable[[str], object]:
        return self._values.__contains__

    def witnesses(self) -> tuple[str, ...]:
        return self.values


class Matching(Kind):
    """A kind of your own: text without colons that fits a regular expression.

    ``examples`` are used for samples and to find out whether two declarations could own the same key, so give one
    for every shape the expression allows.
    """

    def __init__(self, name: str, expression: str, *, examples: tuple[str, ...], says: str = "") -> None:
        if re.compile(expression).groups:
            raise DeclarationError(f"kind {name}: write groups as (?:...), not (...), in {expression}")
        super().__init__(
            name, expression, characters=r"[^:]", says=says or f"text that fits {expression}",
            sample=lambda rng: rng.choice(examples),
        )
        self.examples = examples
        if not examples:
            raise DeclarationError(f"kind {name} needs examples of its values")
        for example in examples:
            if not self.accepts(example):
                raise DeclarationError(f"kind {name}: its example {example!r} does not fit {expression}")

    def accepts(self, text: str) -> bool:
        return ":" not in text and self._full(text) is not None

    def witnesses(self) -> tuple[str, ...]:
        return self.examples


class _Spanning(Kind):
    spans_colons = True


class _Ip(_Spanning):
    """Addresses of both families in their one usual spelling, so that one address never has two keys.

    Other spellings are brought to it when a key is written; a version 4 address that arrives mapped into version 6
    becomes version 4.
    """

    def accepts(self, text: str) -> bool:
        if self._full(text) is None:
            return False
        if ":" not in text:
            return True
        try:
            address = IPv6Address(text)
        except ValueError:
            return False
        return address.ipv4_mapped is None and str(address) == text

    def to_text(self, value: Value) -> str:
        if isinstance(value, str) and ":" not in value:
            return value
        try:
            address = ip_address(value) if isinstance(value, str) else value
        except ValueError:
            return str(value)
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(address)

    def witnesses(self) -> tuple[str, ...]:
        return ("203.0.113.7", "::1", "2001:db8::7", "2001:db8::1:7", "2001:db8:a::", "2001:db8:a:1:1:1:1:1")


def _word(rng: random.Random, least: int = 1, most: int = 14) -> str:
    return "".join(rng.choices(_WORD_LETTERS, k=rng.randint(least, most)))


def _hex(rng: random.Random, length: int) -> str:
    return "".join(rng.choices("0123456789abcdef", k=length))


def _ip(rng: random.Random) -> str:
    if rng.random() < 0.7:
        return str(IPv4Address(rng.getrandbits(32)))
    return str(IPv6Address((0x20010DB8 << 96) | rng.getrandbits(rng.choice((16, 64, 96)))))


def _utm(rng: random.Random) -> str:
    parts = [f"utm_{name}={_word(rng)}" for name in rng.sample(("campaign", "content", "medium", "source"), k=2)]
    return "&".join(sorted(parts)) + rng.choice(("", f":{_word(rng)}", f"&utm_term=a:b:{rng.randint(1, 9)}"))


_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ZONES = ("America/Los_Angeles", "Etc/GMT+3", "UTC", "America/Argentina/Ushuaia", "Asia/Kolkata", "EST5EDT")

WORD: Final = Kind("word", r"[^:]+", characters=r"[^:]", says="text without colons", sample=_word)
TEXT: Final = _Spanning("text", r".+", characters=r".", says="any text, colons included", sample=_utm)
INTEGER: Final = Kind(
    "integer", r"(?:0|-?[1-9][0-9]*)", characters=r"[-0-9]", says="a whole number without leading zeros",
    sample=lambda rng: str(rng.randint(-3, 10**rng.randint(1, 12))),
)
UNIX_DATE: Final = Kind(
    "unix_date", r"(?:0|[1-9][0-9]{0,5})", characters=r"[0-9]", says="days since 1 January 1970",
    sample=lambda rng: str(rng.randint(18_000, 25_000)),
)
UNIX_MONTH: Final = Kind(
    "unix_month", r"(?:0|[1-9][0-9]{0,4})", characters=r"[0-9]", says="months since January 1970",
    sample=lambda rng: str(rng.randint(600, 900)),
)
USER: Final = Kind(
    "user", r"[^:\s{}]{1,255}", characters=r"[^:\s{}]", says="the identifier of one person",
    sample=lambda rng: f"user_{_word(rng, 8, 22)}",
)
EMAIL: Final = Kind(
    "email", r"[^:\s@{}]{1,128}@[^:\s@{}]{1,190}", characters=r"[^:\s{}]", says="an email address",
    sample=lambda rng: f"{_word(rng, 1, 10)}+tag@{_hex(rng, 6)}.example",
)
IP: Final = _Ip(
    "ip", rf"(?:{_OCTET}(?:\.{_OCTET}){{3}}|[0-9a-fA-F]{{0,4}}:[0-9a-fA-F:.]{{1,42}})",
    characters=r"[0-9a-fA-F:.]", says="an IP address, version 4 or 6", sample=_ip,
)
UUID_KIND: Final = Kind(
    "uuid", r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", characters=r"[-0-9a-fA-F]", says="a UUID",
    sample=lambda rng: str(UUID(int=rng.getrandbits(128), version=4)),
)
SHA256: Final = Kind(
    "sha256", r"[0-9a-f]{64}", characters=r"[0-9a-f]", says="64 hexadecimal digits in lower case",
    sample=lambda rng: _hex(rng, 64),
)
TIMEZONE: Final = Kind(
    "timezone", r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}", characters=r"[A-Za-z0-9_+/-]",
    says="a time zone such as America/Los_Angeles", sample=lambda rng: rng.choice(_ZONES),
)

KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (WORD, TEXT, INTEGER, UNIX_DATE, UNIX_MONTH, USER, EMAIL, IP, UUID_KIND, SHA256, TIMEZONE)
}
_BY_NAME: Final[Mapping[str, Kind]] = {
    "email": EMAIL, "ip": IP, "rest": TEXT, "sha256": SHA256, "sub": USER, "timezone": TIMEZONE, "tz": TIMEZONE,
    "unix_date": UNIX_DATE, "unix_month": UNIX_MONTH, "user_id": USER, "user_sub": USER, "utm": TEXT,
    "uuid": UUID_KIND,
}


def kind_of_name(variable: str) -> Kind:
    """The kind that a placeholder without one of its own gets: by a well-known name, otherwise a plain word."""
    if variable in _BY_NAME:
        return _BY_NAME[variable]
    for ending, kind in (("_uuid", UUID_KIND), ("_sha256", SHA256), ("_unix_date", UNIX_DATE), ("_email", EMAIL)):
        if variable.endswith(ending):
            return kind
    return WORD


def kind_of_text(text: str) -> Kind:
    """The kind that ``{name:text}`` asks for: a known kind, or an enumeration written ``a|b|c``."""
    if text in KINDS:
        return KINDS[text]
    if "|" in text:
        return OneOf(*text.split("|"))
    raise DeclarationError(f"there is no kind {text!r}; known are {', '.join(KINDS)}, or values joined by |")

"""Where the keys stand in a command, so that a cluster client knows which node to ask."""

from dataclasses import dataclass
from typing import Any

from keystead.engine.connection import Reply
from keystead.errors import Invalid


@dataclass(frozen=True, slots=True)
class Spec:
    """One of the server's rules for finding keys: begin at a place or after a word, then a range or a counted row."""

    begin: int
    keyword: str | None
    counted: bool
    first: int  # counted: from the number to the first key
    last: int  # range: from the beginning; negative counts from the end of the command
    step: int
    limit: int  # range to the end: keys fill one part in so many, as in XREAD

    def find(self, words: list[Any]) -> list[Any]:
        start = self.begin if self.keyword is None else self._after_keyword(words)
        if start is None or start >= len(words):
            return []
        if self.counted:
            first = start + self.first
            return words[first : first + int(_raw(words[start])) * self.step : self.step]
        if self.last >= 0:
            return words[start : start + self.last + 1 : self.step]
        end = len(words) + self.last + 1
        if self.limit > 1:
            end = start + (end - start) // self.limit
        return words[start : end : self.step]

    def _after_keyword(self, words: list[Any]) -> int | None:
        places = range(self.begin, len(words)) if self.begin >= 0 else range(len(words) + self.begin, 0, -1)
        for place in places:
            if isinstance(words[place], str | bytes) and _raw(words[place]).upper() == _raw(self.keyword):
                return place + 1
        return None


class KeyPlaces:
    """What the server says of its commands, asked once. A command of two words may be given as one argument or two."""

    def __init__(self, table: Reply) -> None:
        # Hot path: the place of the first key when it is always the same, 0 for a command that never has one.
        self._first: dict[Any, int] = {}
        self._specs: dict[str, list[Spec]] = {}
        self._families: set[str] = set()
        for entry in table:
            self._add(entry)

    def _add(self, entry: Reply) -> None:
        words = entry[0].decode().upper().split("|")
        name = " ".join(words)
        inner = entry[9] if len(entry) > 9 else ()
        specs = [spec for raw in (entry[8] if len(entry) > 8 else ()) if (spec := _spec(_pairs(raw))) is not None]
        self._specs[name] = specs
        if inner:
            self._families.add(name)
        elif len(words) == 1:
            fixed = specs[0].begin if specs and specs[0].keyword is None and not specs[0].counted else None
            if fixed is not None and name != "MIGRATE":
                self._first[name] = self._first[name.lower()] = fixed
            elif not specs:
                self._first[name] = self._first[name.lower()] = 0
        for each in inner:
            self._add(each)

    def first(self, args: tuple[Any, ...]) -> bytes | None:
        """The first key, or ``None`` for a command without keys. All keys of one command share a slot."""
        place = self._first.get(args[0])
        if place is not None:
            if not 0 < place < len(args):
                return None
            key = args[place]
            return key if key.__class__ is bytes else _raw(key)
        keys = self.all(args)
        return keys[0] if keys else None

    def all(self, args: tuple[Any, ...]) -> list[bytes]:
        """Every key of a command, in order. Nothing is found in a command that the server will refuse as malformed."""
        words = [*_raw(args[0]).decode("latin-1").upper().split(), *args[1:]]
        name = words[0]
        if name in self._families and len(words) > 1:
            joined = f"{name} {_raw(words[1]).decode('latin-1').upper()}"
            name = joined if joined in self._specs else name
        specs = self._specs.get(name)
        if specs is None:
            raise Invalid(f"the cluster does not know the command {name}")
        try:
            keys = [_raw(key) for spec in specs for key in spec.find(words)]
        except ValueError:
            return []
        # MIGRATE leaves its single key empty when it names several.
        return [key for key in keys if key] if name == "MIGRATE" else keys


def _spec(raw: dict[bytes, Any]) -> Spec | None:
    begin, find = _pairs(raw[b"begin_search"]), _pairs(raw[b"find_keys"])
    if b"unknown" in (begin[b"type"], find[b"type"]):
        return None
    start, rule = _pairs(begin[b"spec"]), _pairs(find[b"spec"])
    keyword = start.get(b"keyword")
    return Spec(
        begin=int(start[b"index"] if keyword is None else start[b"startfrom"]),
        keyword=None if keyword is None else keyword.decode().upper(),
        counted=find[b"type"] == b"keynum",
        first=int(rule.get(b"firstkey", 0)),
        last=int(rule.get(b"lastkey", 0)),
        step=int(rule[b"keystep"]) or 1,
        limit=int(rule.get(b"limit", 0)),
    )


def _pairs(reply: Any) -> dict[bytes, Any]:
    """A map, as the newer protocol gives it; the older one gives a flat row."""
    return dict(reply) if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


def _raw(key: Any) -> bytes:
    if isinstance(key, bytes):
        return key
    if isinstance(key, str):
        return key.encode()
    return bytes(key) if isinstance(key, bytearray | memoryview) else str(key).encode()

"""Where the keys stand in a command, so that a cluster client knows which node to ask."""

from typing import Any

from keystead.engine.connection import Reply
from keystead.errors import Invalid

# Commands whose keys are counted by an argument: the place of that number.
_COUNTED = {
    "BLMPOP": 2, "BZMPOP": 2, "EVAL": 2, "EVALSHA": 2, "EVALSHA_RO": 2, "EVAL_RO": 2, "FCALL": 2, "FCALL_RO": 2,
    "LMPOP": 1, "SINTERCARD": 1, "ZDIFF": 1, "ZINTER": 1, "ZINTERCARD": 1, "ZMPOP": 1, "ZUNION": 1,
}  # fmt: skip
_STREAMS = frozenset(("XREAD", "XREADGROUP"))


class KeyPlaces:
    """What the server says of its commands, asked once: the place of the first key, the last, and the step."""

    def __init__(self, table: Reply) -> None:
        self._places: dict[str, tuple[int, int, int]] = {}
        for entry in table:
            self._add(entry)

    def _add(self, entry: Reply) -> None:
        words = entry[0].decode().upper().split("|")
        first, last, step = int(entry[3]), int(entry[4]), int(entry[5])
        # redis-py gives a command of two words as one argument, which moves its keys one place to the left.
        shift = len(words) - 1
        self._places[" ".join(words)] = (first - shift if first else 0, last - shift if last > 0 else last, step)
        for inner in entry[9] if len(entry) > 9 else ():
            self._add(inner)

    def first(self, args: tuple[Any, ...]) -> bytes | None:
        """The first key, or ``None`` for a command without keys. All keys of one command share a slot."""
        place = self._places.get(args[0])
        if place is not None and place[0] > 0:
            key = args[place[0]]
            return key if key.__class__ is bytes else _raw(key)
        keys = self.all(args)
        return keys[0] if keys else None

    def all(self, args: tuple[Any, ...]) -> list[bytes]:
        """Every key of a command, in order."""
        name = args[0].upper() if isinstance(args[0], str) else bytes(args[0]).decode("latin-1").upper()
        if name in _COUNTED:
            at = _COUNTED[name]
            return [_raw(key) for key in args[at + 1 : at + 1 + int(args[at])]]
        if name in _STREAMS:
            words = [word.upper() if isinstance(word, str | bytes) else word for word in args]
            at = (words.index("STREAMS") if "STREAMS" in words else words.index(b"STREAMS")) + 1
            return [_raw(key) for key in args[at : at + (len(args) - at) // 2]]
        found = self._places.get(name)
        if found is None and len(args) > 1 and isinstance(args[1], str):
            joined = f"{name} {args[1].upper()}"
            if joined in self._places:
                return self.all((joined, *args[2:]))
        if found is None:
            raise Invalid(f"the cluster does not know the command {name}")
        first, last, step = found
        if first <= 0:
            return []
        end = last + 1 if last >= 0 else len(args) + last + 1
        return [_raw(key) for key in args[first : max(end, first + 1) : step or 1]]


def _raw(key: Any) -> bytes:
    if isinstance(key, bytes):
        return key
    if isinstance(key, str):
        return key.encode()
    return bytes(key) if isinstance(key, bytearray | memoryview) else str(key).encode()

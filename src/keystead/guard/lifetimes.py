"""How long a command lets a key live, read from the command itself."""

import time
from enum import Enum
from typing import Any, Final

from keystead.guard.places import Words, upper, whole


class Life(Enum):
    """What a command says of the end of a key when it gives no time."""

    FOREVER = "forever"  # it leaves the key without an expiry
    AS_IT_WAS = "as it was"  # it keeps the one the key has, or cannot be read


_UNITS: Final = {"EX": 1.0, "PX": 0.001, "EXAT": 1.0, "PXAT": 0.001}
_OF_ITS_OWN: Final = {
    "SETEX": 1.0, "PSETEX": 0.001, "EXPIRE": 1.0, "PEXPIRE": 0.001, "EXPIREAT": 1.0, "PEXPIREAT": 0.001,
}


def lifetime(name: str, words: Words) -> float | Life:
    """Seconds from now, for a command that sets an expiry or makes a key anew."""
    if name == "SET" and len(words) > 4 and words[3] == "EX":  # by far the most frequent
        return _seconds(words[4], 1.0, instant=False)
    if unit := _OF_ITS_OWN.get(name):
        return _seconds(words[2] if len(words) > 2 else None, unit, instant=name.endswith("AT"))
    if name.startswith("RESTORE"):
        given = _seconds(words[2] if len(words) > 2 else None, 0.001, instant="ABSTTL" in map(upper, words[4:]))
        return Life.FOREVER if given == 0 else given
    first = 2 if name == "GETEX" else 3
    if name == "MSETEX":  # the options stand behind the pairs
        first = 2 + 2 * (whole(words[1]) or 0)
    for place in range(first, len(words)):
        word = words[place]
        if type(word) is not str and type(word) is not bytes:
            continue
        option = upper(word)
        if option in _UNITS:
            return _seconds(words[place + 1] if place + 1 < len(words) else None, _UNITS[option],
                            instant=option.endswith("AT"))
        if option == "KEEPTTL":
            return Life.AS_IT_WAS
        if option == "PERSIST":
            return Life.FOREVER
    return Life.AS_IT_WAS if name == "GETEX" else Life.FOREVER


def _seconds(word: Any, unit: float, *, instant: bool) -> float | Life:
    try:
        given = float(word) * unit
    except (TypeError, ValueError):
        return Life.AS_IT_WAS  # the server will refuse it
    return given - time.time() if instant and given else given

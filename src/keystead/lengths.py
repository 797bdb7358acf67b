"""Lengths of time in words."""

from typing import Final

_UNITS: Final = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def in_whole_units(seconds: float) -> str:
    """Exactly, in the largest unit that gives a whole number: ``90 s``, ``30 min``, ``36 h``, ``14 d``, ``250 ms``."""
    for unit, length in _UNITS[:-1]:
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:.0f} {unit}"
    if 0 < seconds < 1 and (seconds * 1000).is_integer():
        return f"{seconds * 1000:.0f} ms"
    return f"{int(seconds) if seconds == seconds // 1 else seconds} s"


def in_one_unit(seconds: float) -> str:
    """About: ``11.6 d``."""
    unit, length = next((each for each in _UNITS if seconds >= 2 * each[1]), _UNITS[-1])
    return f"{seconds / length:.1f}".removesuffix(".0") + f" {unit}"


def in_two_units(seconds: int) -> str:
    """The two largest units that matter: ``3 d 4 h``, ``12 min 5 s``."""
    left, parts = max(0, seconds), list[str]()
    for unit, length in _UNITS:
        amount, left = divmod(left, length)
        if amount:
            parts.append(f"{amount} {unit}")
        if parts and (not amount or len(parts) == 2):
            break
    return " ".join(parts) or "0 s"

"""What somebody's wishes come to on each channel. This is the one place that knows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from keystead.errors import Invalid

EVERY_DAY: Final = 0b1111111
DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
UNSPECIFIED: Final = "unspecified"
MOST_START: Final = 86_400
MOST_END: Final = 172_800

# Seconds after local midnight by preset and channel.
_WRITTEN: Final = {"morning": (21600, 39600), "afternoon": (46800, 57600), "evening": (61200, 68400)}
_TEXTED: Final = {"morning": (28800, 39600), "afternoon": (46800, 57600), "evening": (57600, 61200)}
PRESETS: Final = ("morning", "afternoon", "evening", UNSPECIFIED)
# Whom a channel without a wish of its own asks, most alike first.
_BORROWS: Final = {"email": ("sms", "push"), "sms": ("email", "push"), "push": ("email", "sms")}


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A part of the day: a preset, or from ``start`` to ``end`` in seconds after local midnight."""

    preset: str = ""
    start: int = 0
    end: int = 0

    def __post_init__(self) -> None:
        if self.preset:
            if self.preset not in PRESETS:
                raise Invalid(f"there is no preset {self.preset[:40]!r}; known are {', '.join(PRESETS)}")
        elif not (0 <= self.start < MOST_START and self.start <= self.end < MOST_END):
            raise Invalid(
                f"a range of time starts at 0 to {MOST_START - 1} seconds after midnight, and ends then or later, "
                f"before {MOST_END}; got {self.start} to {self.end}"
            )

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> "TimeRange":
        if stored.get("type") == "preset":
            return cls(str(stored["preset"]))
        return cls("", int(stored["start"]), int(stored["end"]))

    def to_json(self) -> dict[str, object]:
        if self.preset:
            return {"type": "preset", "preset": self.preset}
        return {"type": "explicit", "start": self.start, "end": self.end}

    def shown(self) -> str:
        """As statistics break down by it."""
        return self.preset or f"{self.start}-{self.end}"

    def on(self, channel: str) -> tuple[int, int]:
        """Start and end on a channel: nobody is texted early or late, so presets differ there."""
        if not self.preset:
            return self.start, self.end
        return (_TEXTED if channel == "sms" else _WRITTEN)["morning" if self.preset == UNSPECIFIED else self.preset]


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody said for one channel: on which days (0 for none), and when. ``said_at``: when they last did."""

    mask: int
    range: TimeRange
    said_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Effective:
    """What holds on a channel. ``is_real``: the person said so for this channel, as opposed to a guess."""

    start: int
    end: int
    mask: int
    range: TimeRange
    is_real: bool


def effective(channel: str, wishes: Mapping[str, Wish]) -> Effective:
    """What holds on ``channel``, given what was said for each.

    Without a wish of its own a channel borrows from those that are wanted on some day: one with an explicit time
    before one with a preset, then one with fewer days, then the channel that is most alike. A preset is evaluated anew
    for this channel. With nobody to borrow from it is every morning.
    """
    own = wishes.get(channel)
    wish = own or _borrowed(channel, wishes) or Wish(EVERY_DAY, TimeRange(UNSPECIFIED))
    start, end = wish.range.on(channel)
    return Effective(start, end, wish.mask, wish.range, own is not None)


def _borrowed(channel: str, wishes: Mapping[str, Wish]) -> Wish | None:
    others = [other for other in _BORROWS[channel] if other in wishes and wishes[other].mask]
    chosen = min(
        others, default=None, key=lambda other: (
            bool(wishes[other].range.preset), wishes[other].mask.bit_count(), _BORROWS[channel].index(other)
        ),
    )
    return None if chosen is None else wishes[chosen]


def mask_of(days: list[str]) -> int:
    """The mask of days by name; bit 0 is Sunday."""
    return sum(1 << DAYS.index(day) for day in set(days))


def days_of(mask: int) -> list[str]:
    """The names of the days in a mask."""
    return [day for place, day in enumerate(DAYS) if mask >> place & 1]

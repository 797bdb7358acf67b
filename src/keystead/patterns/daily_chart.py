"""What a family is asked for again and again: whole days of it as one compressed answer, held by every process."""

from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from keystead import dates
from keystead.dates import UnixDate
from keystead.keys import Frame, Integer, Keyspace, Rest, Sized, Undecodable
from keystead.keys.frames import Trailing
from keystead.patterns.cache import Cache
from keystead.patterns.cache_frames import Push, PushCodec
from keystead.patterns.facts import PatternFacts

# A day of 25 hours, and some: no answer lives past the next midnight, which whoever fills it knows.
LONGEST_SECONDS: Final = 26 * 3600.0
LOCK_SECONDS: Final = 10.0
_LAST_DAY: Final = 999_999


@dataclass(frozen=True, slots=True)
class DayPush:
    """The frame of an answer about one day."""

    unix_date: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class DaysPush:
    """The frame of a family's channel: days from ``start_unix_date`` to before ``end_unix_date``, gzip."""

    start_unix_date: int
    end_unix_date: int
    raw: bytes


def _pack(push: Push) -> DaysPush:
    start, end = (int(push.arguments[name]) for name in ("start_unix_date", "end_unix_date"))
    return DaysPush(start, end, push.raw or b"")


def days_pushes(home: ZoneInfo, held_days: int) -> PushCodec[DaysPush]:
    """u32 first day, u32 day after the last, u64 length, gzip; what follows is ignored. There are no purges.

    The range says on which day it was asked for, and so when it ends: at the next midnight in ``home``.
    """

    def unpack(frame: DaysPush) -> Push:
        arguments = {"start_unix_date": str(frame.start_unix_date), "end_unix_date": str(frame.end_unix_date)}
        if not frame.start_unix_date < frame.end_unix_date <= _LAST_DAY:
            raise Undecodable("the days of a push are not a range")
        return Push(arguments, frame.raw, until=dates.day_starts_at(UnixDate(frame.end_unix_date + held_days), home))

    parts = (Integer("start_unix_date", "u32"), Integer("end_unix_date", "u32"), Sized("raw", "u64", bytes))
    frame = Frame(DaysPush, *parts, trailing=Trailing.IGNORED)
    return PushCodec(frame, pack=_pack, unpack=unpack, purges=False)


def days_cache(
    keyspace: Keyspace, prefix: str, channel: str, home: ZoneInfo, held_days: int, facts: PatternFacts
) -> Cache[bytes]:
    """Answers ``{prefix}:{start_unix_date}:{end_unix_date}``, computed by one process and pushed to all."""
    pattern = f"{prefix}:{{start_unix_date}}:{{end_unix_date}}"
    return Cache(
        keyspace, pattern, bytes, local_seconds=LONGEST_SECONDS, channel=channel,
        frame=days_pushes(home, held_days), lock_seconds=LOCK_SECONDS, **facts,
    )


def day_pushes(home: ZoneInfo) -> PushCodec[DayPush]:
    """u32 day, then the answer to the end. It ends at the midnight after its day. There are no purges."""

    def pack(push: Push) -> DayPush:
        return DayPush(int(push.arguments["unix_date"]), push.raw or b"")

    def unpack(frame: DayPush) -> Push:
        if frame.unix_date > _LAST_DAY:
            raise Undecodable("the day of a push is none")
        until = dates.day_starts_at(UnixDate(frame.unix_date + 1), home)
        return Push({"unix_date": str(frame.unix_date)}, frame.raw, until=until)

    frame = Frame(DayPush, Integer("unix_date", "u32"), Rest("raw", bytes))
    return PushCodec(frame, pack=pack, unpack=unpack, purges=False)


def day_cache(keyspace: Keyspace, prefix: str, channel: str, home: ZoneInfo, facts: PatternFacts) -> Cache[bytes]:
    """Answers ``{prefix}:{unix_date}``, computed by one process and pushed to all."""
    facts = {**facts, "personal": False, "kinds": None}  # how many, not who
    return Cache(
        keyspace, f"{prefix}:{{unix_date}}", bytes, local_seconds=LONGEST_SECONDS, channel=channel,
        frame=day_pushes(home), lock_seconds=LOCK_SECONDS, **facts,
    )

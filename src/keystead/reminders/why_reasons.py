"""Why somebody gets no reminder on a channel today: from facts to reasons, in the order in which a reminder meets
them. Nothing is read here."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from zoneinfo import ZoneInfo

from keystead.dates import UnixDate, day_starts_at, unix_date_to_date
from keystead.messaging.sending import Standing
from keystead.messaging.touches import PastTouch
from keystead.reminders.effective import DAYS, Effective, days_of
from keystead.settings import MessagingSettings, RemindersSettings

Tone = Literal["stops", "waits", "fine"]

# After its window a reminder is worth sending for so long; the sender and the assigner hold to it.
LATE_SECONDS: Final = 3600.0
_SPARED: Final = {
    "daily_cap": "the person had got as many messages that day as one may get",
    "quiet_hours": "it was night where they are, and people are left alone then",
    "same_content": "they had been told the same words just before",
    "erased": "they were being erased",
    "": "no address could be written to at that moment",
}
_KINDS: Final = {"email": ("email address", "email addresses"), "sms": ("phone number", "phone numbers"),
                 "push": ("device", "devices")}
_PROVIDERS: Final = {"open": "the provider fails, so nothing is asked of it now (its breaker is open)",
                     "probing": "the provider failed, and one call is finding out whether it works again"}


@dataclass(frozen=True, slots=True)
class Reason:
    """``stops``: no reminder comes because of it. ``waits``: it may still come. ``fine``: it came."""

    code: str
    says: str
    tone: Tone = "stops"


@dataclass(frozen=True, slots=True)
class PersonSeen:
    """Who it is about, on which of their days. ``joined_at``: when they came to be."""

    now: float
    day: UnixDate
    zone: ZoneInfo
    joined_at: float
    erased: bool = False

    @property
    def midnight(self) -> float:
        return day_starts_at(self.day, self.zone)

    def clock(self, at: float) -> str:
        """A moment as their clock shows it, with the day where it is another."""
        local = datetime.fromtimestamp(at, self.zone)
        shown = local.strftime("%H:%M")
        return shown if local.date() == unix_date_to_date(self.day) else f"{shown} on {local.strftime('%A, %d %B')}"


@dataclass(frozen=True, slots=True)
class Addresses:
    """How many ways there are to reach them on a channel, and what is wrong with those that are not used."""

    known: int = 0
    usable: int = 0
    unverified: int = 0
    turned_off: int = 0
    suppressed: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """The reminder itself; start and end in seconds after local midnight."""

    uid: str
    start_time: int
    end_time: int
    day_of_week_mask: int
    created_at: float


@dataclass(frozen=True, slots=True)
class ChannelSeen:
    """All that decides about one channel. ``due_at``: the time that was chosen; ``dealt_with``: the sender had it in
    hand that day; ``touch``: what it became; ``told_today``: messages to them on this channel in this day."""

    channel: str
    addresses: Addresses
    wish: Effective
    said_at: float | None
    row: Row | None
    due_at: float | None
    dealt_with: bool
    touch: PastTouch | None
    told_today: int
    standing: Standing


def reasons(
    person: PersonSeen, seen: ChannelSeen, reminders: RemindersSettings, messaging: MessagingSettings
) -> tuple[Reason, ...]:
    """Why, first things first. The first is what to look at; those after it may matter once it is mended."""
    if seen.dealt_with:
        return _dealt_with(person, seen)
    found: list[Reason] = []
    if person.erased:
        found.append(Reason("erased", "they were erased, and nothing is sent to them any more"))
    if not seen.addresses.usable:
        found.append(_unreachable(seen.channel, seen.addresses))
    if not seen.wish.mask:
        when = f" since {person.clock(seen.said_at)}" if seen.said_at is not None else ""
        found.append(Reason("settings_off", f"their settings say no reminders on this channel{when}"))
    if found:
        return tuple(found)
    if seen.row is None:
        return (Reason("not_derived", "they can be reached and want reminders, but the reminder is not written yet; a "
                       "job does that within seconds, so look whether jobs run", "waits"),)
    timing = _timing(person, seen, seen.row, reminders)
    return (*timing, *_in_the_way(seen, messaging))


def _unreachable(channel: str, addresses: Addresses) -> Reason:
    one, many = _KINDS[channel]
    if not addresses.known:
        return Reason("no_contact", f"they gave no {one}")
    said = [f"{count} {words}" for count, words in (
        (addresses.suppressed, "suppressed: it bounced, complained or said stop"),
        (addresses.unverified, "not verified"), (addresses.turned_off, "turned off"),
    ) if count]
    code = "suppressed" if addresses.suppressed else "not_verified" if addresses.unverified else "turned_off"
    return Reason(code, f"none of their {addresses.known} {one if addresses.known == 1 else many} may be written to "
                        f"({', '.join(said)})")


def _dealt_with(person: PersonSeen, seen: ChannelSeen) -> tuple[Reason, ...]:
    touch = seen.touch
    if touch is None:
        return (Reason("skipped", "it was in the sender's hands that day, and no message came of it: its time was over "
                       "for more than an hour, or the record of it is not written yet"),)
    at = person.clock(touch.at)
    if touch.status == "arrived":
        return (Reason("already_sent", f"it was sent at {at} and arrived", "fine"),)
    if touch.status == "unreachable":
        return (Reason(touch.reason or "unreachable", f"it was dropped at {at}: "
                       f"{_SPARED.get(touch.reason, touch.reason.replace('_', ' '))}"),)
    why = f": {touch.reason.replace('_', ' ')}" if touch.reason else ""
    if touch.status in ("queued", "on its way", "tried again"):
        first = Reason("on_its_way", f"it left at {at}; {_WAITING[touch.status]}{why}", "waits")
        return (first, *_standing(seen.standing))
    return (Reason(touch.status.replace(" ", "_"), f"it was sent at {at} and did not arrive ({touch.status}){why}"),)


_WAITING: Final = {
    "queued": "it waits to be sent", "on its way": "the provider has it, and has not said whether it arrived",
    "tried again": "it failed and is tried again",
}


def _timing(
    person: PersonSeen, seen: ChannelSeen, row: Row, settings: RemindersSettings
) -> tuple[Reason, ...]:
    start, end = person.midnight + row.start_time, person.midnight + row.end_time
    window = f"{person.clock(start)} to {person.clock(end)}"
    weekday = (unix_date_to_date(person.day).weekday() + 1) % 7
    if not row.day_of_week_mask >> weekday & 1:
        return (Reason("not_today", f"they do not want one on {DAYS[weekday]}s; their days are "
                       f"{', '.join(days_of(row.day_of_week_mask))}"),)
    old_enough_at = person.joined_at + settings.youngest_seconds
    if seen.due_at is None and person.joined_at > end:
        return (Reason("came_too_late", f"their window ({window}) was over when they joined, at "
                       f"{person.clock(person.joined_at)}"),)
    if seen.due_at is None and old_enough_at > min(person.now, end):
        return (Reason("joined_too_recently", f"they joined at {person.clock(person.joined_at)}; reminders begin "
                       f"{settings.youngest_seconds / 3600:g} hours later, at {person.clock(old_enough_at)}"),)
    if seen.due_at is not None:
        if seen.due_at > person.now:
            return (Reason("not_yet_due", f"it is to be sent at {person.clock(seen.due_at)}, a moment in their window "
                           f"({window})", "waits"),)
        return (Reason("late", f"it was due at {person.clock(seen.due_at)} and is not sent yet: the sender is behind, "
                       "does not run, or the queue of touches is full", "waits"),)
    if person.now < start - settings.horizon_seconds:
        return (Reason("not_yet_due", f"their window opens at {person.clock(start)} ({window}); a time in it is chosen "
                       f"{settings.horizon_seconds // 60} minutes before", "waits"),)
    if person.now <= end + LATE_SECONDS:
        return (Reason("time_not_chosen", f"their window is {window}, and nobody has chosen a time in it yet: that is "
                       "done every quarter of a minute, so look whether jobs run", "waits"),)
    if row.created_at > end:
        return (Reason("came_too_late", f"their window ({window}) was over when they could be reached, at "
                       f"{person.clock(row.created_at)}"),)
    return (Reason("missed", f"their window ({window}) went by and nobody chose a time: nothing ran then, or too many "
                   "reminders waited"),)


def _in_the_way(seen: ChannelSeen, messaging: MessagingSettings) -> tuple[Reason, ...]:
    """What would stop it when its time comes."""
    most = messaging.person_day_messages
    capped = (Reason("daily_cap", f"they got {seen.told_today} messages on this channel today, and {most} is the most"),
              ) if most and seen.told_today >= most else ()
    return (*capped, *_standing(seen.standing))


def _standing(stands: Standing) -> tuple[Reason, ...]:
    found: list[Reason] = []
    if stands.is_held:
        found.append(Reason("channel_paused", "the channel is paused by somebody: it sends nothing until it is resumed",
                            "waits"))
    elif stands.paused:
        found.append(Reason("provider_rests", "the provider asked for a rest of "
                            f"{stands.paused_seconds or 0:.0f} seconds more", "waits"))
    if stands.breaker != "closed":
        found.append(Reason("channel_breaker", f"{_PROVIDERS[stands.breaker]}: {stands.failed} of the last "
                            f"{stands.calls} calls failed", "waits"))
    return tuple(found)

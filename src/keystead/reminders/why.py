"""Why did this person get no reminder? Everything that decides about it is read, and told in order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select

from keystead.clock import Clock, real
from keystead.dates import UnixDate, unix_date
from keystead.engine import Valkey
from keystead.errors import Invalid, NotFound
from keystead.ids import UserSub
from keystead.members import Contact, Contacts, zone_of
from keystead.members.tables import USERS
from keystead.messaging.email.keys import SENDING as EMAIL
from keystead.messaging.push.keys import SENDING as PUSH
from keystead.messaging.sending import Channel, standing
from keystead.messaging.sms.keys import SENDING as SMS
from keystead.messaging.touches import History, PastTouch
from keystead.messaging.touches.keys import DAY_COUNT, ERASED
from keystead.reminders.effective import Wish, effective
from keystead.reminders.keys import QUEUED, SENT
from keystead.reminders.models import DueReminder
from keystead.reminders.rows import wishes_of
from keystead.reminders.sender import touch_uid
from keystead.reminders.tables import REMINDERS
from keystead.reminders.why_reasons import Addresses, ChannelSeen, PersonSeen, Reason, Row, Tone, reasons
from keystead.settings import MessagingSettings, RemindersSettings
from keystead.store import Database

# What was dealt with on a day is remembered for a little longer than this.
MOST_DAYS_BACK: Final = 3
MOST_TOUCHES: Final = 200
SENDING: Final[Mapping[str, Channel[Any]]] = {"email": EMAIL, "sms": SMS, "push": PUSH}
_NAMES: Final = {"email": "email", "sms": "text", "push": "push"}
_TONES: Final[tuple[Tone, ...]] = ("fine", "waits", "stops")


@dataclass(frozen=True, slots=True)
class ChannelWhy:
    """One channel: ``reasons`` is never empty, and its first is what to look at. ``touch_uid``: the message, if there
    is one."""

    channel: str
    reasons: tuple[Reason, ...]
    touch_uid: str = ""

    @property
    def tone(self) -> Tone:
        return self.reasons[0].tone


@dataclass(frozen=True, slots=True)
class Why:
    """The whole answer, about one day of the person. The channel that came furthest is first."""

    sub: UserSub
    day: UnixDate
    timezone: str
    joined_at: float
    channels: tuple[ChannelWhy, ...]

    @property
    def answer(self) -> str:
        """In one sentence."""
        first = self.channels[0]
        said, name = first.reasons[0].says, _NAMES[first.channel]
        if first.tone == "fine":
            return f"They did get one, by {name}: {said}."
        if first.tone == "waits":
            return f"It may still come, by {name}: {said}."
        others = {each.reasons[0].code for each in self.channels}
        if others == {"no_contact"}:
            return "They cannot be reached: they gave no email address, no phone number and no device."
        if others == {"settings_off"}:
            return "They want none: their settings say no reminders on any channel."
        return "None comes. " + " ".join(
            f"{_NAMES[each.channel].capitalize()}: {each.reasons[0].says}." for each in self.channels)


class Explaining:
    """Looks. Nothing is changed, and the breaker of a channel is not asked."""

    def __init__(
        self, valkey: Valkey, database: Database, clock: Clock, contacts: Contacts, history: History,
        reminders: RemindersSettings, messaging: MessagingSettings,
    ) -> None:
        self._valkey, self._database, self._clock = valkey, database, clock
        self._contacts, self._history = contacts, history
        self._reminders, self._messaging = reminders, messaging

    async def why(self, sub: UserSub, *, days_back: int = 0) -> Why:
        """The answer for today where the person is, or for one of the days before. ``NotFound`` without the person."""
        if not 0 <= days_back <= MOST_DAYS_BACK:
            raise Invalid(f"what was sent is remembered for {MOST_DAYS_BACK} days before today, not {days_back}")
        now, rows = self._clock.now(), REMINDERS.c
        async with self._database.reading() as sql:
            found = (await sql.execute(
                select(USERS.c.id, USERS.c.timezone, USERS.c.created_at).where(USERS.c.sub == sub))).first()
            if found is None:
                raise NotFound("there is no such person")
            user, said_zone, joined_at = found
            wishes = (await wishes_of(sql, [user])).get(user, {})
            reminders = {channel: Row(*rest) for channel, *rest in await sql.execute(select(
                rows.channel, rows.uid, rows.start_time, rows.end_time, rows.day_of_week_mask, rows.created_at,
            ).where(rows.user_id == user))}
        zone = zone_of(said_zone)
        day = UnixDate(unix_date(now, zone) - days_back)
        lane = self._valkey.lane_for(sub)
        person = PersonSeen(now, day, zone, joined_at, await ERASED.at(sub).is_raised(lane))
        addresses = await self._addresses(sub)
        sent = {channel for channel, row in reminders.items() if await SENT.at(day).contains(self._valkey, row.uid)}
        touches = {touch.uid: touch for touch in await self._history.of(sub, most=MOST_TOUCHES)} if sent else {}
        channels = [await self._channel(person, sub, channel, addresses[channel], wishes, reminders.get(channel),
                                        channel in sent, touches) for channel in SENDING]
        order = sorted(channels, key=lambda each: _TONES.index(each.tone))
        return Why(sub, day, zone.key, joined_at, tuple(order))

    async def _channel(
        self, person: PersonSeen, sub: UserSub, channel: str, addresses: Addresses, wishes: Mapping[str, Wish],
        row: Row | None, dealt_with: bool, touches: Mapping[str, PastTouch],
    ) -> ChannelWhy:
        lane, due_at, touch = self._valkey.lane_for(sub), None, None
        if row is not None:
            due = DueReminder(row.uid, person.day)
            due_at = await QUEUED.due_at(self._valkey, due)
            touch = touches.get(touch_uid(due))
        own = wishes.get(channel)
        seen = ChannelSeen(
            channel, addresses, effective(channel, wishes), None if own is None else own.said_at, row, due_at,
            dealt_with, touch, await DAY_COUNT.at(sub, channel, person.day).get(lane) or 0,
            await standing(lane, SENDING[channel], real(self._clock).now()),
        )
        found = reasons(person, seen, self._reminders, self._messaging)
        return ChannelWhy(channel, found, touch.uid if touch is not None else "")

    async def _addresses(self, sub: UserSub) -> dict[str, Addresses]:
        devices = await self._contacts.listed_devices(sub)
        receiving = sum(device.receives_notifications for device in devices)
        return {
            "email": _counted(await self._contacts.listed_emails(sub)),
            "sms": _counted(await self._contacts.listed_phones(sub)),
            "push": Addresses(len(devices), receiving, 0, len(devices) - receiving),
        }


def _counted(contacts: Sequence[Contact]) -> Addresses:
    return Addresses(
        len(contacts), sum(each.usable for each in contacts), sum(not each.verified for each in contacts),
        sum(not each.receives_notifications for each in contacts), sum(each.suppressed for each in contacts),
    )

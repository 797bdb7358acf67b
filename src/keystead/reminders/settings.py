"""What people wish: on which days and when they are reminded, channel by channel; and whether to ask them again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Invalid, NotFound
from keystead.ids import UserSub, new_uid
from keystead.members import Timezones, checked_zone, find_person, lock_people, reachable, store_zone
from keystead.members.tables import USERS
from keystead.reminders.effective import EVERY_DAY, Effective, TimeRange, Wish, effective
from keystead.reminders.keys import CHANNELS, IMPROVED_AT
from keystead.reminders.rows import Rows, wishes_of
from keystead.reminders.tables import REMINDERS, SETTINGS, SETTINGS_LOG
from keystead.store import Database, Query, SqlOutbox

ALL: Final = "all"
UPDATED: Final = "update_notification_time"
# A person without reminders is one row of nothing.
_OF_PERSON: Final = Query(select(
    REMINDERS.c.uid, REMINDERS.c.channel, REMINDERS.c.start_time, REMINDERS.c.end_time, REMINDERS.c.day_of_week_mask,
    REMINDERS.c.created_at,
).select_from(USERS.outerjoin(REMINDERS, REMINDERS.c.user_id == USERS.c.id))
 .where(USERS.c.sub == bindparam("sub")).order_by(REMINDERS.c.channel))


@dataclass(frozen=True, slots=True)
class Reminder:
    """One of somebody's reminders; start and end in seconds after local midnight."""

    uid: str
    channel: str
    start_time: int
    end_time: int
    day_of_week_mask: int
    created_at: float


@dataclass(frozen=True, slots=True)
class Prompt:
    """Whom to ask for a time: channels with a reminder whose time was never said, or too long ago.

    ``potential_channels``: on which the person could be reminded.
    """

    channels: tuple[str, ...]
    potential_channels: tuple[str, ...]


class ReminderSettings:
    """Stores and reads wishes. Each change is one transaction with its log, the rows that follow, and their counts."""

    def __init__(
        self, valkey: Valkey, database: Database, outbox: SqlOutbox, rows: Rows, timezones: Timezones, clock: Clock
    ) -> None:
        self._valkey, self._database, self._outbox, self._clock = valkey, database, outbox, clock
        self._rows, self._timezones = rows, timezones

    # -- changes ----------------------------------------------------------------------------------------------------

    async def update(
        self, sub: UserSub, *, mask: int, time_range: TimeRange, channel: str, timezone: str | None = None,
        technique: str = "app",
    ) -> None:
        """The person wants to be reminded on these days at this time, on one channel or on ``all``.

        A mask of 0 is no reminder. ``timezone``: by which clock, if that is known. ``Invalid`` for what cannot be,
        ``NotFound`` without the person.
        """
        if channel != ALL and channel not in CHANNELS:
            raise Invalid(f"there is no channel {channel[:40]!r}; known are {', '.join(CHANNELS)} and {ALL}")
        if timezone is not None:
            checked_zone(timezone)
        chosen = CHANNELS if channel == ALL else (channel,)
        reason = {"reason": UPDATED, "channel": channel, "technique": technique}
        async with self._database.transaction() as sql:
            if timezone is not None:
                await store_zone(sql, self._outbox, sub, timezone, technique, self._clock.now())
            await self._wish(sql, sub, dict.fromkeys(chosen, Wish(mask, time_range)), UPDATED, reason)
        if timezone is not None:
            await self._timezones.remember(sub, timezone)

    async def unsubscribe(self, sub: UserSub, uid: str) -> str | None:
        """End one of the person's reminders, by its uid: its channel, or None if they have no such reminder."""
        async with self._database.transaction() as sql:
            people = await lock_people(sql, [sub])
            if sub not in people:
                return None
            channel: str | None = await sql.scalar(
                select(REMINDERS.c.channel).where(REMINDERS.c.uid == uid, REMINDERS.c.user_id == people[sub].id)
            )
            if channel is None:
                return None
            wishes = (await wishes_of(sql, [people[sub].id])).get(people[sub].id, {})
            none = Wish(0, effective(channel, wishes).range)
            await self._wish(sql, sub, {channel: none}, "user", {"reason": "unsubscribed", "uid": uid})
        return channel

    # -- reading ----------------------------------------------------------------------------------------------------

    async def reminders_of(self, sub: UserSub) -> list[Reminder]:
        """The person's reminders, at most one for each channel; ``NotFound`` without the person."""
        found = await self._database.rows(_OF_PERSON, sub=sub)
        if not found:
            raise NotFound("there is no such person")
        return [Reminder(*row) for row in found if row[0] is not None]

    async def effective_of(self, sub: UserSub) -> dict[str, Effective]:
        """What holds on each channel, whether or not the person can be reached there."""
        async with self._database.reading() as sql:
            user = await find_person(sql, sub)
            wishes = (await wishes_of(sql, [user])).get(user, {})
        return {channel: effective(channel, wishes) for channel in CHANNELS}

    async def prompt_of(self, sub: UserSub) -> Prompt:
        """On which channels the person should be asked for the time of their reminders."""
        improved_at = IMPROVED_AT.at()
        if (since := await improved_at.get(self._valkey)) is None:
            await improved_at.set_if_absent(self._valkey, self._clock.now())
            since = await improved_at.get(self._valkey) or 0.0
        async with self._database.reading() as sql:
            user = await find_person(sql, sub)
            wishes = (await wishes_of(sql, [user])).get(user, {})
            rows = set(await sql.scalars(select(REMINDERS.c.channel).where(REMINDERS.c.user_id == user)))
            potential = (await reachable(sql, [user]))[user]
        stale = {channel for channel in rows if channel not in wishes or wishes[channel].said_at < since}
        return Prompt(*(tuple(each for each in CHANNELS if each in found) for found in (stale, potential)))

    # -- inside -----------------------------------------------------------------------------------------------------

    async def _wish(
        self, sql: AsyncConnection, sub: UserSub, said: Mapping[str, Wish], reason: str, why: Mapping[str, object]
    ) -> None:
        """Store wishes and derive what follows from them on every channel, since others may borrow from these."""
        people = await lock_people(sql, [sub])
        if sub not in people:
            raise NotFound("there is no such person")
        user, now = people[sub].id, self._clock.now()
        before = (await wishes_of(sql, [user])).get(user, {})
        changed: list[tuple[str, str]] = []
        for channel, wish in said.items():
            if not 0 <= wish.mask <= EVERY_DAY:
                raise Invalid(f"days are a mask from 0 to {EVERY_DAY}, got {wish.mask}")
            old = effective(channel, before)
            if how := _difference(old, wish):
                changed.append((channel, how))
            if how or not old.is_real:
                await self._log(sql, user, channel, wish, why, now)
        await self._store(sql, user, said, now)
        await self._rows.derive_in(sql, people, reason, wishes_changed=changed)

    async def _store(self, sql: AsyncConnection, user: int, said: Mapping[str, Wish], now: float) -> None:
        statement = self._database.insert(SETTINGS)
        stored = statement.on_conflict_do_update(
            index_elements=[SETTINGS.c.user_id, SETTINGS.c.channel],
            set_={name: statement.excluded[name] for name in ("day_of_week_mask", "time_range", "updated_at")},
        )
        await sql.execute(stored, [{
            "uid": new_uid("udrs"), "user_id": user, "channel": channel, "day_of_week_mask": wish.mask,
            "time_range": json.dumps(wish.range.to_json()), "created_at": now, "updated_at": now,
        } for channel, wish in said.items()])

    async def _log(
        self, sql: AsyncConnection, user: int, channel: str, wish: Wish, why: Mapping[str, object], now: float
    ) -> None:
        await self._database.insert_many(sql, SETTINGS_LOG, [{
            "uid": new_uid("drsl"), "user_id": user, "channel": channel, "day_of_week_mask": wish.mask,
            "time_range": json.dumps(wish.range.to_json()), "reason": json.dumps(dict(why)), "created_at": now,
        }])


def _difference(old: Effective, new: Wish) -> str:
    """Days and time before and after, as statistics break down by it; empty if neither changed."""
    days = "" if old.mask == new.mask else f"{old.mask:07b}", "" if old.mask == new.mask else f"{new.mask:07b}"
    same_range = old.range == new.range
    times: Sequence[str] = ("", "") if same_range else (old.range.shown(), new.range.shown())
    return "" if same_range and not days[0] else f"{days[0]}:{times[0]}|{days[1]}:{times[1]}"

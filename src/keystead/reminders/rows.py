"""Who gets reminders when: rows that follow from how people can be reached and from what they wish, and from nothing
else."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock
from keystead.errors import Invalid
from keystead.ids import UserSub, new_uid
from keystead.members import Person, lock_people, reachable, zone_of
from keystead.reminders.counts import SUBSCRIBED, UNSUBSCRIBED
from keystead.reminders.effective import TimeRange, Wish, effective
from keystead.reminders.keys import CHANNELS
from keystead.reminders.tables import ENGAGED, REMINDERS, SETTINGS, SETTINGS_LOG
from keystead.store import Database, SqlOutbox

ROWS_JOB: Final = "keystead.reminders.rows_changed"
STEP: Final = 500

JOINING: Final = frozenset((
    "account_created", "email_added", "phone_verify_finish", "push_token_added", "sms_start",
    "update_notification_time", "merge_consistency", "klaviyo", "migration_0096",
))
LEAVING: Final = frozenset((
    "account_deleted", "user", "update_notification_time", "sms_stop", "unreachable", "merge_consistency",
    "migration_0096",
))
# What a row that comes is counted as when it follows from something else than what was told: that came first, and
# both are seen at once.
_JOINED_BY: Final = {"email": "email_added", "sms": "phone_verify_finish", "push": "push_token_added"}


@dataclass(frozen=True, slots=True)
class _Row:
    uid: str
    timezone: str
    start_time: int
    end_time: int
    day_of_week_mask: int


@dataclass(slots=True)
class _Changes:
    new: list[dict[str, Any]] = field(default_factory=list)
    changed: list[dict[str, Any]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    counted: Counter[tuple[str, str, str]] = field(default_factory=Counter)


class Rows:
    """Derives rows. Doing so again changes nothing; what changes is counted once, through the SQL outbox."""

    def __init__(self, database: Database, outbox: SqlOutbox, clock: Clock) -> None:
        self._database, self._outbox, self._clock = database, outbox, clock

    async def derive(self, sub: UserSub, reason: str, channel: str | None = None) -> None:
        """Bring the rows of one person, on one channel or all, to what they should be. One transaction.

        ``reason``: what led to it, as registrations are counted. Nothing happens for somebody who does not exist.
        """
        await self.derive_many([sub], reason, channel)

    async def derive_many(self, subs: Iterable[UserSub], reason: str, channel: str | None = None) -> None:
        """``derive`` for many people; five hundred in each transaction."""
        if reason not in JOINING | LEAVING:
            raise Invalid(f"there is no reason {reason[:40]!r} to write reminders, or to write none")
        wanted = list(dict.fromkeys(subs))
        for first in range(0, len(wanted), STEP):
            async with self._database.transaction() as sql:
                people = await lock_people(sql, wanted[first : first + STEP])
                await self.derive_in(sql, people, reason, CHANNELS if channel is None else (channel,))

    async def move(self, sub: UserSub) -> None:
        """Bring the rows that the person has to their zone. Whether they should have them is not asked."""
        changes = _Changes()
        async with self._database.transaction() as sql:
            for person in (await lock_people(sql, [sub])).values():
                for row in (await _rows_of(sql, [person.id])).values():
                    moved = replace(row, timezone=zone_of(person.timezone).key)
                    _compare(changes, person.id, "", row, moved, "")
            await self._store(sql, changes, self._clock.now())

    async def derive_in(
        self, sql: AsyncConnection, people: Mapping[UserSub, Person], reason: str, channels: Sequence[str] = CHANNELS,
        wishes_changed: Sequence[tuple[str, str]] = (),
    ) -> None:
        """``derive`` in the caller's transaction, which holds the people. Their changed wishes are counted with it."""
        changes, now = _Changes(), self._clock.now()
        ids = [person.id for person in people.values()]
        if ids:
            reach, wishes, rows = await reachable(sql, ids), await wishes_of(sql, ids), await _rows_of(sql, ids)
            for sub, person in people.items():
                for channel in channels:
                    wanted = None
                    if channel in reach[person.id]:
                        wanted = _wanted(sub, person, channel, wishes.get(person.id, {}))
                    _compare(changes, person.id, channel, rows.get((person.id, channel)), wanted, reason)
        await self._store(sql, changes, now, wishes_changed)

    async def erase(self, sub: UserSub) -> None:
        """Forget the person's rows, wishes and their log. Safe to repeat, also for somebody who is gone."""
        async with self._database.transaction() as sql:
            people = await lock_people(sql, [sub])
            if sub not in people:
                return
            user = people[sub].id
            for table in (SETTINGS, SETTINGS_LOG, ENGAGED):
                await sql.execute(delete(table).where(table.c.user_id == user))
            changes = _Changes()
            for (_, channel), row in (await _rows_of(sql, [user])).items():
                _compare(changes, user, channel, row, None, "account_deleted")
            await self._store(sql, changes, self._clock.now())

    async def _store(
        self, sql: AsyncConnection, changes: _Changes, now: float, wishes_changed: Sequence[tuple[str, str]] = ()
    ) -> None:
        if changes.gone:
            await sql.execute(delete(REMINDERS).where(REMINDERS.c.uid.in_(changes.gone)))
        if changes.changed:
            await sql.execute(update(REMINDERS).where(REMINDERS.c.uid == bindparam("b_uid")), changes.changed)
        if changes.new:
            await self._database.insert_many(sql, REMINDERS, [{**row, "created_at": now} for row in changes.new])
        if changes.counted or changes.changed or wishes_changed:
            await self._outbox.enqueue(
                sql, ROWS_JOB, uid=new_uid("rc"), changed_at=now,
                changes=[[*what, amount] for what, amount in changes.counted.items()],
                wishes=[[*what, amount] for what, amount in Counter(wishes_changed).items()],
                moved_uids=[*changes.gone, *(row["b_uid"] for row in changes.changed)],
                new_uids=[row["uid"] for row in changes.new],
            )


def reminder_uid(sub: UserSub, channel: str) -> str:
    """The uid of somebody's reminder on a channel. It is always the same, so that who leaves and comes back within a
    day is not written to twice that day."""
    return "udr_" + hashlib.blake2b(f"{sub}\0{channel}".encode(), digest_size=16).hexdigest()


async def wishes_of(sql: AsyncConnection, ids: Sequence[int]) -> dict[int, dict[str, Wish]]:
    """What people said, by number and channel."""
    found: dict[int, dict[str, Wish]] = defaultdict(dict)
    wanted = select(
        SETTINGS.c.user_id, SETTINGS.c.channel, SETTINGS.c.day_of_week_mask, SETTINGS.c.time_range,
        SETTINGS.c.updated_at,
    )
    for user, channel, mask, time_range, said_at in await sql.execute(wanted.where(SETTINGS.c.user_id.in_(ids))):
        found[user][channel] = Wish(mask, TimeRange.of_json(json.loads(time_range)), said_at)
    return found


async def _rows_of(sql: AsyncConnection, ids: Sequence[int]) -> dict[tuple[int, str], _Row]:
    row = REMINDERS.c
    found = await sql.execute(
        select(row.user_id, row.channel, row.uid, row.timezone, row.start_time, row.end_time, row.day_of_week_mask)
        .where(row.user_id.in_(ids))
    )
    return {(user, channel): _Row(*rest) for user, channel, *rest in found}


def _wanted(sub: UserSub, person: Person, channel: str, wishes: Mapping[str, Wish]) -> _Row | None:
    holds = effective(channel, wishes)
    if not holds.mask:
        return None
    return _Row(reminder_uid(sub, channel), zone_of(person.timezone).key, holds.start, holds.end, holds.mask)


def _compare(
    changes: _Changes, user: int, channel: str, row: _Row | None, wanted: _Row | None, reason: str
) -> None:
    if row is not None and wanted is not None:
        values = {name: getattr(wanted, name) for name in ("timezone", "start_time", "end_time", "day_of_week_mask")}
        if any(getattr(row, name) != value for name, value in values.items()):
            changes.changed.append({"b_uid": row.uid, **values})
    elif row is not None:
        changes.gone.append(row.uid)
        changes.counted[UNSUBSCRIBED, channel, reason if reason in LEAVING else "unreachable"] += 1
    elif wanted is not None:
        changes.new.append({
            "uid": wanted.uid, "user_id": user, "channel": channel, "timezone": wanted.timezone,
            "start_time": wanted.start_time, "end_time": wanted.end_time, "day_of_week_mask": wanted.day_of_week_mask,
        })
        changes.counted[SUBSCRIBED, channel, reason if reason in JOINING else _JOINED_BY[channel]] += 1

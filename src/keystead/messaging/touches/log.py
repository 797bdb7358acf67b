"""The log of touches: rows that wait in Valkey are written to the database, a hundred for each statement.

An entry may be written again after a crash, so every row has its uid from the entry and is there once; the version of a
state tells whether it was written before.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import Column, Table, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import BatchJob, GiveUp, Step
from keystead.members import PushTokens
from keystead.messaging.touches.keys import ERASED, LOG_LOCK, TO_LOG
from keystead.messaging.touches.models import (
    DebugFields,
    Fields,
    LogEntry,
    StateFields,
    TokenFields,
    TouchFields,
    fields_of,
)
from keystead.messaging.touches.stats import LOG_RUN
from keystead.messaging.touches.tables import DEBUG_LOG, PEOPLE, STATES, TOUCH_POINTS, USER_TOUCHES
from keystead.store import Database

STEP: Final = 100
LOOKED_UP: Final = 500  # people or touch points in one query
BATCH_ITEMS: Final = 1000

T = TypeVar("T")


@dataclass(slots=True)
class Written:
    """What was asked for and what was done, by the fields of the run."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, wanted: int, done: int) -> None:
        """What one statement was to do and did. ``kind``: inserts or updates."""
        self.counts[kind] += wanted
        self.counts[f"accepted_{kind}"] += done
        self.counts[f"failed_{kind}"] += wanted - done
        self.counts[f"{'full' if wanted == STEP else 'partial'}_batch_{kind}"] += 1


class TouchLog:
    """Writes entries of the log, any number in one transaction."""

    def __init__(self, database: Database, tokens: PushTokens) -> None:
        self._database, self._tokens = database, tokens

    async def write(self, entries: Sequence[Fields]) -> Written:
        """Write all of them. What names a person or a touch point that is gone, or was written before, is counted as
        failed, and stops nothing."""
        written = Written()
        async with self._database.transaction() as sql:
            people = await _numbers(sql, PEOPLE.c.sub, PEOPLE.c.id, [
                entry.user_sub for entry in entries if not isinstance(entry, TokenFields)])
            points = await _numbers(sql, TOUCH_POINTS.c.uid, TOUCH_POINTS.c.id, [
                entry.touch_point_uid for entry in entries if isinstance(entry, StateFields | TouchFields)])
            for changes in _rounds([entry for entry in entries if isinstance(entry, StateFields)]):
                later = [one for one in changes if one.expected_version]
                await self._update_states(sql, later, people, points, written)
                await self._insert(sql, STATES, [one for one in changes if not one.expected_version],
                                   lambda one: _state_row(one, people, points), written)
            await self._insert(sql, USER_TOUCHES, [entry for entry in entries if isinstance(entry, TouchFields)],
                               lambda one: _touch_row(one, people, points), written)
            await self._insert(sql, DEBUG_LOG, [entry for entry in entries if isinstance(entry, DebugFields)],
                               lambda one: _debug_row(one, people), written)
        await self._confirm([entry for entry in entries if isinstance(entry, TokenFields)], written)
        return written

    async def _update_states(
        self, sql: AsyncConnection, changes: list[StateFields], people: dict[str, int], points: dict[str, int],
        written: Written,
    ) -> None:
        excluded = self._database.insert(STATES)
        statement = excluded.on_conflict_do_update(
            index_elements=[STATES.c.user_id, STATES.c.touch_point_id, STATES.c.channel],
            set_={name: excluded.excluded[name] for name in ("state", "version", "updated_at")},
            where=STATES.c.version == excluded.excluded.version - 1,
        ).returning(literal(1))
        for some in _steps(changes):
            rows = [row for one in some if (row := _state_row(one, people, points)) is not None]
            versions = await _versions(sql, [row["user_id"] for row in rows])
            # An upsert is how many rows are updated by one statement; a row that is not there must not come to be.
            rows = [row for row in rows
                    if versions.get((row["user_id"], row["touch_point_id"], row["channel"])) == row["version"] - 1]
            done = len((await sql.execute(statement, rows)).all()) if rows else 0
            written.add("updates", len(some), done)

    async def _insert(
        self, sql: AsyncConnection, table: Table, entries: Sequence[T], row_of: Callable[[T], dict[str, Any] | None],
        written: Written,
    ) -> None:
        for some in _steps(entries):
            rows = [row for one in some if (row := row_of(one)) is not None]
            done = await self._database.insert_many(sql, table, rows, ignore_conflicts=True) if rows else 0
            written.add("inserts", len(some), done)

    async def _confirm(self, entries: list[TokenFields], written: Written) -> None:
        times: dict[str, float] = {}
        for one in entries:
            times[one.token] = max(times.get(one.token, 0.0), one.last_confirmed_at)
        for some in _steps(sorted(times)):
            done = await self._tokens.confirm_many({token: times[token] for token in some})
            written.add("updates", len(some), done)


class LogJob(BatchJob[LogEntry]):
    """Writes the log of touches, a thousand entries in each transaction."""

    source, lock, runs = TO_LOG, LOG_LOCK, LOG_RUN
    batch_items = BATCH_ITEMS
    slice_items = BATCH_ITEMS

    def __init__(
        self, valkey: Valkey, clock: Clock, log: TouchLog, *, stopping: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__(valkey, clock, stopping=stopping)
        self._log = log

    async def process_slice(self, values: list[LogEntry], step: Step) -> None:
        try:
            entries = [fields_of(value) for value in values]
        except msgspec.ValidationError as error:  # the others of the slice are then tried without it
            raise GiveUp(f"this is no row of its table: {error}") from None
        for name, amount in (await self._log.write(await self._of_living(entries))).counts.items():
            step.count(name, amount)

    async def _of_living(self, entries: list[Fields]) -> list[Fields]:
        """Without the rows of people who were erased while they waited."""
        subs = {entry.user_sub for entry in entries if not isinstance(entry, TokenFields)}
        if not subs:
            return entries
        async with self.valkey.pipeline(transaction=False) as pipeline:
            raised = {sub: ERASED.at(sub).is_raised(pipeline) for sub in subs}
            await pipeline.execute()
        erased = {sub for sub, answer in raised.items() if await answer}
        return [entry for entry in entries if isinstance(entry, TokenFields) or entry.user_sub not in erased]


def _rounds(changes: Sequence[StateFields]) -> Iterator[list[StateFields]]:
    """Changes of one state follow one another: the first of each, then the second of each, and so on."""
    of_key: dict[tuple[str, str, str], list[StateFields]] = defaultdict(list)
    for one in changes:
        of_key[one.key].append(one)
    for place in range(max(map(len, of_key.values()), default=0)):
        yield [chain[place] for chain in of_key.values() if place < len(chain)]


def _state_row(one: StateFields, people: dict[str, int], points: dict[str, int]) -> dict[str, Any] | None:
    if one.user_sub not in people or one.touch_point_uid not in points:
        return None
    return {"uid": one.uid, "user_id": people[one.user_sub], "touch_point_id": points[one.touch_point_uid],
            "channel": one.channel, "state": one.state, "version": one.expected_version + 1,
            "created_at": one.queued_at, "updated_at": one.queued_at}


def _touch_row(one: TouchFields, people: dict[str, int], points: dict[str, int]) -> dict[str, Any] | None:
    if one.user_sub not in people or one.touch_point_uid not in points:
        return None
    return {"uid": one.uid, "send_uid": one.send_uid, "user_id": people[one.user_sub], "channel": one.channel,
            "touch_point_id": points[one.touch_point_uid], "destination": one.destination, "message": one.message,
            "created_at": one.created_at}


def _debug_row(one: DebugFields, people: dict[str, int]) -> dict[str, Any] | None:
    if one.user_sub not in people:
        return None
    return {"uid": one.uid, "user_id": people[one.user_sub], "send_uid": one.send_uid,
            "event": _without_nul(one.event), "created_at": one.created_at}


def _without_nul(value: Any) -> Any:
    """Events are asked for by what is in them, and PostgreSQL cannot take texts out of JSON that has NUL anywhere."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, dict):
        return {_without_nul(name): _without_nul(held) for name, held in value.items()}
    return [_without_nul(held) for held in value] if isinstance(value, list | tuple) else value


def _steps(entries: Sequence[T], most: int = STEP) -> Iterator[Sequence[T]]:
    for first in range(0, len(entries), most):
        yield entries[first:first + most]


async def _numbers(
    sql: AsyncConnection, name: Column[str], number: Column[int], names: Iterable[str]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for some in _steps(sorted(set(names)), LOOKED_UP):
        for row in (await sql.execute(select(name, number).where(name.in_(some)))).all():
            found[row[0]] = row[1]
    return found


async def _versions(sql: AsyncConnection, users: list[int]) -> dict[tuple[int, int, str], int]:
    states = STATES.c
    query = select(states.user_id, states.touch_point_id, states.channel, states.version)
    rows = (await sql.execute(query.where(states.user_id.in_(sorted(set(users)))))).all()
    return {(row[0], row[1], row[2]): row[3] for row in rows}

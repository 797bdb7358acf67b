"""Watchers: each looks at one thing and says what is wrong with it now."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import sqlalchemy

from keystead.clock import Clock, clock_seconds, real_seconds
from keystead.engine import Valkey
from keystead.errors import KeysteadError
from keystead.jobs import Inspection
from keystead.jobs.inspection_views import HOT, queue_named
from keystead.keys import FlagRef, ListRef, Undecodable
from keystead.operations.census import Census
from keystead.operations.keys import DEAD_SEEN
from keystead.operations.models import DeadSeen, Severity
from keystead.stats import Catalogue, late_days
from keystead.store import Database

SQL_SECONDS: Final = 5.0
LEAST_CALLS: Final = 10
CONFIRM_SECONDS: Final = 3.0
ROTATION_SECONDS: Final = 300.0
PERSISTENCE_FIELDS: Final = ("aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status")
# Fields that say since when a value waits, the first that is there counts.
SINCE: Final = ("last_queued_at", "queued_at", "received_at", "information_received_at", "created_at")


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with one thing, in a sentence without personal data."""

    subject: str
    says: str
    severity: Severity = "warning"


class Watcher(Protocol):
    """``look`` says all that is wrong now. What it does not name any more is over; None: nothing new is known."""

    kind: str

    async def look(self) -> Sequence[Trouble] | None: ...


@dataclass(frozen=True, slots=True)
class WaitingPlace:
    """Lists in which something waits for a worker, oldest left. While ``paused`` is up that is meant so."""

    name: str
    lists: tuple[ListRef[Any], ...]
    paused: FlagRef | None = None


@dataclass(frozen=True, slots=True)
class DeadPlace:
    """Where something lies that was given up."""

    name: str
    dead: ListRef[Any]


class QueueStuck:
    """Something waits in a queue for longer than it should.

    A job that was put off waits from its due time on. One of another program, or one that waited for other jobs, may
    look old the moment it comes back: a queue is stuck only if it still looks so a little later, when a worker would
    have taken it.
    """

    kind = "queue_stuck"

    def __init__(self, valkey: Valkey, clock: Clock, places: Iterable[WaitingPlace], *, late_seconds: float) -> None:
        self._valkey, self._clock, self._places, self._late = valkey, clock, tuple(places), late_seconds

    async def look(self) -> Sequence[Trouble]:
        places = await self._all()
        late = {trouble.subject for trouble in await self._late_ones(places)}
        if not late:
            return ()
        await asyncio.sleep(CONFIRM_SECONDS)
        return await self._late_ones([place for place in places if place.name in late])

    async def _late_ones(self, places: Iterable[WaitingPlace]) -> list[Trouble]:
        now, found = self._clock.now(), []
        for name, waiting, oldest_at in await oldest_waiting(self._valkey, places):
            waited = 0.0 if oldest_at is None else real_seconds(self._clock, now - oldest_at)
            if waited >= self._late:
                found.append(Trouble(name, f"{waiting:,} wait, the oldest for {_lasting(waited)}", "critical"))
        return found

    async def _all(self) -> list[WaitingPlace]:
        names = await Inspection(self._valkey, self._clock).queue_names()
        queues = [(name, queue_named(name)) for name in names]
        return [*(WaitingPlace(f"jobs {name}" if name != HOT else "jobs hot", (queue.work.queue,), queue.paused)
                  for name, queue in queues), *self._places]


async def oldest_waiting(
    valkey: Valkey, places: Iterable[WaitingPlace]
) -> list[tuple[str, int, float | None]]:
    """Name, how many wait and since when the oldest does, of each place that is not paused; one round trip a lane."""
    asked: list[tuple[WaitingPlace, list[Awaitable[int]], list[tuple[ListRef[Any], Awaitable[Any]]], Any]] = []
    chosen = tuple(places)
    lanes = {id(lane): lane for place in chosen for each in place.lists for lane in valkey.lanes_of(each.declaration)}
    for lane in lanes.values():
        async with lane.pipeline(transaction=False) as pipeline:
            for place in chosen:
                here = [one for one in place.lists if any(lane is other for other in valkey.lanes_of(one.declaration))]
                if not here:
                    continue
                lengths = [one.length(pipeline) for one in here]
                first = [(one, pipeline.run(("LINDEX", one.name(lane.layout), 0), _as_it_is)) for one in here]
                asked.append((place, lengths, first, place.paused.is_raised(pipeline) if place.paused else None))
            await pipeline.execute()
    found: dict[str, tuple[int, float | None]] = {}
    for place, lengths, first, paused in asked:
        if paused is not None and await paused:
            continue
        since = [at for one, raw in first if (at := _since(one, await raw)) is not None]
        count, oldest = found.get(place.name, (0, None))
        times = [*since, *(() if oldest is None else (oldest,))]
        found[place.name] = count + sum([await each for each in lengths]), min(times, default=None)
    return [(name, count, oldest) for name, (count, oldest) in found.items()]


def _since(place: ListRef[Any], raw: bytes | None) -> float | None:
    if raw is None:
        return None
    try:
        value = place.codec.decode(raw)
    except Undecodable:
        return None
    fields = getattr(value, "fields", None)  # a row that waits to be written
    held = [fields.get(name) if isinstance(fields, dict) else getattr(value, name, None) for name in SINCE]
    since = next((float(at) for at in held if isinstance(at, int | float)), None)
    return since if since is None else max(since, float(getattr(value, "due_at", 0) or 0))


@dataclass(frozen=True, slots=True)
class ProviderStanding:
    """How a provider did lately. ``is_open``: its breaker lets nothing through."""

    name: str
    is_open: bool
    calls: int
    failed: int


class ProviderDown:
    """A breaker is open, or most of the last calls failed. ``ask`` tells how the providers stand."""

    kind = "provider_down"

    def __init__(self, ask: Callable[[], Awaitable[Sequence[ProviderStanding]]]) -> None:
        self._ask = ask

    async def look(self) -> Sequence[Trouble]:
        found = []
        for one in _by_name(await self._ask()):
            failed = f"{one.failed} of the last {one.calls} calls failed"
            if one.is_open:
                found.append(Trouble(one.name, f"{failed}; nothing is sent until a try goes well", "critical"))
            elif one.calls >= LEAST_CALLS and one.failed * 2 >= one.calls:
                found.append(Trouble(one.name, failed))
        return found


def _by_name(standings: Sequence[ProviderStanding]) -> list[ProviderStanding]:
    """One for each provider, which has a breaker in every lane."""
    found: dict[str, ProviderStanding] = {}
    for one in standings:
        before = found.get(one.name, ProviderStanding(one.name, False, 0, 0))
        found[one.name] = ProviderStanding(
            one.name, before.is_open or one.is_open, before.calls + one.calls, before.failed + one.failed
        )
    return list(found.values())


class RotationLate:
    """Days that should have left for their tables are still here."""

    kind = "rotation_late"

    def __init__(self, valkey: Valkey, clock: Clock, catalogue: Catalogue, *, late_seconds: float) -> None:
        self._valkey, self._clock, self._catalogue, self._late = valkey, clock, catalogue, late_seconds

    async def look(self) -> Sequence[Trouble]:
        # Where days pass quickly the rotation still needs its moment.
        allowed = max(self._late, clock_seconds(self._clock, ROTATION_SECONDS))
        late = await late_days(self._valkey, self._catalogue, now=self._clock.now() - allowed)
        if not late:
            return ()
        names = ", ".join(sorted(late)[:5]) + (" and others" if len(late) > 5 else "")
        return [Trouble("statistics", f"days of {len(late)} families were due {_lasting(self._late)} ago and are not "
                                      f"in their tables: {names}")]


class MemoryHigh:
    """The server uses a great part of its limit, or without one of its machine."""

    kind = "memory_high"

    def __init__(self, valkey: Valkey, *, share: float) -> None:
        self._valkey, self._share = valkey, share

    async def look(self) -> Sequence[Trouble]:
        found = []
        for number, node in enumerate(await self._valkey.nodes()):
            info: dict[str, Any] = await node.info("memory")
            used, limit = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
            of, what = (limit, "its limit") if limit else (int(info.get("total_system_memory", 0)), "its machine")
            if of and used >= self._share * of:
                found.append(Trouble(f"server {number + 1}", f"{used / 2**20:,.0f} MiB are {used / of:.0%} of {what}",
                                     "critical" if used >= (1 + self._share) / 2 * of else "warning"))
        return found


class PersistenceFailing:
    """The server cannot write its data to disk."""

    kind = "persistence_failing"

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def look(self) -> Sequence[Trouble]:
        found = []
        for number, node in enumerate(await self._valkey.nodes()):
            info: dict[str, Any] = await node.info("persistence")
            bad = [name for name in PERSISTENCE_FIELDS if info.get(name, "ok") != "ok"]
            if bad:
                found.append(Trouble(f"server {number + 1}", f"not written to disk: {', '.join(bad)}", "critical"))
        return found


class DeadLettersGrow:
    """More is given up than before. One that stays as it is clears after a while: somebody knows by then."""

    kind = "dead_letters"

    def __init__(
        self, valkey: Valkey, clock: Clock, places: Iterable[DeadPlace], *, quiet_seconds: float
    ) -> None:
        self._valkey, self._clock, self._places, self._quiet = valkey, clock, tuple(places), quiet_seconds

    async def look(self) -> Sequence[Trouble]:
        now, seen = self._clock.now(), await DEAD_SEEN.at().all(self._valkey)
        queues = [(name, queue_named(name)) for name in await Inspection(self._valkey, self._clock).queue_names()]
        places = [*(DeadPlace(f"jobs {name}", queue.work.dead) for name, queue in queues), *self._places]
        found, changed = [], {}
        for place in places:
            lanes = self._valkey.lanes_of(place.dead.declaration)
            count = sum([await place.dead.length(lane) for lane in lanes])
            before = seen.get(place.name, DeadSeen(0, 0.0))
            after = DeadSeen(count, now if count > before.count else before.grew_at)
            if after != before:
                changed[place.name] = after
            if count and real_seconds(self._clock, now - after.grew_at) < self._quiet:
                found.append(Trouble(place.name, f"{count:,} dead letters, and they grew within the last "
                                                 f"{_lasting(self._quiet)}"))
        if changed:
            await DEAD_SEEN.at().set_many(self._valkey, changed)
        return found


class UndeclaredKeys:
    """Keys lie on the server that nothing declares, by the last census of any process, if that is no older than this.

    So processes that count more or less often say the same.
    """

    kind = "undeclared_keys"

    def __init__(self, census: Census, age_seconds: float) -> None:
        self._census, self._age_seconds = census, age_seconds

    async def look(self) -> Sequence[Trouble] | None:
        counts = await self._census.known(self._age_seconds)
        if counts is None:
            return None
        return [Trouble("keyspace", f"{counts.undeclared_keys:,} keys that nothing declares; "
                                    "`keystead keys audit` groups them")] if counts.undeclared_keys else ()


class SqlAway:
    """The database does not answer."""

    kind = "sql_away"

    def __init__(self, database: Database) -> None:
        self._database = database

    async def look(self) -> Sequence[Trouble]:
        error = await sql_trouble(self._database)
        return [Trouble("database", error, "critical")] if error else ()


async def sql_trouble(database: Database, seconds: float = SQL_SECONDS) -> str:
    """Why the database does not answer; empty when it does."""
    try:
        async with asyncio.timeout(seconds), database.reading() as sql:
            await sql.execute(sqlalchemy.text("SELECT 1"))
    except TimeoutError:
        return f"the database did not answer within {seconds:g} s"
    except KeysteadError as error:
        return f"the database does not answer: {type(error).__name__}"
    return ""


def _lasting(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _as_it_is(reply: Any) -> Any:
    return reply

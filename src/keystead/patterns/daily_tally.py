"""Counts on their way to the server: gathered in memory, stored in one step.

A ``Tally`` is what one piece of work counts. A ``Collector`` stores the tallies of many tasks together.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Generator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from keystead.engine import Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import Layout
from keystead.patterns.guarded import Writes
from keystead.telemetry import counts

if TYPE_CHECKING:
    from keystead.patterns.daily import DailyFamily

STORE = Script("keystead.patterns", "scripts/daily/store.lua")
MOST_AMOUNT = 10**12
MOST_DAY = 999_999
Amounts = tuple[int, list[tuple[str, int]], list[tuple[str, list[tuple[str, int]]]]]

counts.describe("daily_late", "counts that came after their day was rotated, by family")
counts.describe("daily_overflow", "amounts counted as other, because a day's breakdown had too many values, by family")


@dataclass(frozen=True, slots=True)
class Stored:
    """What storing a tally led to: entries that were late, and the amount that became ``other``."""

    late: int = 0
    overflow: int = 0


class Tally:
    """Counts for days of one family. Nothing reaches the server before ``store``.

    With ``now``, a day that has not begun anywhere the family counts is refused.
    """

    __slots__ = ("_days", "_last_day", "family")

    def __init__(self, family: "DailyFamily", now: float | None = None) -> None:
        self.family = family
        self._last_day = family.last_day(now) if now is not None else MOST_DAY
        # day → (event → amount, event → breakdown → amount)
        self._days: dict[int, tuple[dict[str, int], dict[str, dict[str, int]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._days)

    def incr(
        self, event: str, breakdown: str | None = None, amount: int = 1, *, at: float | None = None,
        unix_date: int | None = None,
    ) -> Self:
        """Count an event on the day of the instant ``at``, or on ``unix_date``. An amount of 0 is nothing at all.

        An event that is declared with a breakdown needs one; the same amount goes to the event and to its breakdown.
        """
        family = self.family
        if amount.__class__ is not int or not 0 <= amount <= MOST_AMOUNT:
            raise DeclarationError(f"{family.name}: an amount is a whole number from 0 to {MOST_AMOUNT}")
        family.check_event(event, breakdown)
        day = family.day_of(at) if unix_date is None and at is not None else family.check_day(unix_date, at)
        if not 0 <= day <= self._last_day:
            raise DeclarationError(f"{family.name}: day {day} has not begun; the last one that can be counted on is "
                                   f"{self._last_day}")
        if not amount:
            return self
        plain, broken_down = self._days.get(day) or self._days.setdefault(day, ({}, {}))
        if breakdown is None:
            plain[event] = plain.get(event, 0) + amount
        else:
            fields = broken_down.get(event)
            if fields is None:
                fields = broken_down[event] = {}
            fields[breakdown] = fields.get(breakdown, 0) + amount
        return self

    def merge(self, other: "Tally") -> Self:
        """Add everything that ``other`` holds."""
        if other.family is not self.family:
            raise DeclarationError(f"a tally of {other.family.name} cannot be merged into one of {self.family.name}")
        for day, (plain, broken_down) in other._days.items():
            mine, mine_broken_down = self._days.setdefault(day, ({}, {}))
            for event, amount in plain.items():
                mine[event] = mine.get(event, 0) + amount
            for event, fields in broken_down.items():
                mine_fields = mine_broken_down.setdefault(event, {})
                for field, amount in fields.items():
                    mine_fields[field] = mine_fields.get(field, 0) + amount
        return self

    def store(self, on: ScriptRunner) -> Awaitable[Stored]:
        """Add it all on the server in one atomic step, as one round trip or as a part of the caller's pipeline.

        Each day's ``earliest`` is lowered before its counts are written. Storing a tally twice counts twice. On
        ``Writes`` it is remembered, and counted when those happen.
        """
        if not self._days:
            return _Nothing()
        if isinstance(on, Writes):
            return on.count(self)
        names, most_fields, amounts = self.amounts(on.layout)
        arguments = secrets.token_urlsafe(9), most_fields, msgspec.msgpack.encode(amounts)
        # Made here from checked values, so they need not be held against the header again.
        return on.run_script(STORE, (len(names), *names, *arguments), lambda reply: self.stored(*reply))

    def amounts(self, layout: Layout) -> tuple[list[bytes], int, list[Amounts]]:
        """What scripts are told: the keys, how many values a breakdown may have, and the amounts by day."""
        family = self.family
        names: list[bytes] = list(family.fixed_names(layout))
        amounts = []
        for day, (plain, broken_down) in self._days.items():
            counts_name, breakdown_names = family.day_names(day, layout)
            names.append(counts_name)
            names += [breakdown_names[event] for event in broken_down]
            pairs = [(event, list(fields.items())) for event, fields in broken_down.items()]
            amounts.append((day, list(plain.items()), pairs))
        return names, family.most_breakdown_fields, amounts

    def stored(self, late: int, overflow: int) -> Stored:
        """What the server said of these amounts; counts what was late or too much."""
        if late:
            counts.add("daily_late", late, family=self.family.name)
        if overflow:
            counts.add("daily_overflow", overflow, family=self.family.name)
        return Stored(late, overflow)


class _Nothing:
    """Storing an empty tally."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, Stored]:
        return Stored()
        yield


class Tallies:
    """Counts of several families: what one request counts. Nothing reaches the server before ``store``."""

    __slots__ = ("_by_family", "_now")

    def __init__(self, now: float | None = None) -> None:
        self._by_family: dict[DailyFamily, Tally] = {}
        self._now = now

    def of(self, family: "DailyFamily") -> Tally:
        """The tally of one family, to count on."""
        tally = self._by_family.get(family)
        if tally is None:
            tally = self._by_family[family] = Tally(family, self._now)
        return tally

    async def store(self, valkey: Valkey) -> Stored:
        """Add it all in one round trip: on one server in one atomic step, on a cluster in one for each family."""
        tallies = [tally for tally in self._by_family.values() if tally]
        if len(tallies) <= 1:
            return await tallies[0].store(valkey) if tallies else Stored()
        async with valkey.pipeline(transaction=valkey.layout is Layout.PLAIN) as block:
            waiting = self.add_to(block)
            await block.execute()
        stored = [await one for one in waiting]
        return Stored(sum(one.late for one in stored), sum(one.overflow for one in stored))

    def add_to(self, on: ScriptRunner) -> list[Awaitable[Stored]]:
        """Make it part of the caller's pipeline, so that it is counted exactly when the rest happens."""
        return [tally.store(on) for tally in self._by_family.values() if tally]


class Collector:
    """Stores tallies of many tasks together: those of one turn of the event loop share one script call.

    Each caller waits for the step that held its own counts, and hears of its failure. Use it as ``async with``: leaving
    waits for what is under way.
    """

    def __init__(self, family: "DailyFamily", on: ScriptRunner) -> None:
        self._family = family
        self._on = on
        self._next: tuple[Tally, asyncio.Future[Stored]] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._open = False

    async def __aenter__(self) -> Self:
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        while self._running:
            await asyncio.wait(self._running)

    async def store(self, tally: Tally) -> Stored:
        """Store the tally with others of this turn. The answer speaks of all that were stored with it."""
        if not self._open:
            raise DeclarationError("a collector stores only inside its async with block")
        if not tally:
            return Stored()
        if self._next is None:
            together = Tally(self._family), asyncio.get_running_loop().create_future()
            self._next = together
            task = asyncio.get_running_loop().create_task(self._send(*together))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        else:
            together = self._next
        together[0].merge(tally)
        return await asyncio.shield(together[1])

    async def _send(self, together: Tally, done: "asyncio.Future[Stored]") -> None:
        self._next = None
        try:
            done.set_result(await together.store(self._on))
        except asyncio.CancelledError:
            done.cancel()
            raise
        except Exception as error:  # whatever it is belongs to the waiters, who all get it
            done.set_exception(error)
            done.exception()  # taken note of, even if every waiter was cancelled meanwhile

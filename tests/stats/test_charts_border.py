"""Where server and SQL meet: whatever the rotation died of, every count is shown, and shown once."""

from collections import Counter
from contextlib import suppress

import pytest

from keystead.patterns.by_day import LATE
from keystead.stats.rotation import Rotation
from tests.patterns.crash import Died, Mortal

from .charting import TODAY
from .counted import ACTIVE, EVENTS, JOINED, RETENTION, VIEWS, VISITS, catalogue

MOST_STEPS = 80


class Events:
    name, held_days, declared = "events", EVENTS.held_days, EVENTS

    async def count(self, valkey, day, n):
        await EVENTS.tally().incr("found", amount=n, unix_date=day).incr("failed", f"s{n % 3}", 2, unix_date=day).store(
            valkey
        )
        return {("found", day): n, ("failed", day): 2, (f"s{n % 3}", day): 2}

    async def shown(self, charts, start, end):
        found = await charts.series("events", start, end)
        lists = {**found.counts, **found.breakdowns["failed"]}
        return {(what, start + at): n for what, days in lists.items() for at, n in enumerate(days)}


class Active:
    name, held_days, declared = "active", ACTIVE.held_days, ACTIVE

    async def count(self, valkey, day, n):
        late = await ACTIVE.add(valkey, f"a{n}", f"b{n}", day=day) == LATE
        return {("late" if late else "total", day): 2}

    async def shown(self, charts, start, end):
        found = await charts.numbers(self.name, start, end)
        return {(what, start + at): n for what, days in found.counts.items() for at, n in enumerate(days)}


class Joined(Active):
    name, held_days, declared = "joined", JOINED.held_days, JOINED

    async def count(self, valkey, day, n):
        await JOINED.increment(valkey, n, day=day)
        return {("total", day): n}


class Retention:
    name, held_days, declared = "retention", RETENTION.held_days, RETENTION

    async def count(self, valkey, day, n):
        if await RETENTION.join(valkey, f"x{n}", day=day) == LATE:
            return {("late", day): 1}
        back = await RETENTION.active(valkey, f"x{n}", joined_day=day, day=day + 1) if n % 2 else 0
        return {("size", day): 1, (0, day): int(back > 0), (1, day): int(back > 1)}

    async def shown(self, charts, start, end):
        found = await charts.cohorts("retention", start, end)
        shown = {("size", start + at): n for at, n in enumerate(found.sizes)}
        shown |= {("late", start + at): n for at, n in enumerate(found.late)}
        return shown | {(period, start + at): n for at, row in enumerate(found.retained)
                        for period, n in zip(found.periods, row, strict=True) if n}


class Viewed:
    name, held_days, declared = "sessions", VIEWS.held_days, VIEWS

    async def count(self, valkey, day, n):
        viewed = await VIEWS.viewed(valkey, f"v{n % 3}", f"u{n}", day=day)
        known = {("views", f"v{n % 3}", day): 1, ("total", f"v{n % 3}"): 1}
        return known if viewed.late else {**known, ("users", f"v{n % 3}", day): 1, ("total users", f"v{n % 3}"): 1}

    async def shown(self, charts, start, end):
        found = await charts.views("sessions", end - 1, end - start)
        shown = {("total", one.value): one.total_views for one in found.values}
        shown |= {("total users", one.value): one.total_users for one in found.values}
        for one in found.values:
            shown |= {("views", one.value, start + at): n for at, n in enumerate(one.views)}
            shown |= {("users", one.value, start + at): n for at, n in enumerate(one.users)}
        return shown


class Visits:
    name, held_days, declared = "visitors", VISITS.held_days, VISITS

    async def count(self, valkey, day, n):
        rows = [(f"utm_source={n % 4}", "visits", n), ("utm_source=x", "preexisting", -1)]
        await VISITS.add(valkey, rows, day=day)
        return {(row, field, day): amount for row, field, amount in rows}

    async def shown(self, charts, start, end):
        days = [await charts.rows(self.name, day) for day in range(start, end)]
        return {(row, field, found.unix_date): n for found in days for row, counts in found.rows
                for field, n in counts.items()}


@pytest.mark.parametrize("kind", [Events, Active, Joined, Retention, Viewed, Visits])
async def test_every_count_is_shown_once_after_every_death_of_a_rotation(valkey, database, charts, clock, kind):
    """Each day the rotation dies one command later. Counts come on time, and for the day that is taken away."""
    counted, log, first = kind(), Counter(), TODAY - kind.held_days
    only = catalogue(kind.declared)  # tables of everything would be looked at again and again
    to_the_end = Rotation(valkey, database, only, clock)

    async def check(when: str) -> None:
        start = max(first, today - counted.held_days - 2)
        expected = {key: n for key, n in log.items() if n and (not isinstance(key[-1], int) or key[-1] >= start)}
        shown = await counted.shown(charts, start, today + 1)
        assert {key: n for key, n in shown.items() if n} == visible(expected, counted, today), (step, when)

    for step in range(MOST_STEPS):
        today = TODAY + step
        due = today - counted.held_days
        for n, day in enumerate((due, today)):
            log.update(await counted.count(valkey, day, 6 * step + n + 1))
        mortal = Mortal(valkey, step // 2 + 1, after=step % 2 == 1)
        with suppress(Died):
            await Rotation(mortal, database, only, clock).run()
        await check("dead")
        for n, day in enumerate((due, max(first, due - 1)), 2):
            log.update(await counted.count(valkey, day, 6 * step + n + 1))
        await check("late")
        if not mortal.dead:
            return
        if step % 4 > 1:  # else what came late is left to the next one that dies
            await to_the_end.run()
        clock.advance(86400)
    raise AssertionError("the rotation always died")


def visible(expected, counted, today):
    """A period that is not over for a cohort is not shown."""
    if not isinstance(counted, Retention):
        return expected
    return {key: n for key, n in expected.items() if not isinstance(key[0], int) or key[1] + key[0] < today}

"""What is read once for all who look."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from keystead.errors import Unavailable
from keystead.stats import Series
from keystead.web import stats_watch as module
from keystead.web.stats_watch import LiveSeries, StatsWatch, joined


def series(start, end, *, live_from, first=1, values=None):
    days = list(range(first, first + end - start))
    return Series("orders", "UTC", start, end, [str(day) for day in range(start, end)], {"placed": days},
                  {"placed": values or {"web": days}}, live_from)


@asynccontextmanager
async def watching(watch):
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watch.run())
        try:
            yield
        finally:
            running.cancel()


async def until(true):
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.02)


class Counter:
    """Reads how often it was read."""

    def __init__(self):
        self.reads = 0

    async def __call__(self, before):
        assert before == (self.reads or None)
        self.reads += 1
        return self.reads


async def test_two_viewers_of_one_thing_share_what_is_read(monkeypatch):
    monkeypatch.setattr(module, "EVERY_SECONDS", 0.02)
    watch, first, second = StatsWatch(), Counter(), Counter()
    one, other = watch.share("a", first, 0.02), watch.share("a", second, 0.02)
    assert one is other
    async with watching(watch):
        await until(lambda: first.reads > 2)
    assert one.value == first.reads and second.reads == 0


async def test_nothing_is_read_once_nobody_looks_and_it_goes_on_when_someone_does(monkeypatch):
    monkeypatch.setattr(module, "EVERY_SECONDS", 0.02)
    monkeypatch.setattr(module, "WANTED_SECONDS", 0.1)
    watch, read = StatsWatch(), Counter()
    shared = watch.share("a", read, 0.02)
    async with watching(watch):
        await until(lambda: asyncio.get_running_loop().time() > shared.wanted_until)
        await asyncio.sleep(0.3)
        reads = read.reads
        await asyncio.sleep(1)
        assert read.reads == reads
        shared.want()
        await until(lambda: read.reads > reads)


async def test_what_is_read_rarely_waits_its_time(monkeypatch):
    monkeypatch.setattr(module, "EVERY_SECONDS", 0.02)
    watch, rare, often = StatsWatch(), Counter(), Counter()
    watch.share("rare", rare, 600.0)
    watch.share("often", often, 0.02)
    async with watching(watch):
        await until(lambda: often.reads > 5)
    assert rare.reads == 1


async def test_forgotten_things_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(module, "EVERY_SECONDS", 0.02)
    monkeypatch.setattr(module, "WANTED_SECONDS", 0.01)
    monkeypatch.setattr(module, "FORGOTTEN_SECONDS", 0.01)
    watch = StatsWatch()
    for number in range(20):
        watch.share(number, Counter())
    await asyncio.sleep(0.1)
    kept = watch.share("kept", Counter(), 0.02)
    async with watching(watch):
        async with asyncio.timeout(60):
            while len(watch._shared) > 1:
                kept.want()
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("failure", [Unavailable("away"), TimeoutError()])
async def test_trouble_is_told_and_hides_nothing_known(failure):
    wrong = False

    async def read(_):
        if wrong:
            raise failure
        return 17

    shared = StatsWatch().share("a", read)
    await shared.first()
    assert shared.value == 17 and shared.problem is None
    wrong = True
    await shared.read()
    assert shared.value == 17 and shared.problem
    wrong = False
    await shared.read()
    assert shared.problem is None


async def test_equal_answer_is_the_same_object_so_that_nothing_is_drawn_again():
    shared = StatsWatch().share("a", lambda _: _answer([1, 2]))
    await shared.read()
    before = shared.value
    await shared.read()
    assert shared.value is before


async def _answer(value):
    return list(value)


class ChartsAtHand:
    """Answers from what it is given, and writes down what was asked for."""

    def __init__(self, live_from):
        self.live_from, self.asked = live_from, []

    async def series(self, name, start, end):
        self.asked.append((start, end))
        return series(start, end, live_from=self.live_from, first=start * 10)

    numbers = series


async def test_only_live_days_are_read_again():
    charts = ChartsAtHand(live_from=108)
    read = LiveSeries(charts, "orders", lambda: (100, 110))
    first = await read(None)
    second = await read(first)
    assert charts.asked == [(100, 110), (108, 110)]
    assert second.counts["placed"] == [*range(1000, 1008), 1080, 1081]
    assert second.breakdowns["placed"]["web"] == second.counts["placed"] and len(second.labels) == 10


async def test_rotation_midnight_and_a_minute_bring_the_whole_range(monkeypatch):
    charts = ChartsAtHand(live_from=108)
    end = 110
    read = LiveSeries(charts, "orders", lambda: (end - 10, end))
    known = await read(None)
    charts.live_from = 109  # a day was rotated: what came of it stands in SQL
    known = await read(known)
    assert charts.asked[-2:] == [(108, 110), (100, 110)]
    end = 111
    known = await read(known)
    assert charts.asked[-1] == (101, 111)
    monkeypatch.setattr(module, "WHOLE_SECONDS", 0.0)
    await read(known)
    assert charts.asked[-1] == (101, 111)


async def test_range_that_is_over_is_not_read_every_time():
    charts = ChartsAtHand(live_from=200)
    read = LiveSeries(charts, "orders", lambda: (100, 110))
    known = await read(None)
    assert await read(known) is known and charts.asked == [(100, 110)]


def test_values_that_come_or_go_keep_their_days():
    before = series(0, 3, live_from=2, values={"web": [1, 1, 1], "shop": [2, 2, 2]})
    newest = series(2, 3, live_from=2, first=9, values={"web": [5], "phone": [4]})
    found = joined(before, newest)
    assert found.breakdowns["placed"] == {"web": [1, 1, 5], "shop": [2, 2, 0], "phone": [0, 0, 4]}
    assert found.counts == {"placed": [1, 2, 9]}

"""An alert opens once, is told again after the pause at the earliest, and clears; whoever sees it, and how often."""

import asyncio
import time

import pytest

from keystead.clock import Pace, SystemClock
from keystead.errors import Invalid, NotFound
from keystead.operations import AlertRules, Alerts
from keystead.operations.keys import ALERT, DELIVERIES, OPEN, RECENT
from keystead.testing.clock import MovableClock

PAUSE = 3600.0


def alerts(valkey, clock, *ways) -> Alerts:
    return Alerts(valkey, clock, AlertRules(PAUSE, ways or ("webhook",)))


async def delivered(valkey) -> list[str]:
    return [delivery.event.event for delivery, _ in await DELIVERIES.due.range(valkey)]


async def test_an_alert_opens_once_and_is_told_once_for_each_way(server):
    clock = MovableClock(now=1000.0)
    here = alerts(server, clock, "webhook", "log")
    opened = await here.raise_("queue_stuck", "jobs hot", "12 wait", "critical")
    again = await here.raise_("queue_stuck", "jobs hot", "13 wait", "critical")
    assert opened == again
    [found] = await here.open()
    assert (found.kind, found.subject, found.says, found.told, found.opened_at) == (
        "queue_stuck", "jobs hot", "12 wait", 1, 1000.0)
    assert await delivered(server) == ["opened", "opened"]
    assert sorted(one.way for one, _ in await DELIVERIES.due.range(server)) == ["log", "webhook"]
    assert [event.event for event in await here.recent()] == ["opened"]


async def test_many_processes_that_see_the_same_tell_once(server):
    clock = MovableClock(now=1000.0)
    crowd = [alerts(server, clock) for _ in range(20)]
    await asyncio.gather(*(one.raise_("sql_away", "database", "it is away") for one in crowd))
    assert await delivered(server) == ["opened"]
    clock.advance(PAUSE)
    await asyncio.gather(*(one.raise_("sql_away", "database", "it is away") for one in crowd))
    assert sorted(await delivered(server)) == ["opened", "repeated"]
    cleared = await asyncio.gather(*(one.clear("sql_away", "database") for one in crowd))
    assert cleared.count(True) == 1
    assert sorted(await delivered(server)) == ["cleared", "opened", "repeated"]


async def test_an_open_alert_is_repeated_after_the_pause_and_not_sooner(valkey):
    clock = MovableClock(now=1000.0)
    here = alerts(valkey, clock)
    await here.raise_("memory_high", "server 1", "90%")
    for _ in range(10):
        clock.advance(PAUSE / 11)
        await here.raise_("memory_high", "server 1", "91%")
    assert await delivered(valkey) == ["opened"]
    [found] = await here.open()
    assert found.says == "91%" and found.seen_at == clock.now(), "what it says now is kept, without telling"
    clock.advance(PAUSE)
    await here.raise_("memory_high", "server 1", "92%")
    assert sorted(await delivered(valkey)) == ["opened", "repeated"]


async def test_what_goes_to_and_fro_over_the_critical_line_tells_once_in_a_pause(valkey):
    clock = MovableClock(now=1000.0)
    here = alerts(valkey, clock)
    for _ in range(20):
        await here.raise_("memory_high", "server 1", "91%")
        clock.advance(15)
        await here.raise_("memory_high", "server 1", "93%", "critical")
        clock.advance(15)
    assert sorted(await delivered(valkey)) == ["opened", "worsened"]
    [found] = await here.open()
    assert found.severity == "critical", "what it is now is kept, without telling"
    await here.acknowledge("memory_high", "server 1")
    await here.raise_("memory_high", "server 1", "91%")
    await here.raise_("memory_high", "server 1", "93%", "critical")
    assert (await here.open())[0].acked_at is not None, "somebody knows it already"
    clock.advance(PAUSE)
    await here.raise_("memory_high", "server 1", "91%")
    await here.raise_("memory_high", "server 1", "93%", "critical")
    assert sorted(await delivered(valkey)) == ["opened", "worsened", "worsened"]


async def test_what_was_a_warning_and_comes_back_critical_is_told_at_once(valkey):
    clock = MovableClock(now=1000.0)
    here = alerts(valkey, clock)
    for _ in range(3):
        await here.raise_("provider_down", "sms", "15 of 20 failed")
        clock.advance(60)
        await here.clear("provider_down", "sms")
        clock.advance(60)
        await here.raise_("provider_down", "sms", "nothing is sent", "critical")
        await here.clear("provider_down", "sms")
    assert sorted(await delivered(valkey)) == ["cleared", "cleared", "opened", "opened"], "once each in a pause"


async def test_what_comes_and_goes_tells_once_in_a_pause(valkey):
    clock = MovableClock(now=1000.0)
    here = alerts(valkey, clock)
    for _ in range(20):
        await here.raise_("provider_down", "sms", "15 of 20 failed")
        clock.advance(30)
        assert await here.clear("provider_down", "sms")
        clock.advance(30)
    assert sorted(await delivered(valkey)) == ["cleared", "opened"]
    clock.advance(PAUSE)
    await here.raise_("provider_down", "sms", "15 of 20 failed")
    assert sorted(await delivered(valkey)) == ["cleared", "opened", "opened"]


async def test_one_that_opened_quietly_is_told_when_it_stays_open_past_the_pause(valkey):
    clock = MovableClock(now=1000.0)
    here = alerts(valkey, clock)
    await here.raise_("provider_down", "sms", "all failed")
    await here.clear("provider_down", "sms")
    await here.raise_("provider_down", "sms", "all failed")
    assert (await here.open())[0].told == 0
    clock.advance(PAUSE)
    await here.raise_("provider_down", "sms", "all failed")
    assert sorted(await delivered(valkey)) == ["cleared", "opened", "repeated"]


async def test_a_warning_that_becomes_critical_is_told_at_once_also_when_acknowledged(valkey):
    clock = MovableClock(now=1000.0)
    here = alerts(valkey, clock)
    await here.raise_("memory_high", "server 1", "86%", "warning")
    known = await here.acknowledge("memory_high", "server 1", by="ada")
    assert (known.acked_by, known.acked_at) == ("ada", 1000.0)
    clock.advance(PAUSE * 2)
    await here.raise_("memory_high", "server 1", "87%", "warning")
    assert await delivered(valkey) == ["opened"], "somebody knows"
    await here.raise_("memory_high", "server 1", "97%", "critical")
    assert sorted(await delivered(valkey)) == ["opened", "worsened"]
    assert (await here.open())[0].acked_at is None


async def test_what_is_not_open_can_be_neither_cleared_nor_acknowledged(valkey):
    here = alerts(valkey, MovableClock(now=1000.0))
    assert not await here.clear("sql_away", "database")
    with pytest.raises(NotFound):
        await here.acknowledge("sql_away", "database")
    await here.raise_("sql_away", "database", "away")
    await here.clear("sql_away", "database")
    with pytest.raises(NotFound):
        await here.acknowledge("sql_away", "database")


async def test_state_outlives_the_process(valkey):
    clock = MovableClock(now=1000.0)
    await alerts(valkey, clock).raise_("sql_away", "database", "away")
    later = alerts(valkey, clock)
    await later.raise_("sql_away", "database", "away")
    assert len(await later.open()) == 1 == await later.count_open()
    assert await delivered(valkey) == ["opened"]


async def test_a_cleared_alert_is_forgotten_after_a_week_and_an_open_one_never(valkey):
    clock = MovableClock(now=1000.0)
    here = alerts(valkey, clock)
    await here.raise_("sql_away", "database", "away")
    reference = ALERT.at("sql_away", "database")
    assert await reference.remaining_seconds(valkey) is None
    await here.clear("sql_away", "database")
    left = await reference.remaining_seconds(valkey)
    assert left is not None and 6 * 86400 < left <= 7 * 86400
    assert await OPEN.at().size(valkey) == 0
    await here.raise_("sql_away", "database", "away")
    assert await reference.remaining_seconds(valkey) is None, "it is open again"


async def test_changes_that_are_kept_are_bounded(valkey):
    clock = MovableClock(now=1000.0)
    here = alerts(valkey, clock)
    for number in range(250):
        await here.raise_("test_kind", f"thing {number}", "so")
    assert await RECENT.at().length(valkey) == 200
    assert len(await here.recent(10)) == 10
    assert (await here.recent(1))[0].subject == "thing 249"


async def test_a_test_is_delivered_and_opens_nothing(valkey):
    here = alerts(valkey, MovableClock(now=1000.0), "webhook", "mail")
    await here.test()
    assert await delivered(valkey) == ["test", "test"]
    assert await here.open() == []
    assert here.stirred.is_set()


@pytest.mark.parametrize(("kind", "subject"), [
    ("", "x"), ("two words", "x"), ("a:b", "x"), ("x", ""), ("x", "y" * 200),
])
async def test_names_that_could_not_be_kept_are_refused(valkey, kind, subject):
    with pytest.raises(Invalid):
        await alerts(valkey, MovableClock(now=1.0)).raise_(kind, subject, "so")


def test_a_pause_as_long_as_the_memory_of_alerts_is_refused():
    with pytest.raises(Invalid, match="repeat_seconds"):
        AlertRules(repeat_seconds=8 * 86400)


async def test_critical_ones_come_first(valkey):
    clock = MovableClock(now=1000.0)
    here = alerts(valkey, clock)
    await here.raise_("one", "a", "so", "warning")
    clock.advance(5)
    await here.raise_("two", "b", "so", "critical")
    assert [found.kind for found in await here.open()] == ["two", "one"]


async def test_where_days_pass_quickly_nobody_is_told_more_often(valkey):
    clock = SystemClock(pace=Pace(speed=100_000.0, real_at=time.time(), shown_at=time.time()))
    here = alerts(valkey, clock)
    await here.raise_("memory_high", "server 1", "90%")
    began = clock.now()
    while clock.now() - began < 3 * PAUSE:
        await asyncio.sleep(0.01)
    await here.raise_("memory_high", "server 1", "90%")
    assert await delivered(valkey) == ["opened"]

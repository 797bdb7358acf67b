"""Rounds are made by one process at a time; what is wrong opens, what is right again clears."""

import asyncio
import json

import pytest

from keystead.clock import SystemClock
from keystead.engine import connect
from keystead.errors import Invalid, Unavailable
from keystead.operations import AlertRules, Alerts, Delivery, Patrol, Trouble, Webhook
from keystead.operations import alerts as alerts_module
from keystead.operations import patrol as patrol_module
from keystead.operations.patrol import Retired
from keystead.settings import ValkeySettings
from keystead.telemetry import counts
from keystead.testing.clock import MovableClock

from .receiver import receiving


class Scripted:
    """Says what it is told to say, and counts how often it was asked."""

    def __init__(self, kind: str, *troubles: Trouble) -> None:
        self.kind, self.troubles, self.looks = kind, list(troubles), 0
        self.error: Exception | None = None

    async def look(self):
        self.looks += 1
        if self.error is not None:
            raise self.error
        return self.troubles


def patrol(valkey, clock, *watchers, **options) -> tuple[Alerts, Patrol]:
    alerts = Alerts(valkey, clock, AlertRules(3600.0, ("log",)))
    return alerts, Patrol(valkey, clock, alerts, watchers, **options)


async def test_what_is_wrong_opens_and_what_is_over_clears(server):
    clock = MovableClock(now=1000.0)
    watcher = Scripted("queue_stuck", Trouble("a", "stuck"), Trouble("b", "stuck"))
    alerts, here = patrol(server, clock, watcher)
    await alerts.raise_("other_kind", "a", "somebody else's")
    await here.look(watcher)
    assert {(found.kind, found.subject) for found in await alerts.open()} == {
        ("queue_stuck", "a"), ("queue_stuck", "b"), ("other_kind", "a")}
    watcher.troubles.pop()
    await here.look(watcher)
    assert {(found.kind, found.subject) for found in await alerts.open()} == {
        ("queue_stuck", "a"), ("other_kind", "a")}
    assert [event.event for event in await alerts.recent()] == ["cleared", "opened", "opened", "opened"]


async def test_a_round_is_made_by_one_process(server):
    clock = SystemClock()
    watchers = [Scripted("queue_stuck") for _ in range(5)]
    patrols = [patrol(server, clock, watcher, every_seconds=60)[1] for watcher in watchers]
    made = await asyncio.gather(*(each.beat() for each in patrols))
    assert made.count(True) == 1 == sum(watcher.looks for watcher in watchers)


async def test_a_watcher_that_cannot_look_changes_nothing_and_does_not_stop_the_others(valkey):
    clock = SystemClock()
    broken, fine = Scripted("one", Trouble("a", "wrong")), Scripted("two", Trouble("b", "wrong"))
    alerts, here = patrol(valkey, clock, broken, fine)
    await here.look(broken)
    broken.error = Invalid("it is broken")
    before = counts.value("alert_watch_failures", kind="one")
    await here.look(broken)
    await here.look(fine)
    assert {found.kind for found in await alerts.open()} == {"one", "two"}
    assert counts.value("alert_watch_failures", kind="one") == before + 1


async def test_more_trouble_than_is_kept_does_not_stop_the_others(valkey, monkeypatch):
    monkeypatch.setattr(alerts_module, "MOST_OPEN", 3)
    many, other = Scripted("one", *(Trouble(f"queue {n}", "stuck") for n in range(5))), Scripted("two")
    alerts, here = patrol(valkey, SystemClock(), many, other)
    assert await here.beat()
    assert len(await alerts.open()) == 3 and other.looks == 1
    many.troubles = [Trouble("queue 4", "stuck")]
    await here.look(many)
    assert [found.subject for found in await alerts.open()] == ["queue 4"], "what is over makes room"


async def test_a_long_name_and_any_error_of_a_watcher_do_not_stop_the_others(valkey):
    long, broken, other = Scripted("one", Trouble("q" * 300, "stuck")), Scripted("two"), Scripted("three")
    broken.error = KeyError("it has a fault")
    alerts, here = patrol(valkey, SystemClock(), long, broken, other)
    assert await here.beat()
    await here.look(long)
    [found] = await alerts.open()
    assert found.subject == "q" * 120 and other.looks == 1
    long.troubles = []
    await here.look(long)
    assert await alerts.open() == []


async def test_a_watcher_that_knows_nothing_new_changes_nothing(valkey):
    watcher = Scripted("one", Trouble("a", "wrong"))
    alerts, here = patrol(valkey, SystemClock(), watcher)
    await here.look(watcher)
    watcher.troubles = None
    await here.look(watcher)
    assert len(await alerts.open()) == 1


async def test_a_server_that_is_away_is_told_by_webhook_once_and_so_is_its_return(valkey_server, monkeypatch):
    monkeypatch.setattr(patrol_module, "AWAY_SECONDS", 0.0)
    client = await connect(valkey_server.url, settings=ValkeySettings(outage_seconds=0.5, connect_timeout_seconds=1))
    try:
        async with receiving() as receiver:
            alerts = Alerts(client, SystemClock(), AlertRules(3600.0, ("log",)))
            here = Patrol(client, SystemClock(), alerts, (), every_seconds=1, webhook=Webhook(receiver.url))
            valkey_server.kill()
            for _ in range(3):
                assert not await here.beat()
            assert len(receiver.requests) == 1, "and not each time"
            valkey_server.restart()
            async with asyncio.timeout(30):
                while len(receiver.requests) < 2:
                    await here.beat()
                    await asyncio.sleep(0.1)
            await here.beat()
        events = [json.loads(raw)["events"][0] for _, raw in receiver.requests]
        assert [(event["kind"], event["event"]) for event in events] == [
            ("valkey_away", "opened"), ("valkey_away", "cleared")]
    finally:
        valkey_server.ensure_running()
        await client.aclose()


async def test_it_looks_and_delivers_by_itself(valkey):
    clock = SystemClock()
    async with receiving() as receiver:
        alerts = Alerts(valkey, clock, AlertRules(3600.0, ("webhook",)))
        webhook = Webhook(receiver.url)
        here = Patrol(valkey, clock, alerts, [Scripted("queue_stuck", Trouble("a", "stuck"))], every_seconds=1)
        delivery = Delivery(valkey, clock, alerts, webhook=webhook)
        async with asyncio.TaskGroup() as tasks:
            work = [tasks.create_task(here.run()), tasks.create_task(delivery.run())]
            await receiver.until(1)
            for task in work:
                task.cancel()
    assert json.loads(receiver.requests[0][1])["events"][0]["kind"] == "queue_stuck"


async def test_unavailable_is_not_taken_for_the_watchers_fault(valkey):
    watcher = Scripted("one")
    watcher.error = Unavailable("away")
    _, here = patrol(valkey, SystemClock(), watcher)
    with pytest.raises(Unavailable):
        await here.look(watcher)


async def test_what_nobody_watches_for_any_more_is_closed_with_a_word(server):
    clock = MovableClock(now=1_700_000_000.0)
    alerts = Alerts(server, clock, AlertRules(3600.0, ("log",)))
    for kind, subject in (("undeclared_keys", "shop:*"), ("alert_undelivered", "mail"), ("alert_undelivered", "log")):
        await alerts.raise_(kind, subject, "trouble")
    patrol = Patrol(server, clock, alerts, [], retired=[
        Retired("undeclared_keys", "nobody looks"), Retired("alert_undelivered", "no mail goes out", subject="mail"),
    ])
    await patrol.close_retired()
    assert len(await alerts.open()) == 3, "another process may still see them"
    clock.advance(1000)
    assert await patrol.beat()
    (left,) = await alerts.open()
    assert (left.kind, left.subject) == ("alert_undelivered", "log")
    said = {event.kind: event for event in await alerts.recent() if event.event == "cleared"}
    assert said["undeclared_keys"].says == "trouble; closed, because nobody looks"
    assert said["alert_undelivered"].says == "trouble; closed, because no mail goes out"

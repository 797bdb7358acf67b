"""Alerts while processes are killed without warning: everybody is told of each, and of nothing in a storm."""

import asyncio
import json
from collections import Counter

import pytest

from keystead.clock import SystemClock
from keystead.operations import AlertRules, Alerts
from keystead.operations.keys import DELIVERIES

from ..operations.receiver import Receiver, receiving
from .programs import programs

QUEUES = 30


def told(receiver: Receiver) -> Counter[str]:
    """How often each event was brought, by its uid."""
    return Counter(event["uid"] for _, raw in receiver.requests for event in json.loads(raw)["events"])


async def all_delivered(valkey, receiver: Receiver, events: int) -> None:
    async with asyncio.timeout(120):
        while len(told(receiver)) < events or await DELIVERIES.size(valkey):
            await asyncio.sleep(0.1)


async def test_what_a_killed_process_opened_is_delivered_by_another(valkey, valkey_server):
    async with receiving() as receiver, programs("tests.faults.alerts_program") as start:
        opener = await start("raise", valkey_server.url, receiver.url, str(QUEUES))
        await opener.hears("opened", times=7)
        await opener.kill()
        opened = await Alerts(valkey, SystemClock(), AlertRules()).count_open()
        assert opened >= 7 and not receiver.requests
        await start("work", valkey_server.url, receiver.url, str(QUEUES))
        await all_delivered(valkey, receiver, QUEUES)
    assert len(told(receiver)) == QUEUES


@pytest.mark.slow
async def test_killed_deliverers_lose_nothing_and_make_no_storm(valkey, valkey_server):
    kills = 4
    async with receiving() as receiver, programs("tests.faults.alerts_program") as start:
        receiver.status = 500
        running = [await start("work", valkey_server.url, receiver.url, str(QUEUES)) for _ in range(3)]
        for number in range(kills):
            before = len(receiver.requests)
            await receiver.until(before + 1)
            await running[number % 3].kill()
            running[number % 3] = await start("work", valkey_server.url, receiver.url, str(QUEUES))
        receiver.status = 204
        await all_delivered(valkey, receiver, QUEUES)
        alerts = Alerts(valkey, SystemClock(), AlertRules())
        assert await alerts.count_open() == QUEUES
        events = Counter(event.event for event in await alerts.recent(200))
        assert events == {"opened": QUEUES}, "three processes and their heirs saw the same, and it opened once"
    # Each event comes at least once; a message more for each kill and each refusal, not for each look.
    assert len(told(receiver)) == QUEUES


@pytest.mark.slow
async def test_what_a_deliverer_was_killed_with_comes_again_and_says_so(valkey, valkey_server):
    """Two processes watch and deliver. One is killed when the receiver has its message and has not answered."""
    async with receiving() as receiver, programs("tests.faults.alerts_program") as start:
        receiver.answers.clear()
        first = await start("work", valkey_server.url, receiver.url, "1")
        await receiver.until(1)
        second = await start("work", valkey_server.url, receiver.url, "1")
        await first.kill()
        receiver.answers.set()
        await receiver.until(2, seconds=120)
        await all_delivered(valkey, receiver, 1)
        await second.kill()
        said = [json.loads(raw)["events"][0] for _, raw in receiver.requests]
        assert len(said) == 2 and said[0]["uid"] == said[1]["uid"]
        assert [one["perhaps_told"] for one in said] == [False, True]
        alerts = Alerts(valkey, SystemClock(), AlertRules())
        assert [event.event for event in await alerts.recent()] == ["opened"]

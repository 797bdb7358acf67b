"""Calls of one turn travel together, and nobody notices."""

import asyncio

import pytest

from keystead.engine import Script, Valkey, connect
from keystead.engine.failures import ErrorReply
from keystead.errors import Unavailable
from keystead.keys import IntegerKey, Keyspace
from keystead.patterns.gathering import MOST_TOGETHER, Gathering, is_client
from keystead.settings import ValkeySettings

COUNTS = IntegerKey(Keyspace("room", tag="room:{lane}"), "counts:{lane}:{name}", purpose="a test")
COUNT = Script("keystead.patterns", "scripts/limits/count.lua")


def asked(gathering: Gathering, valkey: Valkey, lane: int, name: int) -> "asyncio.Future[list[int]]":
    arguments = (1_000_000, 60_000, 1, 0)
    return asyncio.ensure_future(gathering.ask(valkey, COUNTS.at(lane, name).name(valkey.layout), arguments))


async def test_every_call_is_answered_once_whatever_its_slot(server: Valkey) -> None:
    gathering = Gathering(COUNT, answers_each=2)
    calls = [(lane, name) for lane in range(7) for name in range(20) for _ in range(3)]
    answers = await asyncio.gather(*(asked(gathering, server, *call) for call in calls))
    for call in set(calls):
        assert [answer[0] for answer, which in zip(answers, calls, strict=True) if which == call] == [1, 2, 3]


async def test_calls_of_one_turn_leave_as_two_commands(valkey: Valkey) -> None:
    gathering = Gathering(COUNT, answers_each=2)
    await asked(gathering, valkey, 0, 0)
    before = valkey.commands_sent
    await asyncio.gather(*(asked(gathering, valkey, 0, name) for name in range(MOST_TOGETHER + 1)))
    assert valkey.commands_sent - before == 2


async def test_a_great_crowd_is_split(valkey: Valkey) -> None:
    gathering = Gathering(COUNT, answers_each=2)
    answers = await asyncio.gather(*(asked(gathering, valkey, 0, 0) for _ in range(3 * MOST_TOGETHER)))
    assert sorted(answer[0] for answer in answers) == list(range(1, 3 * MOST_TOGETHER + 1))


async def test_a_script_that_the_server_forgot_is_given_again(valkey: Valkey) -> None:
    gathering = Gathering(COUNT, answers_each=2)
    await asked(gathering, valkey, 0, 0)
    await valkey.script_flush()
    answers = await asyncio.gather(*(asked(gathering, valkey, 0, 0) for _ in range(10)))
    assert sorted(answer[0] for answer in answers) == list(range(2, 12))


async def test_every_waiter_hears_of_a_failure(fault_proxy) -> None:
    proxy = await fault_proxy()
    valkey = await connect(proxy.url, settings=ValkeySettings(outage_seconds=1.0))
    try:
        gathering = Gathering(COUNT, answers_each=2)
        await proxy.aclose()
        told = await asyncio.gather(*(asked(gathering, valkey, 0, 0) for _ in range(10)), return_exceptions=True)
        assert len(told) == 10 and all(isinstance(each, Unavailable) for each in told)
    finally:
        await valkey.aclose()


async def test_a_key_that_fails_alone_does_not_fail_the_others(valkey: Valkey) -> None:
    gathering = Gathering(COUNT, answers_each=2)
    await valkey.rpush(COUNTS.at(0, 3).name(valkey.layout), "x")
    answers = await asyncio.gather(*(asked(gathering, valkey, 0, name) for name in range(6)))
    assert isinstance(answers[3][0], ErrorReply)
    assert [answer[0] for place, answer in enumerate(answers) if place != 3] == [1] * 5


@pytest.mark.parametrize("transaction", [False, True])
async def test_a_pipeline_is_no_client(server: Valkey, transaction: bool) -> None:
    assert is_client(server)
    assert not is_client(server.pipeline(transaction=transaction))

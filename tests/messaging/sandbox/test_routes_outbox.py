"""The sandbox for programs."""

import pytest

from keystead.edge import Caller, CallerKind
from keystead.messaging.sandbox.models import Message, Step
from keystead.messaging.sandbox.routes_outbox import links_in, routes

from ...members.door import visiting
from .conftest import HandClock
from .test_outbox import fill


@pytest.fixture
async def visit(sandbox, valkey):
    await fill(valkey)
    async with visiting(routes(sandbox.outbox, sandbox.faults, HandClock())) as found:
        found.caller = Caller(CallerKind.PROGRAM, "town", frozenset({"messaging"}))
        yield found


async def test_messages_are_read_on_from_a_number(visit):
    status, shown = await visit.ask("GET", "/sandbox/outbox?limit=3")
    assert status == 200 and [each["id"] for each in shown["items"]] == ["m0", "m1", "m2"] and shown["last"] == 3
    _, shown = await visit.ask("GET", "/sandbox/outbox?after=3")
    assert [(each["id"], each["status"]) for each in shown["items"]] == [("m3", "queued")]
    _, shown = await visit.ask("GET", "/sandbox/outbox?channel=sms&to=%2B15550001")
    assert [each["number"] for each in shown["items"]] == [1, 3]
    assert (await visit.ask("GET", "/sandbox/outbox?channel=fax"))[0] == 422


async def test_faults_are_read_and_set_whole(visit, sandbox):
    assert (await visit.ask("GET", "/sandbox/sms/faults"))[1]["throttle"] == 0
    status, shown = await visit.ask("PUT", "/sandbox/sms/faults", {"throttle": 0.5, "latency_ms": 20})
    assert status == 200 and (shown["throttle"], shown["latency_ms"]) == (0.5, 20)
    assert sandbox.faults.of("sms").throttle == 0.5
    await visit.ask("PUT", "/sandbox/sms/faults", {"lost": 1})
    assert (await visit.ask("GET", "/sandbox/sms/faults"))[1]["throttle"] == 0
    for bad in ({"throttle": 2}, {"nonsense": 1}, {"latency_ms": -1}):
        assert (await visit.ask("PUT", "/sandbox/sms/faults", bad))[0] == 422
    assert (await visit.ask("GET", "/sandbox/fax/faults"))[0] == 422


async def test_only_those_who_may_read_messages(visit):
    visit.caller = Caller(CallerKind.PROGRAM, "other", frozenset({"jobs"}))
    assert (await visit.ask("GET", "/sandbox/outbox"))[0] == 403
    assert (await visit.ask("PUT", "/sandbox/sms/faults", {}))[0] == 403


def test_links_are_found_once_each_without_the_full_stop():
    message = Message("m", "email", "a@b", 0.0, (Step("x", 0.0),), text="See http://a.example/l/1. Or https://b/x?y=1",
                      html='<a href="http://a.example/l/1">x</a><a href="http://c/?a=1&amp;b=2">', data={"url": "http://d/"})
    assert links_in(message) == ["http://a.example/l/1", "https://b/x?y=1", "http://c/?a=1&b=2", "http://d/"]

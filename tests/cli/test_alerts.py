"""``keystead alerts``: what an operator sees of alerts, and says."""

import asyncio
import json

import pytest

from keystead.cli import entry
from keystead.clock import SystemClock
from keystead.engine import connect
from keystead.operations import AlertRules, Alerts
from keystead.operations.keys import DELIVERIES

from .command import Outcome


@pytest.fixture
def alerts(server, capsys, monkeypatch):
    """Run ``keystead alerts ARGUMENTS`` in this process."""
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str) -> Outcome:
        code = entry.run(["alerts", *arguments, "--url", server.url])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return run


def do(url: str, steps):
    async def connected():
        valkey = await connect(url)
        try:
            return await steps(valkey, Alerts(valkey, SystemClock(), AlertRules(3600.0, ("log",))))
        finally:
            await valkey.aclose()

    return asyncio.run(connected())


def test_nothing_open_is_said_and_leaves_with_0(alerts):
    outcome = alerts("list")
    assert (outcome.code, outcome.out) == (0, "") and "No alert is open" in outcome.err


def test_open_alerts_are_listed_and_leave_with_1(alerts, server):
    do(server.url, lambda _, found: found.raise_("queue_stuck", "jobs hot", "12 wait", "critical"))
    outcome = alerts("list", "--recent", "5")
    assert outcome.code == 1
    assert "queue_stuck" in outcome.out and "12 wait" in outcome.out and "opened" in outcome.out
    outcome = alerts("list", "--format", "json", "--recent", "5")
    assert outcome.code == 1
    shown = json.loads(outcome.out)
    assert shown["open"][0]["subject"] == "jobs hot" and shown["recent"][0]["event"] == "opened"


def test_an_alert_is_acknowledged_and_one_that_is_not_open_refused_in_one_line(alerts, server):
    do(server.url, lambda _, found: found.raise_("queue_stuck", "jobs hot", "12 wait"))
    assert alerts("ack", "queue_stuck", "jobs hot").code == 0
    [alert] = do(server.url, lambda _, found: found.open())
    assert alert.acked_at is not None
    assert "known" in alerts("list").out
    assert "is open" in alerts("ack", "queue_stuck", "another").refused()


def test_a_test_is_queued_by_the_ways_of_the_settings(alerts, server, monkeypatch):
    monkeypatch.setenv("KEYSTEAD_ALERTS_WEBHOOK_URL", "http://127.0.0.1:9/hook")
    outcome = alerts("test")
    assert outcome.code == 0 and "log, webhook" in outcome.err
    assert do(server.url, lambda valkey, _: DELIVERIES.size(valkey)) == 2

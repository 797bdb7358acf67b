"""Totals and runs: what is true now."""

from keystead.jobs import LastRunFacts, RunFacts
from keystead.keys import Keyspace, RecordKey
from keystead.patterns import Counter, MonthlyCounter
from keystead.stats import Catalogue
from keystead.stats.charts_live import LiveReader, RunView, Total
from keystead.testing.clock import MovableClock

from .charting import NOW

ROOM = Keyspace("live", tag="live")


class SendRun(RunFacts, frozen=True, kw_only=True):
    attempted: int = 0
    failed: int = 0


class CheckRun(LastRunFacts, frozen=True, kw_only=True):
    num_checked: int = 0


SEND = RecordKey(ROOM, "stats:sms:send_job", SendRun, purpose="sends")
CHECK = RecordKey(ROOM, "stats:push:check_job", CheckRun, purpose="checks")
NEVER = RecordKey(ROOM, "stats:never:job", SendRun, purpose="never ran")
SPOILED = RecordKey(ROOM, "stats:spoiled:job", SendRun, purpose="spoiled")
PEOPLE = MonthlyCounter(ROOM, "stats:live_people", zone="America/Los_Angeles", purpose="people")
THINGS = Counter(ROOM, "stats:live_things", purpose="things")


def reader(valkey, *declared: object) -> LiveReader:
    return LiveReader(valkey, Catalogue(declared), MovableClock(now=NOW))


async def test_the_latest_run_comes_first_and_those_that_never_ran_last(server):
    await SEND.at().set(server, SendRun(started_at=100.0, finished_at=103.0, running_time=3.0,
                                        stop_reason="list_exhausted", attempted=7, failed=1))
    await CHECK.at().set(server, CheckRun(started_at=200.0, num_checked=4))
    assert await reader(server, SEND, CHECK, NEVER).runs() == [
        RunView("push:check_job", "checks", 200.0, counters={"num_checked": 4}),
        RunView("sms:send_job", "sends", 100.0, 103.0, 3.0, "list_exhausted", {"attempted": 7, "failed": 1}),
        RunView("never:job", "never ran"),
    ]


async def test_a_record_that_cannot_be_read_does_not_hide_the_others(valkey):
    await SEND.at().set(valkey, SendRun(started_at=100.0))
    await valkey.hset("stats:spoiled:job", "started_at", "soon")
    sent, spoiled = await reader(valkey, SEND, SPOILED).runs()
    assert sent.name == "sms:send_job" and spoiled.started_at is None
    assert "started_at" in spoiled.problem and spoiled.as_dict()["counters"] == {}


async def test_totals_come_with_what_this_month_added(server):
    await PEOPLE.increment(server, 5, at=NOW - 40 * 86400)
    await PEOPLE.increment(server, 2, at=NOW)
    await THINGS.increment(server, 9)
    assert await reader(server, PEOPLE, THINGS).totals() == {"live_people": Total(7, 2), "live_things": Total(9, None)}

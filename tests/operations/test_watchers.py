"""Each watcher says what is wrong, and nothing when nothing is."""

import asyncio
import contextlib
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from keystead.clock import SystemClock
from keystead.jobs import Inspection, JobBook, Jobs, Worker, WorkerSettings
from keystead.jobs.book import Job
from keystead.jobs.keys import Queue
from keystead.jobs.retry import NEVER
from keystead.keys import Keyspace, ListKey, Registry
from keystead.operations.alerts import AlertRules, Alerts
from keystead.operations.census import Census
from keystead.operations.keys import DEAD_SEEN, OPERATIONS, ROUND
from keystead.operations.patrol import Patrol, Retired
from keystead.operations.watchers import (
    DeadLettersGrow,
    DeadPlace,
    MemoryHigh,
    PersistenceFailing,
    ProviderDown,
    ProviderStanding,
    QueueStuck,
    SqlAway,
    UndeclaredKeys,
    WaitingPlace,
    oldest_waiting,
)
from keystead.patterns import DeadLetter
from keystead.patterns.worklist_items import DeadLetterCodec
from keystead.testing.clock import MovableClock


async def test_a_queue_is_stuck_when_its_oldest_job_waited_too_long(server):
    clock = MovableClock(now=5000.0)
    watcher = QueueStuck(server, clock, (), late_seconds=300)
    assert list(await watcher.look()) == []
    await Jobs(server, clock=clock).enqueue("shop.pack", order=1)
    await Jobs(server, clock=clock).options(queue="slow").enqueue("shop.pack", order=2)
    clock.advance(299)
    assert list(await watcher.look()) == []
    clock.advance(61)
    found = {trouble.subject: trouble for trouble in await watcher.look()}
    assert set(found) == {"jobs hot", "jobs slow"}
    assert found["jobs hot"].says == "1 wait, the oldest for 6 minutes" and found["jobs hot"].severity == "critical"


async def test_a_job_that_was_put_off_is_not_taken_for_one_that_waited(valkey):
    clock = MovableClock(now=5000.0)
    queue = Queue("slow")
    await Jobs(valkey, clock=clock).options(queue="slow").enqueue("shop.pack", order=1)
    clock.advance(86400)  # as if it had been put off for a day and had come back just now
    watcher = QueueStuck(valkey, clock, (), late_seconds=300)

    async def work():
        await asyncio.sleep(0.5)
        await valkey.run(("LPOP", queue.work.queue.name(valkey.layout)), bytes)

    found, _ = await asyncio.gather(watcher.look(), work())
    assert list(found) == []


async def test_a_job_waits_from_its_due_time_on(server):
    clock, queue = MovableClock(now=5000.0), Queue("slow")
    await Jobs(server, clock=clock).options(queue="slow", delay_seconds=1000).enqueue("shop.pack", order=1)
    [(record, due)] = await queue.delayed.range(server)
    await queue.work.queue.push_right(server, record)  # as whoever brings it when it is due
    place = WaitingPlace("slow", (queue.work.queue,))
    assert await oldest_waiting(server, [place]) == [("slow", 1, 6000.0)] and due == 6000.0


async def test_a_provider_with_several_breakers_is_one_trouble():
    async def ask():
        return [ProviderStanding("sms", True, 20, 20), ProviderStanding("sms", False, 20, 15),
                ProviderStanding("email", False, 20, 0)]

    [trouble] = await ProviderDown(ask).look()
    assert (trouble.subject, trouble.severity) == ("sms", "critical") and "35 of the last 40" in trouble.says


async def test_a_paused_queue_is_not_stuck(valkey):
    clock = MovableClock(now=5000.0)
    await Jobs(valkey, clock=clock).enqueue("shop.pack", order=1)
    await Inspection(valkey, clock).pause("hot")
    clock.advance(1000)
    watcher = QueueStuck(valkey, clock, (), late_seconds=300)
    assert list(await watcher.look()) == []
    await Inspection(valkey, clock).resume("hot")
    assert [trouble.subject for trouble in await watcher.look()] == ["jobs hot"]


async def test_what_does_not_say_since_when_it_waits_is_only_counted(valkey):
    shop = Keyspace("shop", tag="shop")
    names: ListKey[str] = ListKey(shop, "shop:names", str, purpose="names", writers=("a",), readers=("b",))
    await names.at().push_right(valkey, "x", "y")
    assert await oldest_waiting(valkey, [WaitingPlace("names", (names.at(),))]) == [("names", 2, None)]
    assert await oldest_waiting(valkey, []) == []


@pytest.mark.parametrize(("standing", "severity"), [
    (ProviderStanding("sms", True, 20, 15), "critical"),
    (ProviderStanding("sms", False, 12, 6), "warning"),
    (ProviderStanding("sms", False, 12, 5), None),
    (ProviderStanding("sms", False, 3, 3), None),
])
async def test_a_provider_is_down_by_its_breaker_or_its_failures(standing, severity):
    async def ask():
        return [standing]

    found = await ProviderDown(ask).look()
    assert [trouble.severity for trouble in found] == ([severity] if severity else [])


async def test_memory_is_high_by_the_servers_limit(valkey, valkey_server):
    assert list(await MemoryHigh(valkey, share=0.99).look()) == []
    used = int((await (await valkey.nodes())[0].info("memory"))["used_memory"])
    valkey_server.call("CONFIG", "SET", "maxmemory", used * 2)
    try:
        [trouble] = await MemoryHigh(valkey, share=0.2).look()
        assert trouble.subject == "server 1" and "of its limit" in trouble.says
        assert list(await MemoryHigh(valkey, share=0.95).look()) == []
    finally:
        valkey_server.call("CONFIG", "SET", "maxmemory", 0)


async def test_without_a_limit_memory_is_that_of_the_machine(valkey):
    [trouble] = await MemoryHigh(valkey, share=0.0000001).look()
    assert "of its machine" in trouble.says


async def test_a_server_that_cannot_write_its_snapshot_is_told(valkey, valkey_server):
    watcher = PersistenceFailing(valkey)
    assert list(await watcher.look()) == []
    settings = [valkey_server.call("CONFIG", "GET", name)[1].decode() for name in ("dir", "dbfilename")]
    snapshot, kept = Path(*settings), valkey_server.call("CONFIG", "GET", "save")[1]
    snapshot.unlink(missing_ok=True)
    snapshot.mkdir()
    (snapshot / "in the way").touch()  # a snapshot cannot replace a directory that holds something
    valkey_server.call("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
    try:
        await _until(lambda: valkey_server.call("BGSAVE"), watcher, wrong=True)
        [trouble] = await watcher.look()
        assert "rdb_last_bgsave_status" in trouble.says and trouble.severity == "critical"
    finally:
        shutil.rmtree(snapshot)
        await _until(lambda: valkey_server.call("BGSAVE"), watcher, wrong=False)
        valkey_server.call("CONFIG", "SET", "save", kept)
        snapshot.unlink(missing_ok=True)


async def _until(save, watcher, *, wrong: bool) -> None:
    async with asyncio.timeout(30):
        while bool(await watcher.look()) is not wrong:
            with contextlib.suppress(Exception):  # one is under way
                save()
            await asyncio.sleep(0.2)


async def test_dead_letters_are_told_while_they_grow_and_for_a_while_after(valkey):
    clock = MovableClock(now=5000.0)
    shop = Keyspace("shop", tag="shop")
    dead: ListKey[DeadLetter] = ListKey(shop, "shop:dead", DeadLetterCodec(), purpose="dead", writers=("a",),
                                        readers=("b",))
    watcher = DeadLettersGrow(valkey, clock, [DeadPlace("shop", dead.at())], quiet_seconds=600)
    assert list(await watcher.look()) == []
    await valkey.run(("RPUSH", dead.at().name(valkey.layout), "{}"), int)
    [trouble] = await watcher.look()
    assert trouble.subject == "shop" and trouble.says.startswith("1 dead letters")
    clock.advance(601)
    assert list(await watcher.look()) == [], "it did not grow; somebody knows by now"
    await valkey.run(("RPUSH", dead.at().name(valkey.layout), "{}"), int)
    assert len(await watcher.look()) == 1
    await valkey.run(("DEL", dead.at().name(valkey.layout)), int)
    assert list(await watcher.look()) == []
    assert (await DEAD_SEEN.at().all(valkey))["shop"].count == 0


async def test_dead_letters_of_jobs_are_watched_without_being_named(valkey):
    async def fail() -> None:
        raise RuntimeError("no")

    clock = SystemClock()
    book = JobBook.of(Job(fail, name="shop.fail", retry=NEVER))
    await Jobs(valkey, book, clock=clock).enqueue("shop.fail")
    worker = Worker(valkey, book, WorkerSettings(), clock=clock)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        async with asyncio.timeout(30):
            while not await Queue("").work.dead.length(valkey):
                await asyncio.sleep(0.05)
        worker.stop()
    assert [trouble.subject for trouble in await DeadLettersGrow(valkey, clock, (), quiet_seconds=600).look()] == [
        "jobs hot"]


async def test_keys_that_nothing_declares_are_told_by_the_last_count(valkey):
    clock = MovableClock([], now=5000.0)
    census = Census(valkey, Registry([OPERATIONS], valkey.layout), clock)
    watcher = UndeclaredKeys(census, 600)
    assert await watcher.look() is None, "nothing is known before the first count"
    await census.renew()
    assert list(await watcher.look()) == []
    await valkey.run(("SET", "somebody:else", "1"), bytes)
    assert list(await watcher.look()) == [], "nobody has counted since"
    await census.renew(0.0)
    for _ in range(2):
        [trouble] = await watcher.look()
        assert "1 keys that nothing declares" in trouble.says
    clock.advance(601)
    assert await watcher.look() is None, "that was too long ago to say anything"


async def test_undeclared_keys_are_judged_alike_where_they_are_counted_less_often(valkey):
    clock, registry = MovableClock([], now=5000.0), Registry([OPERATIONS], valkey.layout)
    often, seldom = (Census(valkey, registry, clock) for _ in range(2))
    hasty, slow = UndeclaredKeys(often, 60), UndeclaredKeys(seldom, 3600)
    await valkey.run(("SET", "somebody:else", "1"), bytes)
    await often.renew(60)
    await seldom.renew(3600)
    assert await hasty.look()
    await valkey.run(("DEL", "somebody:else"), int)
    clock.advance(61)
    await often.renew(60)
    assert list(await hasty.look()) == []
    assert list(await slow.look()) == [], "what it counted itself is older, and would open the alert again"


async def test_undeclared_keys_stay_open_between_two_counts_beside_a_process_that_does_not_look(valkey):
    clock, registry = MovableClock([], now=5000.0), Registry([OPERATIONS], valkey.layout)
    alerts, census = Alerts(valkey, clock, AlertRules()), Census(valkey, registry, clock)
    looks = Patrol(valkey, clock, alerts, [UndeclaredKeys(census, 7200)])
    blind = Patrol(valkey, clock, alerts, [], retired=[Retired(UndeclaredKeys.kind, "it is off")])
    await valkey.run(("SET", "somebody:else", "1"), bytes)
    await census.renew(7200)
    for _ in range(5):
        await valkey.run(("DEL", ROUND.at().name(valkey.layout)), int)
        assert await looks.beat()
        await valkey.run(("DEL", ROUND.at().name(valkey.layout)), int)
        assert await blind.beat()
        assert [alert.kind for alert in await alerts.open()] == [UndeclaredKeys.kind]
        clock.advance(800)
    assert [event.event for event in await alerts.recent() if event.event == "cleared"] == []


async def test_a_database_that_lets_nobody_in_is_told(database, database_url, request):
    assert list(await SqlAway(database).look()) == []
    if database.dialect == "sqlite":
        return
    shut_down(request.getfixturevalue("postgresql"), database_url)
    [trouble] = await SqlAway(database).look()
    assert trouble.severity == "critical" and "does not answer" in trouble.says


def shut_down(server, url: str) -> None:
    """Nobody gets into this database any more, and who is in is thrown out."""
    name = urlsplit(url).path.lstrip("/")
    server.run(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
    server.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")

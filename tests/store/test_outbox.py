"""The SQL outbox: what leaves with a commit, how often, in which order, and what becomes of rows that cannot."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from sqlalchemy import func, insert, select
from sqlalchemy.exc import ProgrammingError

from keystead.engine import Valkey, connect
from keystead.errors import DeclarationError, Invalid, NotFound, Unavailable
from keystead.jobs import HIGH_RESOURCE_COST, JobBook, JobRef, Jobs, job
from keystead.jobs.keys import JOBS, QUEUES, Queue
from keystead.keys import Channel, Keyspace, Registry
from keystead.settings import ValkeySettings
from keystead.store import Database, SqlOutbox
from keystead.store import outbox as outbox_module
from keystead.store.keys import SENT_AND_GONE_SECONDS, STORE, sent_mark
from keystead.store.outbox_relay import MOST_BYTES
from keystead.store.tables import OUTBOX
from keystead.testing.proxy import FaultProxy
from keystead.testing.server import LocalServer

from .mortal import MortalDatabase, MortalValkey, fates

NEWS = Keyspace("news", tag="news")
NEWS_CHANNEL: Channel[str] = Channel(NEWS, "ps:news:{paper}", str, purpose="a test", writers=("t",), readers=("t",))


@job(name="runners.plain")
def plain(n: int) -> None: ...


@job(name="runners.heavy", category=HIGH_RESOURCE_COST)
def heavy(n: int) -> None: ...


@job(name="runners.kept", keep_seconds=60.0)
def kept(n: int) -> None: ...


@pytest_asyncio.fixture
async def outbox(database: Database, valkey: Valkey) -> SqlOutbox:
    """On one server; tests that are about keys use the topologies too."""
    return SqlOutbox(database, valkey)


async def numbers(valkey: Valkey, queue: str = "") -> list[int]:
    return [record.kwargs["n"] for record in await Queue(queue).work.queue.range(valkey)]


async def rows(database: Database) -> int:
    async with database.reading() as sql:
        return (await sql.execute(select(func.count()).select_from(OUTBOX))).scalar_one()


async def write(database: Database, outbox: SqlOutbox, many: Iterable[int], queue: str = "") -> list[str]:
    async with database.transaction() as sql:
        return [await outbox.enqueue(sql, "runners.plain", queue=queue, n=n) for n in many]


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await holds():
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def running(outbox: SqlOutbox) -> Any:
    task = asyncio.create_task(outbox.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_what_was_committed_leaves_once_and_what_was_undone_never(database: Database, server: Valkey) -> None:
    """All kinds of jobs, each where ``Jobs`` would have put it; nothing else remains, in the table or on the server."""
    book = JobBook()
    book.add(plain)
    outbox = SqlOutbox(database, server, book)
    async with database.transaction() as sql:
        await outbox.enqueue(sql, "runners.plain", n=1)
        await outbox.enqueue(sql, plain, queue="mail", n=2)
        await outbox.enqueue(sql, heavy, n=3)
        later = await outbox.enqueue(sql, kept, at=4e9, n=4)
        now = await outbox.enqueue(sql, kept, queue="mail", n=5)
        assert await outbox.relay() == 0
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as sql:
            await outbox.enqueue(sql, plain, n=99)
            raise ZeroDivisionError
    assert await outbox.relay() == 5
    assert await outbox.relay() == 0

    assert await numbers(server) == [1] and await numbers(server, "mail") == [2, 5]
    assert [record.kwargs["n"] for record in await Queue().category(HIGH_RESOURCE_COST.id).range(server)] == [3]
    assert [(record.uid, due) for record, due in await Queue().delayed.range(server)] == [(later, 4e9)]
    states = [await Queue().job(later).get(server), await Queue("mail").job(now).get(server)]
    assert [(state.name, state.status) for state in states if state] == [
        ("runners.kept", "delayed"), ("runners.kept", "queued")
    ]
    assert await QUEUES.at().members(server) == ["mail"]
    assert await rows(database) == 0
    registry = Registry([JOBS, STORE], layout=server.layout)
    for node in await server.nodes():
        assert [key for key in await node.keys("*") if registry.resolve(key) is None] == []


async def test_a_queued_job_is_the_record_that_the_client_would_have_queued(
    database: Database, outbox: SqlOutbox, valkey: Valkey
) -> None:
    (uid,) = await write(database, outbox, [1])
    await outbox.relay()
    await Jobs(valkey).enqueue("runners.plain", n=1)
    ours, theirs = [msgspec.to_builtins(record) for record in await Queue().work.queue.range(valkey)]
    assert ours["uid"] == uid
    assert {**ours, "uid": "", "queued_at": 0} == {**theirs, "uid": "", "queued_at": 0}


async def test_a_job_that_was_put_down_earlier_is_queued_as_it_was_written(database: Database, valkey: Valkey) -> None:
    book = JobBook()
    book.add(plain)
    outbox = SqlOutbox(database, valkey, book)
    refs = [JobRef("runners.plain", {"since": "renamed"}), JobRef("runners.gone", {"queue": "q", "at": 1, "sql": 2})]
    async with database.transaction() as sql:
        for ref in refs:
            await outbox.enqueue_ref(sql, ref)
    await outbox.relay()
    assert [JobRef(record.name, record.kwargs) for record in await Queue().work.queue.range(valkey)] == refs


async def test_dying_anywhere_queues_each_job_once(database: Database, valkey: Valkey) -> None:
    """The relay dies at every place there is; another one follows. Announcements may come twice, jobs may not."""
    for fate in fates():
        await valkey.flushall()
        outbox = SqlOutbox(database, valkey)
        async with database.transaction() as sql:
            for n in range(3):
                await outbox.enqueue(sql, "runners.plain", queue="mail" if n == 2 else "", n=n)
            await outbox.enqueue(sql, "runners.plain", at=4e9, n=9)
            await outbox.announce(sql, NEWS_CHANNEL.at("morning"), "hello")
        with contextlib.suppress(BaseException):
            mortal = SqlOutbox(MortalDatabase(database, fate), MortalValkey(valkey, fate))  # type: ignore[arg-type]
            await mortal.relay()
        await outbox.relay()
        assert await numbers(valkey) == [0, 1] and await numbers(valkey, "mail") == [2]
        assert await Queue().delayed.size(valkey) == 1
        assert await rows(database) == 0
        if not fate.dead:
            break


async def test_rows_that_could_not_be_deleted_are_deleted_before_anything_else(
    database: Database, outbox: SqlOutbox, valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> Any:
        raise Unavailable("the database is away")

    await write(database, outbox, [1, 2])
    with monkeypatch.context() as patched:
        patched.setattr(database, "transaction", away)
        for _ in range(3):
            with pytest.raises(Unavailable):
                await outbox.relay()
    # Even with no mark left to tell, this relay knows what it has done.
    assert await numbers(valkey) == [1, 2]
    await valkey.delete(*await valkey.keys("store:outbox:sent:*"))
    assert await outbox.relay() == 0
    assert await numbers(valkey) == [1, 2] and await rows(database) == 0


async def test_relays_beside_each_other_double_lose_and_disorder_nothing(database_url: str, server: Valkey) -> None:
    async with Database.open(database_url) as one, Database.open(database_url) as other:
        outboxes = [SqlOutbox(one, server), SqlOutbox(other, server), SqlOutbox(one, server)]
        for first in range(0, 300, 50):
            await write(one, outboxes[0], range(first, first + 50))
            await write(other, outboxes[1], range(first, first + 50), queue="mail")

        async def drain(outbox: SqlOutbox, most: int) -> None:
            while await outbox.relay(most):
                pass

        await asyncio.gather(*map(drain, outboxes, (7, 40, 500)))
        assert await numbers(server) == list(range(300)) == await numbers(server, "mail")
        assert await rows(one) == 0


async def test_a_mark_is_kept_only_briefly_once_its_row_is_gone(
    database: Database, outbox: SqlOutbox, valkey: Valkey
) -> None:
    (uid,) = await write(database, outbox, [1])
    await outbox.relay()
    left = await valkey.pttl(sent_mark("", uid).name(valkey.layout))
    assert 0 < left <= SENT_AND_GONE_SECONDS * 1000


async def test_one_turn_takes_no_more_than_fits_in_memory(
    database: Database, outbox: SqlOutbox, valkey: Valkey
) -> None:
    async with database.transaction() as sql:
        for n in range(12):
            await outbox.enqueue(sql, "runners.plain", n=n, text="x" * 1_000_000)
    assert await outbox.relay() == MOST_BYTES // 1_000_000
    assert await outbox.relay() == 4
    assert await numbers(valkey) == list(range(12))


async def test_rows_that_cannot_be_delivered_are_kept_with_the_reason(
    database: Database, outbox: SqlOutbox, valkey: Valkey
) -> None:
    good = {"uid": "u1", "kind": "job", "queue": "", "due_at": 0.0, "channel": b"", "shard_channel": b"",
            "raw": b'{"name":"a","kwargs":{"n":1},"queued_at":1,"uid":"u1"}', "written_at": 1.0}
    bad = [{"raw": b"\xff{"}, {"raw": b'{"name":"a"}'}, {"kind": "parrot"}, {"uid": "u2"}, {"queue": "no\nqueue"},
           {"due_at": float("inf")}]
    async with database.transaction() as sql:
        for change in [{}, *bad]:
            await sql.execute(insert(OUTBOX).values(**{**good, **change}))
    await write(database, outbox, [2])
    assert await outbox.relay() == 8
    assert await numbers(valkey) == [1, 2]
    counts = await outbox.counts()
    assert (counts.waiting, counts.failed, counts.oldest_at) == (0, 6, None)
    reasons = [failure.reason for failure in sorted(await outbox.failures(), key=lambda failure: failure.number)]
    for reason, part in zip(reasons, ["", "missing", "parrot", "another uid", "queue", "no time"], strict=True):
        assert part in reason and reason
    assert await outbox.relay() == 0  # they stand in nobody's way


async def test_a_queue_with_a_wrong_key_stops_no_other_and_can_be_mended(
    database: Database, outbox: SqlOutbox, valkey: Valkey
) -> None:
    await valkey.set(Queue("broken").work.queue.name(valkey.layout), "something else")
    await write(database, outbox, [1, 2], queue="broken")
    await write(database, outbox, [3])
    assert await outbox.relay() == 3
    assert await numbers(valkey) == [3]
    failures = sorted(await outbox.failures(), key=lambda failure: failure.number)
    assert len(failures) == 2 and all("holds something else" in failure.reason for failure in failures)

    await valkey.delete(Queue("broken").work.queue.name(valkey.layout))
    await outbox.discard(failures[0].number)
    await outbox.retry(failures[1].number)
    assert await outbox.relay() == 1
    assert await numbers(valkey, "broken") == [2]
    for step in (outbox.retry, outbox.discard):
        with pytest.raises(NotFound, match="not among those that failed"):
            await step(failures[1].number)


async def test_a_wrong_key_fails_the_jobs_that_need_it_and_no_other_of_their_queue(
    database: Database, outbox: SqlOutbox, valkey: Valkey
) -> None:
    for place in (Queue().category(HIGH_RESOURCE_COST.id), QUEUES.at()):
        await valkey.set(place.name(valkey.layout), "something else")
    async with database.transaction() as sql:
        await outbox.enqueue(sql, plain, n=1)
        await outbox.enqueue(sql, heavy, n=2)
        await outbox.enqueue(sql, plain, n=3)
        await outbox.enqueue(sql, plain, queue="mail", n=4)
    assert await outbox.relay() == 4
    assert await numbers(valkey) == [1, 3] and await numbers(valkey, "mail") == [4]
    (failure,) = await outbox.failures()
    assert "holds something else" in failure.reason
    await valkey.set(Queue("late").delayed.name(valkey.layout), "something else")
    async with database.transaction() as sql:
        later = await outbox.enqueue(sql, kept, queue="late", at=4e9, n=5)
        await outbox.enqueue(sql, plain, queue="late", n=6)
    assert await outbox.relay() == 2
    assert await numbers(valkey, "late") == [6] and await Queue("late").job(later).get(valkey) is None


async def test_an_announcement_is_heard_if_its_transaction_was_committed(database: Database, server: Valkey) -> None:
    outbox, channel = SqlOutbox(database, server), NEWS_CHANNEL.at("morning")
    async with server.hub().subscribe(channel) as listener:
        with pytest.raises(ZeroDivisionError):
            async with database.transaction() as sql:
                await outbox.announce(sql, channel, "never")
                raise ZeroDivisionError
        async with database.transaction() as sql:
            for word in ("first", "second"):
                await outbox.announce(sql, channel, word)
        assert await outbox.relay() == 2
        async with asyncio.timeout(30):
            heard = [channel.decode((await anext(listener)).payload) for _ in range(2)]
    assert heard == ["first", "second"]
    assert await rows(database) == 0


async def test_announcements_that_may_not_be_published_fail_and_stop_no_job(
    database: Database, valkey: Valkey, valkey_server: LocalServer
) -> None:
    await valkey.execute_command("ACL", "SETUSER", "mute", "on", "nopass", "~*", "+@all", "resetchannels")
    client = await connect(valkey_server.url.replace("unix://", "unix://mute:x@", 1))
    try:
        outbox = SqlOutbox(database, client)
        async with database.transaction() as sql:
            for word in ("first", "second"):
                await outbox.announce(sql, NEWS_CHANNEL.at("morning"), word)
            await outbox.enqueue(sql, plain, n=1)
        assert [await outbox.relay(2), await outbox.relay(2)] == [2, 1]
        assert await numbers(valkey) == [1]
        assert ["does not let us publish" in failure.reason for failure in await outbox.failures()] == [True, True]
    finally:
        await client.aclose()
        await valkey.execute_command("ACL", "DELUSER", "mute")


async def test_a_commit_of_this_process_wakes_the_relay_at_once(
    database: Database, outbox: SqlOutbox, valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "POLL_SECONDS", 3600.0)

    async def arrived(n: int) -> bool:
        return n in await numbers(valkey)

    async with running(outbox):
        for n in range(3):
            await write(database, outbox, [n])
            await until(lambda n=n: arrived(n))


async def test_a_commit_of_another_process_is_found_by_polling(
    database: Database, outbox: SqlOutbox, valkey: Valkey
) -> None:
    async def arrived() -> bool:
        return await numbers(valkey) == [1]

    async with running(outbox):
        await until(lambda: _idle(outbox))
        await write(database, SqlOutbox(database, valkey), [1])  # wakes only its own
        await until(arrived)


async def _idle(outbox: SqlOutbox) -> bool:
    return (await outbox.counts()).waiting == 0


async def test_an_outage_of_valkey_is_ridden_out(
    database: Database, valkey: Valkey, fault_proxy: Callable[[], Awaitable[FaultProxy]]
) -> None:
    proxy = await fault_proxy()
    client = await connect(proxy.url, settings=ValkeySettings(outage_seconds=0.3))
    outbox = SqlOutbox(database, client)

    async def arrived() -> bool:
        return await numbers(valkey) == list(range(20))

    try:
        async with running(outbox):
            await write(database, outbox, range(10))
            await proxy.refuse()
            proxy.cut()
            await write(database, outbox, range(10, 20))
            with pytest.raises(Unavailable):
                await SqlOutbox(database, client).relay()
            await proxy.restore()
            await until(arrived)
            await until(lambda: _idle(outbox))
    finally:
        await client.aclose()


@pytest.mark.parametrize(
    "error", [Unavailable("away"), Invalid("a replica takes no changes"), ProgrammingError("", {}, ValueError())]
)
async def test_an_outage_of_the_database_is_ridden_out(
    error: Exception, database: Database, outbox: SqlOutbox, valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = asyncio.Event()

    def away() -> Any:
        failed.set()
        raise error

    async def arrived() -> bool:
        return await numbers(valkey) == [1]

    await write(database, outbox, [1])
    with monkeypatch.context() as patched:
        patched.setattr(database, "reading", away)
        async with running(outbox):
            async with asyncio.timeout(30):
                await failed.wait()
            patched.undo()
            await until(arrived)


async def test_what_cannot_be_queued_fails_in_front_of_whoever_wrote_it(database: Database, outbox: SqlOutbox) -> None:
    async with database.transaction() as sql:
        with pytest.raises(Invalid, match="it takes"):
            await outbox.enqueue(sql, plain, m=1)
        with pytest.raises(DeclarationError, match="queue"):
            await outbox.enqueue(sql, plain, queue="no\nqueue", n=1)
        with pytest.raises(Invalid, match="some unix time"):
            await outbox.enqueue(sql, plain, at=float("nan"), n=1)
        with pytest.raises(Invalid, match="cannot be written as JSON"):
            await outbox.enqueue(sql, "by.name", n=object())
        with pytest.raises(Invalid, match="at most 8,388,608 bytes"):
            await outbox.announce(sql, NEWS_CHANNEL.at("morning"), "x" * (MOST_BYTES + 1))
    async with database.reading() as sql:
        with pytest.raises(Invalid, match="in no transaction"):
            await outbox.enqueue(sql, plain, n=1)
    with pytest.raises(Invalid, match="1 to 5000 rows"):
        await outbox.relay(0)
    assert await rows(database) == 0

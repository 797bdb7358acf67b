"""Enqueuing: what lies in the queue afterwards, alone or inside a caller's transaction."""

import msgspec
import pytest

from keystead.engine import NotReplicated, Valkey
from keystead.errors import Invalid, NotFound
from keystead.jobs import HIGH_RESOURCE_COST, JobBook, JobRef, Jobs, job
from keystead.jobs.keys import Queue
from keystead.jobs.models import JobRecord


@job(name="runners.greet")
async def greet(name: str, times: int = 1) -> None: ...


@job(name="runners.render", category=HIGH_RESOURCE_COST)
async def render(uid: str) -> None: ...


@pytest.fixture
def jobs(server: Valkey) -> Jobs:
    return Jobs(server, JobBook.of(greet, render))


async def queued(server: Valkey, reference) -> list[JobRecord]:
    raws = await server.run(("LRANGE", reference.name(server.layout), 0, -1), list)
    return [msgspec.json.decode(raw, type=JobRecord) for raw in raws]


async def test_a_job_is_one_documented_record(server: Valkey, jobs: Jobs) -> None:
    handle = await jobs.enqueue(greet, name="Ada")
    [raw] = await server.run(("LRANGE", Queue().work.queue.name(server.layout), 0, -1), list)
    found = msgspec.json.decode(raw)
    assert found == {"name": "runners.greet", "kwargs": {"name": "Ada"}, "queued_at": found["queued_at"],
                     "uid": handle.uid}


async def test_jobs_are_queued_in_order(server: Valkey, jobs: Jobs) -> None:
    for n in range(3):
        await jobs.enqueue(greet, name=str(n))
    assert [record.kwargs["name"] for record in await queued(server, Queue().work.queue)] == ["0", "1", "2"]


async def test_a_job_and_the_state_it_belongs_to_are_written_in_one_step(server: Valkey, jobs: Jobs) -> None:
    state = Queue().paused.name(server.layout)  # any key of the same slot
    async with server.pipeline(transaction=True) as block:
        block.run(("SET", state, "x"), bool)
        handle = jobs.options(on=block).enqueue(greet, name="Ada")
        assert await server.exists(state) == 0
        await block.execute()
    assert (await handle).is_new
    assert await server.exists(state) == 1 and len(await queued(server, Queue().work.queue)) == 1


async def test_a_job_of_another_category_is_sorted_when_it_is_enqueued(server: Valkey, jobs: Jobs) -> None:
    await jobs.enqueue(render, uid="x")
    await jobs.enqueue("runners.render", uid="y")
    assert [record.kwargs["uid"] for record in await queued(server, Queue().category(1))] == ["x", "y"]


async def test_a_named_queue_has_a_list_of_its_own(server: Valkey, jobs: Jobs) -> None:
    handle = await jobs.options(queue="mail").enqueue(greet, name="Ada")
    assert handle.queue == "mail"
    assert len(await queued(server, Queue("mail").work.queue)) == 1 and not await queued(server, Queue().work.queue)


async def test_many_travel_together(server: Valkey, jobs: Jobs) -> None:
    uids = await jobs.enqueue_many(greet, ({"name": str(n)} for n in range(1234)))
    records = await queued(server, Queue().work.queue)
    assert [record.uid for record in records] == uids and len(set(uids)) == 1234
    assert [record.kwargs["name"] for record in records] == [str(n) for n in range(1234)]


async def test_many_inside_a_transaction(server: Valkey, jobs: Jobs) -> None:
    async with server.pipeline(transaction=True) as block:
        uids = await jobs.options(on=block).enqueue_many(greet, [{"name": "a"}, {"name": "b"}])
        assert not await queued(server, Queue().work.queue)
        await block.execute()
    assert [record.uid for record in await queued(server, Queue().work.queue)] == uids


async def test_a_delayed_job_waits_until_it_is_due(server: Valkey, jobs: Jobs) -> None:
    await jobs.options(delay_seconds=60).enqueue(greet, name="Ada")
    await jobs.options(at=5_000_000_000).enqueue(greet, name="Bob")
    [(first, due), (second, at)] = await Queue().delayed.range(server)
    assert (first.kwargs["name"], second.kwargs["name"], at) == ("Ada", "Bob", 5_000_000_000)
    assert (first.due_at, second.due_at) == (due, at), "they wait for a worker only from then on"
    assert due == pytest.approx(first.queued_at + 60) and not await queued(server, Queue().work.queue)


async def test_a_unique_key_gives_the_job_that_has_it(server: Valkey, jobs: Jobs) -> None:
    first = await jobs.options(unique="ada").enqueue(greet, name="Ada")
    again = await jobs.options(unique="ada").enqueue(greet, name="Ada")
    other = await jobs.options(unique="bob").enqueue(greet, name="Bob")
    assert first.is_new and not again.is_new and again.uid == first.uid and other.is_new
    assert len(await queued(server, Queue().work.queue)) == 2


async def test_a_job_waits_for_others(server: Valkey, jobs: Jobs) -> None:
    parent = await jobs.options(keep_seconds=60).enqueue(greet, name="first")
    child = await jobs.options(after=[parent]).enqueue(greet, name="second")
    assert [record.kwargs["name"] for record in await queued(server, Queue().work.queue)] == ["first"]
    state = await child.state()
    assert state is not None and state.status == "waiting"
    with pytest.raises(NotFound, match="nobody is not known"):
        await jobs.options(after=["nobody"]).enqueue(greet, name="third")


async def test_a_batch_is_queued_whole(server: Valkey, jobs: Jobs) -> None:
    calls = [(greet, {"name": str(n)}) for n in range(3)]
    batch = await jobs.enqueue_batch([*calls, (render, {"uid": "x"})], then=JobRef("runners.greet", {"name": "all"}))
    progress = await batch.progress()
    assert (progress.total, progress.left, progress.failed) == (4, 4, 0)
    assert len(await queued(server, Queue().work.queue)) == 3 and len(await queued(server, Queue().category(1))) == 1


async def test_bad_input_is_refused_before_anything_is_queued(server: Valkey, jobs: Jobs) -> None:
    with pytest.raises(Invalid, match=r"unexpected keyword argument 'nme'"):
        await jobs.enqueue(greet, name="Ada", nme="Ada")
    with pytest.raises(Invalid, match="missing a required argument"):
        await jobs.enqueue("runners.greet")
    with pytest.raises(Invalid, match="arguments travel by name"):
        await jobs.enqueue(greet, "Ada")
    with pytest.raises(Invalid, match="cannot be written as JSON"):
        await jobs.enqueue(greet, name=object())
    with pytest.raises(Invalid, match="at most 1,048,576 travel in a queue"):
        await jobs.enqueue(greet, name="x" * 2_000_000)
    with pytest.raises(Invalid, match="after a delay or at a time, not both"):
        jobs.options(delay_seconds=1, at=1)
    with pytest.raises(Invalid, match="delay"):
        jobs.options(delay=1)
    with pytest.raises(Invalid, match="at least one job"):
        await jobs.enqueue_batch([])
    with pytest.raises(Invalid, match="takes no options but"):
        await jobs.options(unique="x").enqueue_many(greet, [])
    assert not await queued(server, Queue().work.queue)


async def test_a_job_the_book_does_not_know_can_be_enqueued_for_another_program(server: Valkey, jobs: Jobs) -> None:
    await jobs.enqueue("elsewhere.run", anything=[1, 2])
    [record] = await queued(server, Queue().work.queue)
    assert (record.name, record.kwargs) == ("elsewhere.run", {"anything": [1, 2]})


async def test_connect_makes_a_client_of_its_own(valkey: Valkey, valkey_server) -> None:
    async with Jobs.connect(valkey_server.url) as jobs:
        await jobs.enqueue("a.b")
        assert await jobs.valkey.llen("jobs:hot") == 1


async def test_job_counts_as_queued_when_replicas_have_it(valkey: Valkey, valkey_server) -> None:
    async with Jobs.connect(valkey_server.url, replicas=1) as jobs:
        with pytest.raises(NotReplicated):  # the server has none
            await jobs.enqueue("a.b")


@pytest.mark.parametrize("wishes", [
    {"delay_seconds": float("nan")}, {"at": float("inf")}, {"keep_seconds": -1}, {"keep_seconds": 1e12},
    {"unique": "x", "unique_seconds": 0}, {"unique": "x", "unique_seconds": 1e9},
])
def test_times_that_make_no_sense_are_refused(valkey: Valkey, wishes) -> None:
    with pytest.raises(Invalid):
        Jobs(valkey).options(**wishes)


async def test_a_batch_refuses_wishes_that_it_would_not_fulfil(server: Valkey, jobs: Jobs) -> None:
    async with server.pipeline(transaction=True) as block:
        for wishes in ({"delay_seconds": 1.0}, {"on": block}):
            with pytest.raises(Invalid, match="no options but queue"):
                await jobs.options(**wishes).enqueue_batch([(greet, {"name": "Ada"})])
    assert await Queue().work.length(server) == 0


async def test_a_book_that_is_filled_later_is_the_one_that_is_asked(valkey: Valkey) -> None:
    book = JobBook()
    jobs = Jobs(valkey, book)

    async def greet(name: str) -> None: ...

    book.register("late.greet", greet)
    with pytest.raises(Invalid, match=r"late\.greet"):
        await jobs.enqueue("late.greet", nme="Ada")

"""What is read once for all viewers."""

import asyncio

import pytest

from keystead.clock import SystemClock
from keystead.jobs import (
    ROOMS_QUEUE,
    Calendar,
    Inspection,
    JobBook,
    Recurring,
    RecurringList,
    RecurringLoop,
    Scheduler,
    Worker,
    WorkerSettings,
)
from keystead.jobs.keys import Queue
from keystead.web import jobs_watch as jobs_watch_module
from keystead.web.jobs_watch import SHOWN_JOBS, JobsWatch

from .jobs_at_hand import bury, greet, hold, jobs_on, working


@pytest.fixture
def watch(valkey):
    return JobsWatch(valkey, Inspection(valkey, SystemClock()))


async def test_server_that_never_saw_a_job_is_bare(watch):
    await watch.read()
    assert watch.look.is_bare and watch.problem is None and not watch.is_stale()


async def test_what_our_own_rooms_do_is_not_the_program_unless_it_failed(watch, valkey):
    rooms = jobs_on(valkey).options(queue=ROOMS_QUEUE)
    await rooms.enqueue(greet, name="Ada")
    worker = Worker(valkey, JobBook.of(greet), WorkerSettings(queues=(ROOMS_QUEUE,), in_totals=False))
    running = asyncio.ensure_future(worker.run())
    async with asyncio.timeout(30):
        while not worker.tally.done:
            await asyncio.sleep(0.02)
    await watch.read()
    worker.stop()
    await running
    assert watch.look.is_bare and not watch.look.snapshot.workers
    await watch.read()
    assert watch.look.is_bare, "what was done is not told as the program's"
    await rooms.enqueue(greet, name="Ada")
    await bury(valkey, "it broke", queue=ROOMS_QUEUE)
    await watch.read()
    assert not watch.look.is_bare and ROOMS_QUEUE in [one.name for one in watch.look.snapshot.queues]


@pytest.mark.parametrize("fill", [
    lambda valkey: jobs_on(valkey).enqueue(greet, name="Ada"),
    lambda valkey: jobs_on(valkey).options(delay_seconds=600).enqueue(greet, name="Ada"),
    lambda valkey: jobs_on(valkey).options(queue="mail", delay_seconds=600).enqueue(greet, name="Ada"),
    lambda valkey: Scheduler(valkey).schedule("shop.greet", {"name": "Ada"}, delay_seconds=600),
    lambda valkey: valkey.zadd("rjobs", {"17": 1.0}),
    lambda valkey: valkey.hset("jobs:totals", "done", 1),
])
async def test_anything_at_all_ends_that(watch, valkey, fill):
    await fill(valkey)
    await watch.read()
    assert not watch.look.is_bare


async def test_first_jobs_of_each_place_over_all_queues(watch, valkey):
    jobs = jobs_on(valkey)
    for number in range(SHOWN_JOBS):
        await jobs.enqueue(greet, name=str(number))
    for number in range(3):
        await jobs.options(queue="mail").enqueue(greet, name=f"mail {number}")
    await hold(valkey, 1, queue="mail")
    await watch.read()
    queued, running = watch.look.listed["queued"], watch.look.listed["running"]
    assert queued.total == SHOWN_JOBS + 2 and len(queued.jobs) == SHOWN_JOBS
    assert [(job.queue, job.record.kwargs, job.worker) for job in running.jobs] == [
        ("mail", {"name": "mail 0"}, "holder")
    ]


async def test_newest_that_ended_are_read_by_how_they_ended(watch, valkey):
    await jobs_on(valkey).enqueue(greet, name="Ada")
    async with working(valkey) as worker:
        async with asyncio.timeout(30):
            while not worker.tally.done:
                await asyncio.sleep(0.02)
    await watch.read()
    assert {status: page.total for status, page in watch.look.ended.items()} == \
        {"succeeded": 1, "failed": 0, "cancelled": 0}
    assert watch.look.ended["succeeded"].jobs[0].name == "shop.greet"


async def test_failed_ones_are_grouped_over_all_queues_largest_first(watch, valkey):
    jobs = jobs_on(valkey)
    for _ in range(3):
        await jobs.enqueue(greet, name="Ada")
    await jobs.options(queue="mail").enqueue(greet, name="Ada")
    await bury(valkey, "ValueError: no", queue="mail")
    await bury(valkey, "KeyError: 17", most=2)
    await bury(valkey, "ValueError: no")
    await watch.refresh()
    assert [(group.queue, group.error, group.count) for group in watch.groups] == [
        ("hot", "KeyError: …", 2), ("hot", "ValueError: no", 1), ("mail", "ValueError: no", 1)
    ]


async def test_recurring_jobs_of_all_queues_have_names_and_times(watch, valkey):
    for queue, name in (("", "shop.greet"), ("mail", "shop.mail")):
        hourly = Recurring(name, Calendar("UTC", minutes=(0,), seconds=(0,)))
        await RecurringLoop(valkey, RecurringList([hourly], queue=queue)).step()
        await Queue(queue).recurring.last.set(valkey, hourly.hash, 900)
    await watch.read()
    assert {(one.queue, one.name, one.last_at) for one in watch.look.recurring} == {
        ("hot", "shop.greet", 900), ("mail", "shop.mail", 900)
    }
    assert all(one.next_at % 3600 == 0 for one in watch.look.recurring)


async def test_foreign_key_under_a_name_of_ours_is_told_and_hides_nothing_known(watch, valkey):
    await watch.read()
    before = watch.look
    await valkey.set("jobs:hot", "of another program")
    await watch.read()
    assert "WRONGTYPE" in watch.problem and watch.look is before
    await valkey.delete("jobs:hot")
    await watch.read()
    assert watch.problem is None and watch.look is not before


async def test_cluster_is_read_as_well(cluster):
    watch = JobsWatch(cluster, Inspection(cluster, SystemClock()))
    jobs = jobs_on(cluster)
    for queue in ("", "mail"):
        await jobs.options(queue=queue).enqueue(greet, name="Ada")
        await bury(cluster, "KeyError: 17", queue=queue)
    await jobs.enqueue(greet, name="Bob")
    await Scheduler(cluster).schedule("shop.greet", {"name": "Ada"}, delay_seconds=600)
    await watch.refresh()
    assert watch.problem is None and [group.queue for group in watch.groups] == ["hot", "mail"]
    assert watch.look.listed["queued"].total == 1 and watch.look.tasks.scheduled == 1


async def test_nothing_is_read_while_nobody_looks(watch, monkeypatch):
    monkeypatch.setattr(jobs_watch_module, "WANTED_SECONDS", 0.05)
    looks = 0
    read = watch.read

    async def counted():
        nonlocal looks
        looks += 1
        await read()

    monkeypatch.setattr(watch, "read", counted)
    monkeypatch.setattr(jobs_watch_module, "EVERY_SECONDS", 0.01)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watch.run())
        await asyncio.sleep(0.3)
        assert looks == 0
        async with asyncio.timeout(60):
            while not looks:
                watch.want()
                await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        seen = looks
        await asyncio.sleep(1)
        assert looks == seen
        running.cancel()


async def test_groups_follow_by_themselves(watch, valkey):
    await jobs_on(valkey).enqueue(greet, name="Ada")
    await bury(valkey, "KeyError: 17")
    async with asyncio.TaskGroup() as tasks:
        work = [tasks.create_task(watch.run()), tasks.create_task(watch.run_groups())]
        async with asyncio.timeout(60):
            while not watch.groups:
                watch.want()
                await asyncio.sleep(0.05)
        for task in work:
            task.cancel()
    assert watch.groups[0].count == 1

"""What an installation does by itself."""

import asyncio
from contextlib import asynccontextmanager
from types import ModuleType

from keystead.app import App
from keystead.engine import Valkey
from keystead.jobs import ROOMS_QUEUE, FairJobs, JobBook, Jobs, Recurring, RecurringList, cron, job, job_list
from keystead.jobs.keys import Queue
from keystead.members.stats import USERS
from keystead.settings import load_settings
from keystead.stats.keys import ROTATION_RUN
from keystead.testing.server import LocalServer
from keystead.web.housekeeping import Housekeeping


async def until(holds) -> None:  # type: ignore[no-untyped-def]
    async with asyncio.timeout(30):
        while not await holds():
            await asyncio.sleep(0.05)


@asynccontextmanager
async def keeping(running):  # type: ignore[no-untyped-def]
    task = asyncio.ensure_future(Housekeeping(running).run())
    try:
        yield
    finally:
        task.cancel()
        async with asyncio.timeout(20):
            await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()


async def test_what_was_missed_is_made_up_for_and_whoever_is_created_is_counted(
    valkey: Valkey, valkey_server: LocalServer, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = App(load_settings({"valkey.url": valkey_server.url}, environment={}))
    calendar = Queue(ROOMS_QUEUE).recurring

    async def in_force() -> bool:
        return len(await calendar.next.range(valkey, 0, -1)) == len(running.calendar)

    async def rotated() -> bool:
        run = await ROTATION_RUN.at().get(valkey)
        return run is not None and run.finished_at is not None

    async with app.running() as running:
        async with keeping(running):
            await until(in_force)
        assert not await rotated(), "it is not the hour"
        for member, _ in await calendar.next.range(valkey, 0, -1):  # days pass, and nobody is there
            await calendar.next.add(valkey, member, running.clock.now() - 3600)
        created = await running.users.ensure("direct", "provider-7", given_name="Ada")
        async with keeping(running):
            await until(rotated)
        assert (await USERS.read(valkey, USERS.month_of(created.created_at))).total == 1
        assert not await valkey.exists("jobs:totals"), "our own jobs are not the program's"


async def test_jobs_of_the_program_are_run_too_tenants_and_calendar_included(
    valkey: Valkey, valkey_server: LocalServer, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program, ran = ModuleType("shop"), []

    @job(name="shop.greet")
    async def greet(name: str) -> None:
        ran.append(name)

    @job(name="shop.tick")
    async def tick() -> None:
        ran.append("tick")

    vars(program).update(book=JobBook.of(greet), tick=tick, often=RecurringList(
        [Recurring(tick, cron("* * * * *", "UTC"))], queue="often"))
    app = App(load_settings({"valkey.url": valkey_server.url, "program.queues": "hot,mail"}, environment={}), [program])

    async def all_ran() -> bool:
        return {"hot", "mail", "tenant", "tick"} <= set(ran)

    async with app.running() as running:
        jobs = Jobs(running.valkey, clock=running.clock)
        await jobs.enqueue("shop.greet", name="hot")
        await jobs.options(queue="mail").enqueue("shop.greet", name="mail")
        await FairJobs(jobs).enqueue("quiet", "shop.greet", {"name": "tenant"})
        task = asyncio.ensure_future(Housekeeping(running).run())
        async with asyncio.timeout(150):  # a minute may have to begin
            while not await all_ran():
                assert not task.done()
                await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_who_only_answers_runs_no_jobs(
    valkey: Valkey, valkey_server: LocalServer, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = App(load_settings({"valkey.url": valkey_server.url}, environment={}))
    async with app.running(works=False, answers=True) as running:
        assert not Housekeeping(running).works
        await running.users.ensure("direct", "provider-8")
        async with keeping(running):
            async def queued() -> bool:
                return bool(await job_list(ROOMS_QUEUE).range(valkey))

            await until(queued)
        calendar = Queue(ROOMS_QUEUE).recurring
        assert not await calendar.next.range(valkey, 0, -1)

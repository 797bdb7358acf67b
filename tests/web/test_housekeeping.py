"""What an installation does by itself."""

import asyncio
from contextlib import asynccontextmanager

from keystead.app import App
from keystead.engine import Valkey
from keystead.jobs import ROOMS_QUEUE
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

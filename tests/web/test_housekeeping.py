"""What an installation does by itself."""

import asyncio

from keystead.app import App
from keystead.engine import Valkey
from keystead.members.stats import USERS
from keystead.settings import load_settings
from keystead.stats.keys import ROTATION_RUN
from keystead.testing.server import LocalServer
from keystead.web.housekeeping import Housekeeping


async def until(holds) -> None:  # type: ignore[no-untyped-def]
    async with asyncio.timeout(30):
        while not await holds():
            await asyncio.sleep(0.05)


async def test_an_installation_rotates_at_start_and_counts_whom_it_creates(
    valkey: Valkey, valkey_server: LocalServer, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = App(load_settings({"valkey.url": valkey_server.url}, environment={}))
    async with app.running() as running:
        keeping = asyncio.ensure_future(Housekeeping(running).run())
        member = await running.users.ensure("direct", "provider-7", given_name="Ada")

        async def rotated() -> bool:
            run = await ROTATION_RUN.at().get(valkey)
            return run is not None and run.finished_at is not None

        async def counted() -> bool:
            return (await USERS.read(valkey, USERS.month_of(member.created_at))).total == 1

        await until(rotated)
        await until(counted)
        keeping.cancel()
        async with asyncio.timeout(20):
            await asyncio.gather(keeping, return_exceptions=True)
        assert keeping.cancelled()

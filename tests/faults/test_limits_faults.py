"""Limits while the processes that use them are killed without warning."""

import asyncio
import random

from keystead.engine import Valkey
from keystead.testing.server import LocalServer

from .limits_user import BOTH, LOG, MOST, WINDOW
from .programs import programs


async def test_killed_users_never_exceed_a_limit_and_several_stay_in_step(
    valkey: Valkey, valkey_server: LocalServer
) -> None:
    rng = random.Random(9)
    async with programs("tests.faults.limits_user") as start:
        running = [await start(valkey_server.url) for _ in range(3)]
        for victim in (0, 1, 2, 0):
            await running[victim].hears("ready")
            await asyncio.sleep(rng.uniform(0.01, 0.1))
            await running[victim].kill()
            running[victim] = await start(valkey_server.url)
        async with asyncio.timeout(120):
            while await BOTH[0].key.at().get(valkey) != MOST or await WINDOW.key.at().get(valkey) != MOST:
                await asyncio.sleep(0.05)
        for program in running:
            await program.kill()
        everybody = start.started
    for word in ("window", "log", "both"):
        allowed = sum(len(program.words(word)) for program in everybody)
        assert MOST - 7 * 5 <= allowed <= MOST, f"{word}: only what the killed ones did not say is missing"
    assert [await limit.key.at().get(valkey) for limit in BOTH] == [MOST, MOST]
    assert await LOG.key.at().size(valkey) == MOST

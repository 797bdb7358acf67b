"""Holding back while a server is busy with others."""

import asyncio

import pytest

from keystead.engine import Valkey, connect
from keystead.errors import Unavailable
from keystead.survey import Sparing


async def test_work_on_a_server_that_stays_slow_is_ended(valkey: Valkey, fault_proxy) -> None:  # type: ignore[no-untyped-def]
    proxy = await fault_proxy()
    near = await connect(proxy.url)
    sparing = Sparing([valkey, near], late_seconds=0.1, give_up_seconds=0.5)
    await sparing.hold_back()
    proxy.delay(0.5)
    async with asyncio.timeout(60):
        with pytest.raises(Unavailable, match="answers slowly"):
            while True:
                await sparing.hold_back()
                await asyncio.sleep(0.05)
    await near.aclose()


async def test_server_that_answers_lets_the_work_go_on(valkey: Valkey) -> None:
    sparing = Sparing(await valkey.nodes(), late_seconds=30.0)
    for _ in range(500):
        await sparing.hold_back()

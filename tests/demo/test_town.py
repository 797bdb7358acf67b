"""The town lives: people, messages, tenants, failures; and finds its people again."""

import asyncio
import time
from pathlib import Path

import pytest

from keystead.demo import Town
from keystead.demo.plan import NOISY
from keystead.demo.town import TownClock

from .conftest import Installation, installed, until

pytestmark = pytest.mark.slow


async def _subs(client: Installation) -> dict[str, str]:
    found = await client.client.call("GET", "/users", limit=500)
    return {one["sub"]: one["given_name"] for one in found.body["items"]}


async def test_the_town_lives_and_a_second_life_goes_on_with_its_people(tmp_path: Path) -> None:
    said: list[str] = []
    async with installed(tmp_path, speed=60) as first:
        life = asyncio.create_task(Town(first.client, 7, said.append).live())
        get = first.client.call

        async def people() -> bool:
            return len(await _subs(first)) >= 40

        async def messages() -> bool:
            return len((await get("GET", "/sandbox/outbox", limit=500)).body["items"]) >= 3

        async def tenants() -> bool:
            found = {one["tenant"] for one in (await get("GET", "/tenants", busiest=True)).body["items"]}
            return NOISY in found and len(found) > 1

        async def failures() -> bool:
            return len((await get("GET", "/jobs/errors")).body["groups"]) >= 1

        for holds in (people, messages, tenants, failures):
            await until(holds, holds.__name__)
        assert not life.done()
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        before = await _subs(first)
    assert any("people live here" in line for line in said)
    async with installed(tmp_path, speed=60) as second:
        town = Town(second.client, 7, said.append)
        life = asyncio.create_task(town.live())

        async def back() -> bool:
            return len(town.residents) >= 40

        await until(back, "its people are back")
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        assert {resident.sub for resident in list(town.residents)[:40]} <= set(before)
    assert said[-1] != "40 people live here now"


async def test_a_server_that_is_away_is_waited_for() -> None:
    said: list[str] = []
    from keystead.demo import Client

    async with Client("http://127.0.0.1:1", "k") as client:
        life = asyncio.create_task(Town(client, 1, said.append).live())

        async def told() -> bool:
            return bool(said)

        await until(told, "it says that it waits")
        assert not life.done()
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
    assert len(said) == 1 and said[0].startswith("waiting for the server")


def test_the_towns_clock_learns_how_fast_time_goes() -> None:
    clock, now = TownClock(), time.monotonic()
    clock.learn(1000.0, now - 10)
    clock.learn(1000.0 + 600 * 5, now - 5)
    assert clock.speed == 600
    assert 1000 + 600 * 10 <= clock.now() < 1000 + 600 * 60

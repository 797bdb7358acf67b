"""Pages that stay open do not grow, nor does the server that keeps them up to date."""

import asyncio

import pytest

from tests.browser import MISSING, find_browser

from .dashboard_soak import Held, Soak, make_things_happen

pytestmark = [pytest.mark.slow, pytest.mark.browser]
SPEED = 5.0
UPDATES = 300


@pytest.mark.skipif(find_browser() is None, reason=MISSING)
async def test_neither_server_nor_page_grows_with_updates(tmp_path):
    directory = tmp_path / "data"
    async with Soak.open(directory, speed=SPEED, pages=("/", "/jobs")) as soak:
        happening = asyncio.create_task(make_things_happen(directory, every_seconds=0.1))
        try:
            await soak.wait_for_updates(UPDATES, most_seconds=180)  # everything that is kept for a while is kept by now
            before = await soak.held()
            await soak.wait_for_updates(UPDATES, most_seconds=180)
            after = await soak.held()
        finally:
            happening.cancel()
            await asyncio.gather(happening, return_exceptions=True)
    assert after.growth(before) == []


def test_growth_is_noticed():
    before = Held(0, 200, 100_000, 10, 3000, 200)
    assert Held(300, 205, 104_000, 11, 3100, 210).growth(before) == []
    assert len(Held(300, 300, 200_000, 30, 9000, 900).growth(before)) == 5

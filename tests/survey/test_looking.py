import pytest

from keystead.engine import lookout
from keystead.survey.looking import look_at
from keystead.survey.stride import Stride

from .entries import entry, inventory

DESCRIBED = inventory(entry("session:{token}", "hash", 3600), entry("config", "string", 0))


@pytest.fixture
async def look(valkey_server, valkey):
    for number in range(30):
        await valkey.hset(f"session:{number}", "user", number)
        await valkey.expire(f"session:{number}", 600)
        await valkey.set(f"stray:{number}", "x")
    await valkey.set("config", "x")
    async with lookout(valkey_server.url) as found:
        yield found


async def test_everything_is_counted_and_strays_become_patterns(look):
    live, reasons = await look_at(look, DESCRIBED)
    assert (reasons, live.whole, live.tally.keys) == ((), True, 61)
    assert live.tally.entries["session:{token}"].keys == 30
    (stray,) = live.strays.entries
    assert stray.pattern.startswith("stray:{") and stray.observed.keys == 30


async def test_narrowed_look_is_not_whole(look):
    live, _ = await look_at(look, DESCRIBED, match="session:*")
    assert (live.whole, live.tally.keys) == (False, 30)


async def test_server_that_goes_away_leaves_the_look_unfinished(look, valkey_server):
    asked = []

    def kill(done: int, total: int) -> None:
        if not asked:
            asked.append(done)
            valkey_server.kill()

    stride = Stride(page_keys=16)
    live, reasons = await look_at(look, DESCRIBED, stride=stride, progress=kill)
    valkey_server.restart()
    assert (live.unfinished, live.whole) == (True, False)
    assert "went away" in reasons[0]

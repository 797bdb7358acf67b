"""Presence: keys that expire unless beaten, read by the hundred; markers that only their connection removes."""

import asyncio
import random

import pytest

from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.keys import Keyspace, Lane, Layout, Registry
from keystead.patterns.presence import OnlineMarkers, Presence
from keystead.telemetry import counts
from keystead.testing.clock import MovableClock

SPACE = Keyspace("presencetest", tag="p")
PRESENCE = Presence(SPACE, "presence:{user_id}", tag="{user_id}", purpose="who is online")
LANES = Presence(SPACE, "here:{user_id}", tag=Lane("here", "user_id", lanes=4), grace_seconds=1.5, skip_seconds=1.0,
                 seconds=120, purpose="who is online, by lanes")
MARKERS = OnlineMarkers(SPACE, "chat:online:{room}:{user_id}", tag="{room}", purpose="who is in a room")


async def until(condition, seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.005)


async def commands(valkey: Valkey, name: str) -> int:
    total = 0
    for node in await valkey.nodes():
        found = (await node.info("commandstats")).get(f"cmdstat_{name}")
        total += found["calls"] if found else 0
    return total


async def test_beat_makes_somebody_online_until_it_expires(server: Valkey) -> None:
    await PRESENCE.beat(server, "u1")
    await PRESENCE.beat(server, "u2")
    assert await PRESENCE.online(server, ["u1", "u2", "u3"]) == {"u1", "u2"}
    assert 150 < await PRESENCE.key.at("u1").remaining_seconds(server) <= 180
    assert await PRESENCE.gone(server, "u1") and not await PRESENCE.gone(server, "u1")
    assert await PRESENCE.online(server, ["u1", "u2"]) == {"u2"}
    assert await PRESENCE.online(server, []) == set()


async def test_who_beats_every_minute_is_never_offline_and_who_stops_is_within_three(valkey, moving_clock) -> None:
    clock: MovableClock = moving_clock
    for _ in range(10):
        await PRESENCE.beat(valkey, "u1")
        for _ in range(6):
            clock.advance(10)
            assert await PRESENCE.online(valkey, ["u1"]) == {"u1"}
    clock.advance(100)
    assert await PRESENCE.online(valkey, ["u1"]) == {"u1"}
    clock.advance(20)
    assert await PRESENCE.online(valkey, ["u1"]) == set()


async def test_beats_of_one_process_are_written_once_in_a_while(server: Valkey) -> None:
    written = counts.value("presence_beats")
    async with LANES.open(server) as here:
        assert sum(await asyncio.gather(*(here.beat("u1") for _ in range(50)))) == 1
        await asyncio.sleep(LANES.skip_seconds + 0.1)
        assert await here.beat("u1")
    assert counts.value("presence_beats") == written + 2
    assert await LANES.online(server, ["u1"]) == {"u1"}


async def test_beats_of_people_without_a_connection_are_not_remembered_for_ever(valkey: Valkey) -> None:
    async with LANES.open(valkey) as here:
        await asyncio.gather(*(here.beat(f"u{number}") for number in range(500)))
        assert len(here._written_at) == 500
        await asyncio.sleep(LANES.skip_seconds + 0.1)
        assert await here.beat("u0")
        assert len(here._written_at) == 1


async def test_last_connection_that_closes_takes_presence_away_after_the_grace(server: Valkey) -> None:
    async with LANES.open(server) as here:
        await here.arrived("u1")
        await here.arrived("u1")
        here.left("u1")
        await asyncio.sleep(LANES.grace_seconds + 0.2)
        assert await LANES.online(server, ["u1"]) == {"u1"} and here.connections("u1") == 1
        here.left("u1")
        assert await LANES.online(server, ["u1"]) == {"u1"}

        async def offline() -> bool:
            return await LANES.online(server, ["u1"]) == set()

        await until(offline)
        here.left("u1")  # one too many does no harm
        assert here.connections("u1") == 0


async def test_reload_within_the_grace_leaves_no_hole(server: Valkey) -> None:
    async with LANES.open(server) as here:
        await here.arrived("u1")
        for _ in range(5):
            here.left("u1")
            await asyncio.sleep(0.01)
            await here.arrived("u1")
            assert await LANES.online(server, ["u1"]) == {"u1"}
        await asyncio.sleep(LANES.grace_seconds + 0.2)
        assert await LANES.online(server, ["u1"]) == {"u1"}


async def test_killed_process_leaves_nobody_online_for_longer_than_the_key_lives(valkey, moving_clock) -> None:
    async with PRESENCE.open(valkey) as here:
        await here.arrived("u1")
        here.left("u1")  # and the process ends within the grace
    assert await PRESENCE.online(valkey, ["u1"]) == {"u1"}
    moving_clock.advance(180)
    assert await PRESENCE.online(valkey, ["u1"]) == set()


async def test_five_thousand_are_asked_in_ten_commands(valkey: Valkey) -> None:
    users = [f"u{number}" for number in range(5000)]
    for user in users[::7]:
        await PRESENCE.beat(valkey, user)
    before = await commands(valkey, "mget")
    assert await PRESENCE.online(valkey, users) == set(users[::7])
    assert await commands(valkey, "mget") - before == 10


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
async def test_lanes_keep_reading_many_cheap_on_a_cluster(cluster: Valkey) -> None:
    users = [f"u{number}" for number in range(5000)]
    for user in users[::97]:
        await LANES.beat(cluster, user)
    before = await commands(cluster, "mget")
    assert await LANES.online(cluster, users) == set(users[::97])
    assert await commands(cluster, "mget") - before <= 4 * 3
    assert await PRESENCE.online(cluster, users[:200]) == set()  # a tag for each: one command each, in one write a node


async def test_marker_is_removed_only_by_the_connection_that_wrote_it(server: Valkey) -> None:
    await MARKERS.mark(server, "r1", "u1", connection="c1")
    await MARKERS.mark(server, "r1", "u1", connection="c2")
    await MARKERS.mark(server, "r1", "u2", connection="c3")
    assert not await MARKERS.leave(server, "r1", "u1", connection="c1")
    assert await MARKERS.here(server, ["u1", "u2", "u3"], room="r1") == {"u1": "c2", "u2": "c3"}
    assert await MARKERS.leave(server, "r1", "u1", connection="c2")
    assert not await MARKERS.leave(server, "r1", "u1", connection="c2")
    assert await MARKERS.here(server, ["u1", "u2", "u3"], room="r1") == {"u2": "c3"}
    assert await MARKERS.here(server, ["u2"], room="r2") == {}
    assert 3590 < await MARKERS.key.at("r1", "u2").remaining_seconds(server) <= 3600


async def test_presence_does_what_a_plain_model_does(valkey, moving_clock, no_undeclared_keys) -> None:
    """Random beats, departures and time; who is online is exactly who beat within the time and did not leave."""
    no_undeclared_keys(Registry([SPACE], layout=Layout.PLAIN))
    rng = random.Random(3)
    users = [f"u{number}" for number in range(8)]
    until_when: dict[str, float] = {}
    for _ in range(400):
        user, kind = rng.choice(users), rng.random()
        if kind < 0.5:
            await PRESENCE.beat(valkey, user)
            until_when[user] = moving_clock.now() + 180
        elif kind < 0.6:
            assert await PRESENCE.gone(valkey, user) == (until_when.pop(user, 0) > moving_clock.now())
        else:
            # Steps of twenty: an end is reached or far away, while the server's own clock runs as the test does.
            moving_clock.advance(rng.choice((20, 40, 60, 100)))
        alive = {each for each, end in until_when.items() if end > moving_clock.now()}
        assert await PRESENCE.online(valkey, users) == alive
        for each in alive:
            assert await valkey.pttl(PRESENCE.key.at(each).name(Layout.PLAIN)) > 0


def test_presence_that_would_lapse_between_its_beats_is_refused() -> None:
    with pytest.raises(DeclarationError):
        Presence(Keyspace("t"), "t:{user_id}", seconds=30, skip_seconds=30, purpose="a test")

"""Changes are seen by pattern, from events where the server sends them and from looks where it does not."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from keystead.engine import Valkey, lookout
from keystead.errors import Unavailable
from keystead.inventory import Entry, Inventory
from keystead.settings import ValkeySettings
from keystead.survey.watching import Changes, Frame, events_are_on, watch
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer

PATIENCE_SECONDS = 60.0
USERS = Inventory("written down", (Entry("user:{user_id}"),))


@pytest.fixture
def events(valkey_server: LocalServer) -> Iterator[None]:
    valkey_server.ensure_running()
    valkey_server.call("CONFIG", "SET", "notify-keyspace-events", "KA")
    yield
    valkey_server.ensure_running()
    valkey_server.call("CONFIG", "SET", "notify-keyspace-events", "")


async def until(frames: "object", enough: "object", then: "object" = None) -> list[Frame]:
    """Frames until they are enough; ``then`` is done once the watch has begun."""
    seen: list[Frame] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for frame in frames:  # type: ignore[attr-defined]
            seen.append(frame)
            if len(seen) == 1 and then is not None:
                await then()  # type: ignore[operator]
            if enough(seen):  # type: ignore[operator]
                break
    return seen


def total(frames: list[Frame], pattern: str) -> Changes:
    whole = Changes()
    for frame in frames:
        each = frame.changes.get(pattern, Changes())
        whole.events += each.events
        whole.written += each.written
        whole.gone += each.gone
        whole.expired += each.expired
    return whole


async def test_events_are_counted_by_pattern(valkey: Valkey, valkey_server: LocalServer, events: None) -> None:
    async def change() -> None:
        for number in range(10):
            await valkey.set(f"user:{number}", "x")
            await valkey.set(f"new:{number}:thing", "x")
        await valkey.delete("user:1", "user:2")
        await valkey.set("user:77", "x", px=1)

    async with lookout(valkey_server.url) as look:
        assert await events_are_on(look)
        async with aclosing(watch(look, inventory=USERS, every_seconds=0.3)) as frames:
            seen = await until(frames, lambda seen: total(seen, "user:{user_id}").expired, change)
    users = total(seen, "user:{user_id}")
    assert (users.gone, users.expired) == (3, 1) and users.written >= 11
    assert all(frame.by_events and not frame.missed for frame in seen)
    assert total(seen, "new:{new_id}:thing").written == 10, "keys that nobody wrote down are put together"


async def test_without_events_looks_are_compared_and_nothing_is_switched_on(
    valkey: Valkey, valkey_server: LocalServer
) -> None:
    for number in range(10):
        await valkey.set(f"user:{number}", "x")

    async def change() -> None:
        for number in range(10, 40):
            await valkey.set(f"user:{number}", "x")

    async with lookout(valkey_server.url) as look:
        assert not await events_are_on(look)
        async with aclosing(watch(look, every_seconds=0.2)) as frames:
            seen = await until(frames, lambda seen: "user:{user_id}" in seen[-1].changes, change)
    assert not seen[-1].by_events
    assert seen[-1].changes["user:{user_id}"].written == 30
    assert valkey_server.call("CONFIG", "GET", "notify-keyspace-events")[1] == b""


async def test_user_who_may_not_ask_watches_by_looks(valkey: Valkey, valkey_server: LocalServer, events: None) -> None:
    valkey_server.call("ACL", "SETUSER", "looker", "reset", "on", ">pw", "~*", "+@all", "-config")
    try:
        async with lookout(valkey_server.tcp_url.replace("://", "://looker:pw@")) as look:
            assert not await events_are_on(look)
    finally:
        valkey_server.call("ACL", "DELUSER", "looker")


async def test_server_that_goes_away_ends_the_watch(valkey: Valkey, valkey_server: LocalServer, events: None) -> None:
    impatient = ValkeySettings(outage_seconds=0.3)
    async with (
        lookout(valkey_server.url, settings=impatient) as look,
        aclosing(watch(look, inventory=USERS, every_seconds=0.2)) as frames,
    ):
        await anext(frames)
        valkey_server.kill()
        with pytest.raises(Unavailable):
            async with asyncio.timeout(PATIENCE_SECONDS):
                async for _ in frames:
                    pass
    valkey_server.restart()


@pytest.mark.cluster
async def test_events_of_every_shard_are_heard(cluster: Valkey, valkey_cluster: LocalCluster) -> None:
    for node in valkey_cluster.nodes:
        node.call("CONFIG", "SET", "notify-keyspace-events", "KA")

    async def change() -> None:
        for number in range(60):
            await cluster.set(f"user:{number}", "x")

    try:
        async with (
            lookout(valkey_cluster.url, primary=True) as look,
            aclosing(watch(look, inventory=USERS, every_seconds=0.3)) as frames,
        ):
            seen = await until(frames, lambda seen: total(seen, "user:{user_id}").written >= 60, change)
        assert total(seen, "user:{user_id}").written == 60
    finally:
        for node in valkey_cluster.nodes:
            node.call("CONFIG", "SET", "notify-keyspace-events", "")


def test_frame_is_written_as_json() -> None:
    changes = Changes()
    for event in ("set", "expire", "del", "expired"):
        changes.add(event)
    assert Frame(2.0, {"a": changes}, by_events=True).as_dict() == {
        "seconds": 2.0, "by": "events", "missed": 0,
        "patterns": [{"pattern": "a", "events": 4, "written": 2, "gone": 2, "expired": 1,
                      "kinds": {"set": 1, "expire": 1, "del": 1, "expired": 1}}]}

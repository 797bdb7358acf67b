"""The cache beside a plain model: random reads, fills, changes, crashes, cut channels and clocks that disagree.

The model is a list of the numbers that the source held and when each purge was over. Whatever happens, a read never
answers a number that the source did not hold, nor, once the staleness bound has passed, one from before a purge.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from keystead.engine import Valkey, connect, hub
from keystead.errors import Unavailable
from keystead.keys import Keyspace
from keystead.patterns.cache import Cache
from keystead.patterns.cache_instance import CacheInstance
from keystead.testing.cluster import LocalCluster
from keystead.testing.proxy import FaultProxy
from keystead.testing.server import LocalServer

BOUND_SECONDS = 0.15
SLACK_SECONDS = 0.1  # a fetch that was under way when the purge came
SPACE = Keyspace("model", tag="m")
COMMON = {"lock_seconds": 0.2, "channel": "", "collab": True, "staleness_seconds": BOUND_SECONDS, "purpose": "a test"}
FAMILIES = {
    "both": Cache(SPACE, "both:{uid}", int, shared_seconds=60, local_seconds=60, **{**COMMON, "channel": "ps:both"}),
    "local": Cache(SPACE, "local:{uid}", int, local_seconds=60, **{**COMMON, "channel": "ps:local"}),
    "stale": Cache(SPACE, "stale:{uid}", int, shared_seconds=0.05, stale_seconds=60, local_seconds=0.05,
                   **{**COMMON, "channel": "ps:stale"}),
}
INSTANCES = 3
WHO = st.integers(0, INSTANCES - 1)
UIDS = st.sampled_from(["a", "b"])
DELAYS = st.sampled_from([0.0, 0.0, 0.002, 0.02, 0.06])
MOVES = st.one_of(
    st.tuples(st.just("read"), WHO, UIDS, DELAYS),
    st.tuples(st.just("read"), WHO, UIDS, DELAYS),
    st.tuples(st.just("read"), WHO, UIDS, DELAYS),
    st.tuples(st.just("change"), UIDS),
    st.tuples(st.just("change"), UIDS),
    st.tuples(st.just("rest"), st.sampled_from([0.001, 0.01, 0.05, 0.2])),
    st.tuples(st.just("cut"), WHO),
    st.tuples(st.just("deafen"), WHO),
    st.tuples(st.just("swallow"), WHO),
    st.tuples(st.just("heal"), WHO),
    st.tuples(st.just("crash"), WHO),
    st.tuples(st.just("clock"), WHO, st.sampled_from([-3600.0, -1.0, 0.5, 40.0])),
    st.tuples(st.just("fail"), UIDS),
    st.tuples(st.just("silence"), WHO, UIDS),
    st.tuples(st.just("race"), WHO, UIDS),
    st.tuples(st.just("overtake"), WHO, UIDS),
)


class Skewed:
    """A clock that can be put anywhere."""

    def __init__(self) -> None:
        self.offset = 0.0

    def now(self) -> float:
        return time.time() + self.offset


class World:
    """A source, and processes that read it through a cache; each hears the channel through a wire of its own."""

    def __init__(self, cache: Cache, url: str, tcp_url: str | None) -> None:
        self.cache, self.url, self.tcp_url = cache, url, tcp_url
        self.source = {"a": 0, "b": 0}
        self.purged: dict[str, list[float]] = {"a": [-1e9], "b": [-1e9]}  # when the purge for each number was over
        self.failing: set[str] = set()
        self.tasks: list[asyncio.Task] = []
        self.reads = 0

    async def start(self) -> None:
        self.admin: Valkey = await connect(self.url)
        self.proxies = [FaultProxy(self.tcp_url) for _ in range(INSTANCES)] if self.tcp_url else []
        self.slow = [FaultProxy(self.tcp_url) for _ in range(INSTANCES)] if self.tcp_url else []  # for commands
        for proxy in (*self.proxies, *self.slow):
            await proxy.start()
        self.processes: list[contextlib.AsyncExitStack] = []
        self.instances: list[CacheInstance] = []
        self.clocks = [Skewed() for _ in range(INSTANCES)]
        for place in range(INSTANCES):
            stack, instance = await self.process(place)
            self.processes.append(stack)
            self.instances.append(instance)

    async def process(self, place: int) -> tuple[contextlib.AsyncExitStack, CacheInstance]:
        stack = contextlib.AsyncExitStack()
        valkey = await connect(self.slow[place].url if self.slow else self.url)
        stack.push_async_callback(valkey.aclose)
        if self.proxies:
            await self.proxies[place].restore()
            ear = await connect(self.proxies[place].url)
            stack.push_async_callback(ear.aclose)
            valkey.hub = ear.hub
        instance = await stack.enter_async_context(self.cache.open(valkey, clock=self.clocks[place]))
        instance.valkey = valkey
        return stack, instance

    async def read(self, place: int, uid: str, delay: float) -> None:
        async def load() -> int:
            number = self.source[uid]
            await asyncio.sleep(delay)
            if uid in self.failing:
                self.failing.discard(uid)
                raise OSError("the source is down")
            return number

        begun_at = time.monotonic()
        try:
            got = await self.instances[place].get(uid, load=load)
        except (OSError, Unavailable):
            return
        self.reads += 1
        oldest = max(number for number, at in enumerate(self.purged[uid])
                     if at <= begun_at - BOUND_SECONDS - SLACK_SECONDS)
        assert got is not None and got <= self.source[uid], "a value that was never in the source"
        assert got >= oldest, f"{uid}: {got} was purged {begun_at - self.purged[uid][got + 1]:.3f} s before the read"

    async def move(self, kind: str, *rest) -> None:
        if kind == "read":
            self.tasks.append(asyncio.create_task(self.read(*rest)))
            await asyncio.sleep(0)
        elif kind == "change":
            (uid,) = rest
            self.source[uid] += 1
            await self.cache.at(uid).purge(self.admin, now=time.time() + random.choice((-3600, 0, 3600)))
            self.purged[uid].append(time.monotonic())
        elif kind == "rest":
            await asyncio.sleep(rest[0])
        elif kind == "clock":
            self.clocks[rest[0]].offset += rest[1]
        elif kind == "fail":
            self.failing.add(rest[0])
        elif kind == "crash":
            await self.crash(rest[0])
        elif kind in ("silence", "race", "overtake"):
            await getattr(self, kind)(*rest)
        elif self.proxies:
            proxy = self.proxies[rest[0]]
            if kind == "heal":
                await proxy.restore()
            else:
                {"cut": proxy.cut, "deafen": proxy.half_open, "swallow": proxy.drop_replies}[kind]()
        elif kind in ("cut", "deafen", "swallow"):
            for node in await self.admin.nodes():
                await node.execute_command("CLIENT", "KILL", "TYPE", "pubsub")

    async def crash(self, place: int) -> None:
        """The connection is gone first, so nothing that the process would still like to say is heard."""
        dead, valkey = self.processes[place], self.instances[place].valkey
        self.processes[place], self.instances[place] = await self.process(place)
        await valkey.aclose()
        await dead.aclose()

    async def silence(self, place: int, uid: str) -> None:
        """A value is held, the channel goes silent, and the value changes."""
        await self.read(place, uid, 0.0)
        await self.move("deafen", place)
        await self.move("change", uid)
        await asyncio.sleep(BOUND_SECONDS + SLACK_SECONDS + 0.02)
        await self.read(place, uid, 0.0)

    async def race(self, place: int, uid: str) -> None:
        """A cold value changes while it is read from the source."""
        await self.move("change", uid)
        await asyncio.sleep(0.02)
        await self.move("read", place, uid, 0.06)
        await asyncio.sleep(0.02)
        await self.move("change", uid)
        await asyncio.sleep(BOUND_SECONDS + SLACK_SECONDS + 0.06)
        for each in range(INSTANCES):
            await self.read(each, uid, 0.0)

    async def overtake(self, place: int, uid: str) -> None:
        """The message of a purge arrives before the answer to a read that the server ran earlier."""
        await self.read((place + 1) % INSTANCES, uid, 0.0)
        self.instances[place].forget(uid)
        if self.slow:
            self.slow[place].delay(0.03)
        await self.move("read", place, uid, 0.0)
        await asyncio.sleep(0.045)
        await self.move("change", uid)
        if self.slow:
            self.slow[place].delay(0.0)
        await asyncio.sleep(BOUND_SECONDS + SLACK_SECONDS + 0.06)
        await self.read(place, uid, 0.0)

    async def end(self) -> None:
        """Everything heals; within the bound every process answers what the source holds now."""
        for proxy in self.proxies:
            await proxy.restore()
        await asyncio.gather(*self.tasks)
        self.failing.clear()
        for uid in ("a", "b"):
            await self.move("change", uid)
        await asyncio.sleep(BOUND_SECONDS + SLACK_SECONDS)
        for place in range(INSTANCES):
            for uid in ("a", "b"):
                await self.read(place, uid, 0.0)

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for stack in self.processes:
            await stack.aclose()
        for proxy in (*self.proxies, *self.slow):
            await proxy.aclose()
        await self.admin.aclose()


async def play(family: str, url: str, tcp_url: str | None, moves) -> None:
    world = World(FAMILIES[family], url, tcp_url)
    await world.start()
    try:
        for move in moves:
            await world.move(*move)
        await world.end()
    finally:
        await world.close()


@pytest.fixture(autouse=True)
def quick_pings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The channel shows life often enough for a staleness bound that a test can wait for."""
    monkeypatch.setattr(hub, "PING_SECONDS", 0.04)
    yield


SUPPRESSED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=15, deadline=None, suppress_health_check=SUPPRESSED)
@given(family=st.sampled_from(sorted(FAMILIES)), moves=st.lists(MOVES, min_size=5, max_size=20))
@example(family="both", moves=[("silence", 0, "a"), ("race", 1, "b"), ("overtake", 2, "a")])
@example(family="local", moves=[("silence", 0, "a"), ("race", 1, "b"), ("overtake", 2, "a")])
@example(family="stale", moves=[("silence", 0, "a"), ("race", 1, "b"), ("overtake", 2, "a")])
@example(family="both", moves=[("change", "a"), ("deafen", 0), ("silence", 0, "a"), ("read", 0, "a", 0.0)])
def test_no_read_is_older_than_a_purge_once_the_bound_has_passed(valkey_server: LocalServer, family, moves) -> None:
    valkey_server.call("FLUSHALL")
    asyncio.run(play(family, valkey_server.url, valkey_server.tcp_url, moves))


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
@settings(max_examples=4, deadline=None, suppress_health_check=SUPPRESSED)
@given(family=st.sampled_from(sorted(FAMILIES)), moves=st.lists(MOVES, min_size=5, max_size=20))
@example(family="local", moves=[("race", 1, "b"), ("race", 2, "a")])
def test_no_read_on_a_cluster_is_older_than_a_purge(valkey_cluster: LocalCluster, family, moves) -> None:
    valkey_cluster.flush()
    asyncio.run(play(family, valkey_cluster.url, None, moves))

"""Following the primary that real sentinels name."""

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import hiredis
import pytest
import redis.exceptions

from keystead.engine import AnswerLost, LoginRefused, ServerAway, Valkey, connect
from keystead.engine.connect_pool import redis_pool
from keystead.engine.embedded_process import call, server_binary
from keystead.engine.endpoint import Endpoint
from keystead.errors import Unavailable
from keystead.settings import ValkeySettings
from keystead.testing.server import LocalServer, free_ports


@contextmanager
def sentinel(directory: Path, primary_port: int) -> Iterator[int]:
    """A sentinel, from the same program, that takes a primary for dead after half a second. Gives its port."""
    port = free_ports(1)[0]
    config = directory / f"sentinel-{port}.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {directory}\nlogfile {directory}/sentinel-{port}.log\n"
        f"sentinel monitor house 127.0.0.1 {primary_port} 1\n"
        "sentinel down-after-milliseconds house 500\n"
        "sentinel failover-timeout house 3000\n"
    )
    process = subprocess.Popen([str(server_binary()), str(config), "--sentinel"])
    try:
        _wait(lambda: ask(port, "PING") == b"PONG")
        yield port
    finally:
        process.kill()
        process.wait()


def ask(port: int, *command: str | int) -> object:
    return call(("127.0.0.1", port), *command)


def _wait(holds: object, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if holds():  # type: ignore[operator]
                return
        except OSError:
            pass
        assert time.monotonic() < deadline, "the servers did not get ready"
        time.sleep(0.02)


class House:
    """A primary, its replica and a sentinel that knows both."""

    def __init__(self, primary: LocalServer, replica: LocalServer, sentinel_port: int) -> None:
        self.servers = [primary, replica]
        self.sentinel_port = sentinel_port

    @property
    def url(self) -> str:
        return f"sentinel://127.0.0.1:{self.sentinel_port}/house"

    def fail_over(self) -> None:
        """Tell the sentinel to promote the replica, as soon as it has looked at it."""

        def told() -> bool:
            try:
                return ask(self.sentinel_port, "SENTINEL", "FAILOVER", "house") == b"OK"
            except hiredis.ReplyError:
                return False

        _wait(told)

    def primary(self) -> LocalServer:
        _, port = ask(self.sentinel_port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "house")  # type: ignore[misc]
        return next(server for server in self.servers if server.port == int(port))


@contextmanager
def built_house(directory: Path) -> Iterator[House]:
    servers = [LocalServer({"repl-diskless-sync-delay": 0}) for _ in range(2)]
    for server in servers:
        server.start()
    try:
        primary, replica = servers
        replica.call("REPLICAOF", "127.0.0.1", primary.port)
        _wait(lambda: b"master_link_status:up" in replica.call("INFO", "replication"))
        with sentinel(directory, primary.port) as port:
            _wait(lambda: len(ask(port, "SENTINEL", "REPLICAS", "house")) == 1)  # type: ignore[arg-type]
            yield House(primary, replica, port)
    finally:
        for server in servers:
            server.stop()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with built_house(tmp_path) as house:
        yield house


@pytest.fixture(scope="module")
def quiet_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One that nobody changes."""
    with built_house(tmp_path_factory.mktemp("house")) as house:
        yield house


@pytest.fixture
async def client(house: House) -> AsyncIterator[Valkey]:
    client = await connect(house.url, settings=ValkeySettings(outage_seconds=60))
    yield client
    await client.aclose()


async def test_client_follows_the_primary_when_it_dies(house: House, client: Valkey) -> None:
    old = house.primary()
    assert client.facts["role"] == "master"
    await client.set("before", "kept")
    assert old.call("WAIT", 1, 20_000) == 1
    async with client.hub().subscribe("c") as listener:
        old.kill()
        started = time.monotonic()
        while True:
            try:
                await client.set("after", "written")
                break
            except AnswerLost:
                continue
        seconds = time.monotonic() - started
        print(f"\nsentinel: writes go on after {seconds:.2f} s")
        assert seconds < 60
        assert await client.mget("before", "after") == [b"kept", b"written"]
        assert house.primary() is not old
        async with asyncio.timeout(60):
            while listener.gaps == 0:
                await asyncio.sleep(0.02)
        await client.publish("c", "x")
        assert (await anext(listener)).payload == b"x"
    async with client.pipeline() as pipe:  # WATCH has a connection of its own, which must follow too
        await pipe.watch("after")
        pipe.multi()
        pipe.set("after", "changed")
        assert await pipe.execute() == [True]
    assert house.primary().call("GET", "after") == b"changed"


async def test_orderly_fail_over_goes_on_within_seconds_and_does_nothing_twice(house: House, client: Valkey) -> None:
    old = house.primary()
    acknowledged = lost = 0
    longest = 0.0
    stop = asyncio.Event()

    async def count() -> None:
        nonlocal acknowledged, lost, longest
        while not stop.is_set():
            before = time.monotonic()
            try:
                await client.incr("counter")
                acknowledged += 1
            except AnswerLost:
                lost += 1
            longest = max(longest, time.monotonic() - before)
            await asyncio.sleep(0.001)

    async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
        for _ in range(5):
            tasks.create_task(count())
        await asyncio.get_running_loop().run_in_executor(None, house.fail_over)
        while house.primary() is old:
            await asyncio.sleep(0.05)
        before = acknowledged
        while acknowledged < before + 200:
            await asyncio.sleep(0.01)
        stop.set()
    stored = int(await client.get("counter"))
    print(f"\nsentinel: {acknowledged} acknowledged, {lost} lost, {stored} stored, longest wait {longest:.2f} s")
    # Nobody waited for the replica here, so the last few may be gone; none may have been done twice.
    assert stored <= acknowledged + lost
    assert longest < 60


async def test_name_that_no_sentinel_knows(quiet_house: House) -> None:
    with pytest.raises(ServerAway, match=r"knows no primary called nobody; check the name in the URL"):
        await connect(quiet_house.url.replace("/house", "/nobody"))


async def test_dead_sentinels_are_passed_over(quiet_house: House) -> None:
    dead = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
    client = await connect(quiet_house.url.replace("sentinel://", f"sentinel://{dead},"))
    assert await client.set("k", 1)
    await client.aclose()
    with pytest.raises(ServerAway, match=r"no sentinel named a primary: .*cannot be reached"):
        await connect(f"sentinel://{dead}/house")


async def test_server_that_is_no_sentinel_is_called_that(valkey_server: LocalServer) -> None:
    valkey_server.ensure_running()
    with pytest.raises(ServerAway, match="is no sentinel"):
        await connect(f"sentinel://127.0.0.1:{valkey_server.port}/house")


async def test_wrong_password_of_the_primary_is_told_at_once(quiet_house: House) -> None:
    with pytest.raises(LoginRefused, match="check the user and password"):
        await connect(quiet_house.url.replace("sentinel://", "sentinel://someone:wrong@"))


# -- a primary that was demoted and says so ---------------------------------------------------------------------------


class Pair:
    """Two servers and a client that finds whichever is ``named`` the primary."""

    def __init__(self, servers: list[LocalServer]) -> None:
        self.servers = servers
        self.named = servers[0]

    async def find(self) -> Endpoint:
        return Endpoint(port=self.named.port, must_be_primary=True)

    def client(self, **settings: int) -> Valkey:
        pool = redis_pool(Endpoint(port=self.named.port))
        return Valkey(self.find, pool=pool, settings=ValkeySettings(**settings), follows_primary=True)

    def swap(self) -> None:
        """The first becomes a replica of the second; open connections stay."""
        self.named = self.servers[1]
        self.servers[0].call("REPLICAOF", "127.0.0.1", self.servers[1].port)


@pytest.fixture
def pair() -> Iterator[Pair]:
    servers = [LocalServer(), LocalServer()]
    for server in servers:
        server.start()
    try:
        yield Pair(servers)
    finally:
        for server in servers:
            server.stop()


async def _set(client: Valkey) -> object:
    return await client.set("k", "v")


async def _pipeline(client: Valkey) -> object:
    async with client.pipeline(transaction=False) as pipe:
        pipe.set("a", 1)
        pipe.set("k", "v")
        return await pipe.execute()


async def _transaction(client: Valkey) -> object:
    async with client.pipeline(transaction=True) as pipe:
        pipe.get("a")
        pipe.set("k", "v")
        return await pipe.execute()


async def _block(client: Valkey) -> object:
    return await client.run_block([("SET", "a", 1), ("SET", "k", "v")], list)


async def _alone(client: Valkey) -> object:
    async with client.pipeline(transaction=False) as pipe:
        pipe.set("k", "v")
        pipe.execute_command("WAITAOF", 0, 0, 100)
        return await pipe.execute()


@pytest.mark.parametrize("wires", [1, 3])
@pytest.mark.parametrize("write", [_set, _pipeline, _transaction, _block, _alone])
async def test_demoted_primary_that_refuses_a_write_is_left_for_the_new_one(
    pair: Pair, write: object, wires: int
) -> None:
    client = await pair.client(wires=wires).open()
    try:
        await write(client)  # type: ignore[operator]
        pair.swap()
        async with asyncio.timeout(60):
            for _ in range(wires):
                await write(client)  # type: ignore[operator]
        assert pair.servers[1].call("GET", "k") == b"v"
    finally:
        await client.aclose()


async def test_mixed_pipeline_reports_the_refusal_and_the_next_one_works(pair: Pair) -> None:
    client = await pair.client().open()
    try:
        pair.swap()
        async with client.pipeline(transaction=False) as pipe:
            pipe.get("k")
            pipe.set("k", "v")
            replies = await pipe.execute(raise_on_error=False)
        assert replies[0] is None
        assert isinstance(replies[1], redis.exceptions.ReadOnlyError)
        async with client.pipeline(transaction=False) as pipe:
            pipe.get("k")
            pipe.set("k", "v")
            assert await pipe.execute() == [None, True]
    finally:
        await client.aclose()


async def test_what_is_under_way_at_a_demoted_primary_is_not_lost(pair: Pair) -> None:
    """All writers are refused at once; none of them may be told that its answer was lost."""
    client = await pair.client().open()
    try:
        value = b"x" * 50_000  # so many bytes that the first refusal is back before the last command has left
        pair.swap()
        outcomes = await asyncio.gather(*(client.append("k", value) for _ in range(300)), return_exceptions=True)
        assert [each for each in outcomes if isinstance(each, BaseException)] == []
        assert sorted(outcomes) == [50_000 * number for number in range(1, 301)]
        assert pair.servers[1].call("STRLEN", "k") == 15_000_000
    finally:
        await client.aclose()


async def test_blocking_read_at_a_demoted_primary_starts_again_at_the_new_one(pair: Pair) -> None:
    client = await pair.client().open()
    try:
        await client.rpush("list", "first")
        assert await client.blpop(["list"], timeout=1) == (b"list", b"first")  # leaves an idle connection there
        pair.swap()
        pair.servers[1].call("RPUSH", "list", "second")
        assert await client.blpop(["list"], timeout=60) == (b"list", b"second")
        waiting = asyncio.create_task(client.blpop(["list"], timeout=60))
        while b"blocked_clients:0" in pair.servers[1].call("INFO", "clients"):
            await asyncio.sleep(0.01)
        pair.servers[0].call("REPLICAOF", "NO", "ONE")
        pair.named = pair.servers[0]
        pair.servers[1].call("REPLICAOF", "127.0.0.1", pair.servers[0].port)  # sets the blocked caller free
        await client.rpush("list", "third")
        assert await waiting == (b"list", b"third")
    except Unavailable as error:
        pytest.fail(f"the caller should not have noticed: {error}")
    finally:
        await client.aclose()

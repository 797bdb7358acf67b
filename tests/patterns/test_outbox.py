"""Outboxes: entries exist when the change does, arrive in order under another tag, and have one effect for each uid."""

import asyncio
import contextlib
from collections import Counter

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keystead.engine import Valkey, connect
from keystead.errors import DeclarationError, Invalid
from keystead.keys import IntegerKey, Keyspace, ListKey, Registry
from keystead.patterns.outbox import REMOVE, Delivery, Inbox, Outbox
from keystead.testing.clock import MovableClock
from keystead.testing.server import LocalServer

from .crash import Died, Mortal, crash_points


class Job(msgspec.Struct, frozen=True):
    uid: str
    name: str = "job"


MSG = Keyspace("messages", tag="msg")
JOBS = Keyspace("jobs", tag="jobs")
OUT = Outbox(MSG, "outbox", Job, purpose="jobs of messages", writers=("t",), readers=("t",))
LANES = Outbox(MSG, "outbox:{lane}", Job, tag="msg:{lane}", purpose="jobs of one lane")
COUNT = IntegerKey(MSG, "count", purpose="the state")
HOT = ListKey(JOBS, "jobs:hot", Job, purpose="ready jobs")
SEEN = Inbox(JOBS, "jobs:relayed:{uid}", held_seconds=3600, purpose="jobs")
NOW = 5.0
CPU = ("used_cpu_user_main_thread", "used_cpu_sys_main_thread")


def jobs(*numbers: int) -> list[Job]:
    return [Job(str(number)) for number in numbers]


async def clear(valkey: Valkey) -> None:
    for node in await valkey.nodes():
        await node.call(("FLUSHALL",))


async def test_entry_is_written_with_the_change_and_arrives_under_another_tag(server: Valkey) -> None:
    async with server.pipeline(transaction=True) as pipeline:
        COUNT.at().increment(pipeline)
        OUT.add(pipeline, *jobs(1, 2))
        await pipeline.execute()
    turn = await OUT.relay(server, SEEN.into(server, HOT.at()), now=NOW)
    assert (turn.delivered, turn.dead, turn.full) == (2, 0, False)
    assert await HOT.at().range(server) == jobs(1, 2)
    assert await OUT.length(server) == 0 and await COUNT.at().get(server) == 1
    assert (await OUT.relay(server, SEEN.into(server, HOT.at()), now=NOW)).delivered == 0


async def test_keys_are_declared(server: Valkey) -> None:
    await OUT.add(server, *jobs(1, 2))
    await OUT.relay(server, SEEN.into(server, HOT.at()), now=NOW, most=1)
    registry = Registry([MSG, JOBS], server.layout)
    names = set()
    for node in await server.nodes():
        for key in await node.call(("KEYS", "*")):
            assert registry.resolve(key)
            names.add(key.decode().rpartition("}")[2])
    assert names == {"outbox", "jobs:hot", "jobs:relayed:1"}
    assert 3590 < await SEEN.mark_key.at("1").remaining_seconds(server) <= 3600


async def test_same_uid_has_one_effect(server: Valkey) -> None:
    await OUT.add(server, *jobs(1, 2, 1))
    deliver = SEEN.into(server, HOT.at())
    await OUT.drain(server, deliver, now=NOW)
    await OUT.add(server, *jobs(2, 3))
    assert await OUT.drain(server, deliver, now=NOW) == 2
    assert await HOT.at().range(server) == jobs(1, 2, 3)


async def test_mark_ends_after_its_time(valkey: Valkey, moving_clock: MovableClock) -> None:
    assert await SEEN.deliver(valkey, HOT.at(), [("1", b"{}")]) == 1
    assert await SEEN.deliver(valkey, HOT.at(), [("1", b"{}")]) == 0
    moving_clock.advance(3601)
    assert await SEEN.deliver(valkey, HOT.at(), [("1", b"{}")]) == 1


async def test_full_target_leaves_entries_where_they_are(server: Valkey) -> None:
    await HOT.at().push_right(server, *jobs(0))
    await OUT.add(server, *jobs(1, 2, 3))
    deliver = SEEN.into(server, HOT.at(), limit=2)
    turn = await OUT.relay(server, deliver, now=NOW)
    assert turn.full and turn.delivered == 0
    assert await OUT.length(server) == 3 and await HOT.at().length(server) == 1
    await HOT.at().pop_left(server)
    assert await OUT.drain(server, deliver, now=NOW, most=2) == 2
    await HOT.at().pop_left(server)
    assert await OUT.drain(server, deliver, now=NOW, most=2) == 1
    assert await HOT.at().range(server) == jobs(2, 3)


async def test_undecodable_entry_is_buried_and_the_others_arrive(server: Valkey) -> None:
    await OUT.add(server, *jobs(1))
    await server.run(("RPUSH", OUT.outbox.name(server.layout), b"nonsense"), int)
    await OUT.add(server, *jobs(2))
    turn = await OUT.relay(server, SEEN.into(server, HOT.at()), now=NOW)
    assert (turn.delivered, turn.dead) == (2, 1)
    assert await HOT.at().range(server) == jobs(1, 2)
    [letter] = await OUT.dead.range(server)
    assert letter.raw == b"nonsense" and letter.dead_at == NOW
    assert await OUT.length(server) == 0


async def test_entry_without_a_uid_is_buried_and_the_others_arrive(server: Valkey) -> None:
    """A script wrote it, so nobody could refuse it."""
    for raw in (b'{"uid":""}', b'{"uid":"1"}', b'{"name":"x","uid":""}', b'{"uid":"2"}'):
        await server.run(("RPUSH", OUT.outbox.name(server.layout), raw), int)
    turn = await OUT.relay(server, SEEN.into(server, HOT.at()), now=NOW)
    assert (turn.delivered, turn.dead) == (2, 2)
    assert await HOT.at().range(server) == jobs(1, 2) and await OUT.length(server) == 0
    assert all("no uid" in letter.error for letter in await OUT.dead.range(server))


async def test_uid_that_no_key_may_hold_has_one_effect_too(server: Valkey) -> None:
    await OUT.add(server, Job("order:17"), Job("x\0y"), Job("order:17"))
    assert (await OUT.relay(server, SEEN.into(server, HOT.at()), now=NOW)).delivered == 3
    assert await HOT.at().range(server) == [Job("order:17"), Job("x\0y")]


async def test_target_smaller_than_a_turn_is_still_filled(server: Valkey) -> None:
    await OUT.add(server, *jobs(*range(7)))
    arrived: list[Job] = []
    async with asyncio.timeout(30):
        while await OUT.length(server):
            await OUT.relay(server, SEEN.into(server, HOT.at(), limit=3), now=NOW, most=100)
            assert await HOT.at().length(server) <= 3
            arrived += [await HOT.at().pop_left(server)]
    arrived += await HOT.at().range(server)
    assert arrived == jobs(*range(7))
    with pytest.raises(DeclarationError, match="takes no entries"):
        SEEN.into(server, HOT.at(), limit=0)


async def test_relay_that_comes_second_costs_no_more_in_a_long_outbox(valkey: Valkey) -> None:
    """Processor time of the server for removing what another relay has removed: as with a short outbox."""
    cost: dict[int, float] = {}
    for length in (200, 50_000):
        await clear(valkey)
        entries = [b'{"uid":"%06d"}' % number for number in range(length)]
        await valkey.run(("RPUSH", OUT.outbox.name(valkey.layout), *entries), int)
        gone = [b'{"uid":"gone %d"}' % number for number in range(50)]
        times = []
        for _ in range(5):
            before = await valkey.info("cpu")
            assert await REMOVE(valkey, keys=[OUT.outbox, OUT.dead], args=(50, 50, *gone)) == 0
            after = await valkey.info("cpu")
            times.append(sum(after[name] - before[name] for name in CPU))
        cost[length] = sorted(times)[2]
        assert await OUT.length(valkey) == length
    assert cost[50_000] < 10 * cost[200], f"seconds by length: {cost}"


async def test_function_gets_entries_in_order_and_its_error_keeps_them(server: Valkey) -> None:
    await OUT.add(server, *jobs(1, 2, 3))
    seen: list[str] = []

    async def deliver(entries) -> Delivery:
        seen.extend(entry.uid for entry in entries)
        if len(seen) < 4:
            raise ConnectionError("not now")
        return Delivery.ACCEPTED

    with pytest.raises(ConnectionError):
        await OUT.relay(server, deliver, now=NOW)
    assert await OUT.length(server) == 3
    assert await OUT.drain(server, deliver, now=NOW, most=2) == 3
    assert seen == ["1", "2", "3", "1", "2", "3"]


async def test_wait_is_woken_by_an_entry_and_takes_nothing(server: Valkey) -> None:
    assert not await OUT.wait(server, 0.05)
    waiting = [asyncio.create_task(OUT.wait(server, 60)) for _ in range(2)]
    await asyncio.sleep(0.05)
    await OUT.add(server, *jobs(1, 2))
    async with asyncio.timeout(30):
        assert await asyncio.gather(*waiting) == [True, True]
    assert await OUT.outbox.range(server) == jobs(1, 2)


async def test_lanes_have_outboxes_of_their_own(server: Valkey) -> None:
    await LANES.at("1").add(server, *jobs(1))
    await LANES.at("2").add(server, *jobs(2))
    deliver = SEEN.into(server, HOT.at())
    for lane in ("2", "1"):
        assert await LANES.at(lane).drain(server, deliver, now=NOW) == 1
    assert await HOT.at().range(server) == jobs(2, 1)
    with pytest.raises(DeclarationError, match="has variables"):
        await LANES.length(server)


async def test_many_relays_at_once_deliver_each_once_and_in_order(server: Valkey) -> None:
    deliver = SEEN.into(server, HOT.at())
    adding = True

    async def relay(number: int) -> None:
        while adding or await OUT.length(server):
            await OUT.relay(server, deliver, now=NOW, most=1 + number)
            await asyncio.sleep(0)

    async def add() -> None:
        nonlocal adding
        for number in range(0, 200, 5):
            await OUT.add(server, *jobs(*range(number, number + 5)))
        adding = False

    await asyncio.gather(add(), *(relay(number) for number in range(6)))
    assert await HOT.at().range(server) == jobs(*range(200))
    assert await OUT.length(server) == 0


async def test_crash_at_any_command_delivers_each_once_and_in_order(server: Valkey) -> None:
    async for mortal in crash_points(server):
        await clear(server)
        await OUT.add(server, *jobs(*range(7)))
        with contextlib.suppress(Died):
            await OUT.drain(mortal, SEEN.into(mortal, HOT.at()), now=NOW, most=2)
        await OUT.drain(server, SEEN.into(server, HOT.at()), now=NOW, most=3)
        assert await HOT.at().range(server) == jobs(*range(7))
        assert await OUT.length(server) == 0
        if not mortal.dead:
            return


async def test_relay_refuses_more_than_one_step_can_remove(valkey: Valkey) -> None:
    for most in (0, 5001):
        with pytest.raises(Invalid, match="1 to 5000"):
            await OUT.relay(valkey, SEEN.into(valkey, HOT.at()), now=NOW, most=most)


def test_entry_without_a_uid_is_refused() -> None:
    class Bare(msgspec.Struct, frozen=True):
        name: str

    bare = Outbox(Keyspace("bare", tag="b"), "bare", Bare, purpose="a test")
    with pytest.raises(DeclarationError, match="no field uid"):
        bare.add(None, Bare("x"))
    with pytest.raises(DeclarationError, match="needs a uid"):
        OUT.add(None, Job(""))
    by_name = Outbox(Keyspace("named", tag="b"), "named", Bare, uid=lambda entry: entry.name, purpose="a test")
    assert by_name.outbox.logical == "named"
    with pytest.raises(DeclarationError, match="variable for the uid"):
        Inbox(Keyspace("x", tag="x"), "marks", purpose="p")


class Paused:
    """A relay that reads now and delivers later, as a slow process does: the test decides when."""

    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey
        self.gate = asyncio.Event()
        self.task: asyncio.Task | None = None

    async def start(self, most: int) -> None:
        deliver = SEEN.into(self.valkey, HOT.at())
        reached = asyncio.Event()

        async def later(entries) -> Delivery:
            reached.set()
            await self.gate.wait()
            return await deliver(entries)

        self.task = asyncio.create_task(OUT.relay(self.valkey, later, now=NOW, most=most))
        await asyncio.wait([self.task, asyncio.ensure_future(reached.wait())], return_when=asyncio.FIRST_COMPLETED)

    async def end(self, *, die: bool) -> None:
        if self.task is not None and die:
            self.task.cancel()
        self.gate.set()
        if self.task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self.task
        self.task, self.gate = None, asyncio.Event()


MOVES = st.one_of(
    st.tuples(st.just("add"), st.lists(st.integers(0, 30), min_size=1, max_size=4)),
    st.tuples(st.just("read"), st.integers(0, 2), st.integers(1, 4)),
    st.tuples(st.just("deliver"), st.integers(0, 2)),
    st.tuples(st.just("die"), st.integers(0, 2)),
    st.tuples(st.just("crash"), st.integers(1, 4), st.booleans()),
    st.tuples(st.just("relay"), st.integers(1, 4)),
)


async def play(url: str, flush, moves) -> None:
    """Relays that read, stall, deliver late, die in between; uids that are added again."""
    flush()
    valkey = await connect(url)
    relays = [Paused(valkey) for _ in range(3)]
    added: list[int] = []
    try:
        for kind, *given in (("add", [100, 101, 102, 103]), *moves):
            if kind == "add":
                added += [number for number in dict.fromkeys(given[0]) if number not in added]
                await OUT.add(valkey, *jobs(*given[0]))
            elif kind == "read" and relays[given[0]].task is None:
                await relays[given[0]].start(given[1])
            elif kind in ("deliver", "die"):
                await relays[given[0]].end(die=kind == "die")
            elif kind == "crash":
                mortal = Mortal(valkey, given[0], after=given[1])
                with contextlib.suppress(Died):
                    await OUT.relay(mortal, SEEN.into(mortal, HOT.at()), now=NOW, most=3)
            elif kind == "relay":
                await OUT.relay(valkey, SEEN.into(valkey, HOT.at()), now=NOW, most=given[0])
        for relay in relays:
            await relay.end(die=False)
        await OUT.drain(valkey, SEEN.into(valkey, HOT.at()), now=NOW)
        arrived = [int(job.uid) for job in await HOT.at().range(valkey)]
        assert Counter(arrived) == Counter(added)
        assert arrived == added, "in the order in which they were first added"
    finally:
        await valkey.aclose()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(MOVES, min_size=5, max_size=30))
def test_any_interleaving_of_relays_has_one_effect_in_order(valkey_server: LocalServer, moves) -> None:
    asyncio.run(play(valkey_server.url, lambda: valkey_server.call("FLUSHALL"), moves))


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(MOVES, min_size=5, max_size=30))
def test_any_interleaving_on_a_cluster_has_one_effect_in_order(valkey_cluster, moves) -> None:
    asyncio.run(play(valkey_cluster.url, valkey_cluster.flush, moves))

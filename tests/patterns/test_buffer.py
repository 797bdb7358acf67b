"""Buffers: every row reaches a real SQL table exactly once, whatever dies between any two steps."""

import asyncio
import contextlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keystead.engine import Valkey, connect
from keystead.errors import DeclarationError
from keystead.keys import Keyspace, Registry
from keystead.patterns.buffer import Buffer, BufferBatch
from keystead.testing.server import LocalServer

from .crash import Died, crash_points


class Click(msgspec.Struct, frozen=True):
    uid: str
    at: float = 0.0


SPACE = Keyspace("tests", tag="buf")
CLICKS = Buffer(SPACE, "clicks", Click, purgatory="clicks:purgatory", most_dead=3, purpose="clicks", writers=("t",),
                readers=("t",))
SEEN = Buffer(SPACE, "seen", str, distinct=True, purpose="who was seen")
LATE = Buffer(SPACE, "stats:{family}:late", str, tag="stats:{family}", purpose="late events")
NOW = 5.0


class Table:
    """What the owning room does: rows and the batch's identifier in one transaction; a known identifier is left."""

    def __init__(self, path: Path | str = ":memory:") -> None:
        self.sql = sqlite3.connect(path, isolation_level=None)
        self.sql.execute("CREATE TABLE IF NOT EXISTS rows (uid TEXT)")
        self.sql.execute("CREATE TABLE IF NOT EXISTS batches (id TEXT PRIMARY KEY)")

    def store(self, batch: BufferBatch, die: Callable[[], None] = lambda: None) -> bool:
        try:
            self.sql.execute("BEGIN IMMEDIATE")
            die()
            new = self.sql.execute("INSERT OR IGNORE INTO batches VALUES (?)", (batch.id,)).rowcount == 1
            die()
            if new:
                for row in batch:
                    self.sql.execute("INSERT INTO rows VALUES (?)", (getattr(row.value, "uid", row.value),))
                    die()
            self.sql.execute("COMMIT")
            return new
        except BaseException:
            if self.sql.in_transaction:
                self.sql.execute("ROLLBACK")
            raise

    def rows(self) -> Counter[str]:
        return Counter(uid for (uid,) in self.sql.execute("SELECT uid FROM rows"))


@pytest.fixture
def table() -> Iterator[Table]:
    table = Table()
    yield table
    table.sql.close()


async def clear(valkey: Valkey) -> None:
    for node in await valkey.nodes():
        await node.call(("FLUSHALL",))


async def test_batch_keeps_rows_and_identifier_until_it_is_finished(server: Valkey) -> None:
    await CLICKS.push(server, *(Click(str(n)) for n in range(5)))
    first = await CLICKS.take(server, 3, now=NOW)
    assert first.values == [Click("0"), Click("1"), Click("2")] and first.handed_out == 1
    again = await CLICKS.take(server, 3, now=NOW)
    assert (again.id, again.values, again.handed_out) == (first.id, first.values, 2)
    assert await CLICKS.length(server) == 2
    assert await CLICKS.finish(server, first)
    assert not await CLICKS.finish(server, again)
    second = await CLICKS.take(server, 3, now=NOW)
    assert second.id != first.id and second.values == [Click("3"), Click("4")] and second.handed_out == 1
    assert not await CLICKS.finish(server, first)
    await CLICKS.finish(server, second)
    assert await CLICKS.take(server, 3, now=NOW) is None


async def test_keys_are_named_as_documented(server: Valkey) -> None:
    await CLICKS.push(server, Click("a"), Click("b"))
    await CLICKS.take(server, 1, now=NOW)
    await SEEN.push(server, "x")
    await SEEN.take(server, 1, now=NOW)
    names, registry = set(), Registry([SPACE], server.layout)
    for node in await server.nodes():
        for key in await node.call(("KEYS", "*")):
            assert registry.resolve(key)
            names.add(key.decode().rpartition("}")[2])
    assert names == {"clicks", "clicks:purgatory", "clicks:purgatory:batch", "seen_purgatory", "seen_purgatory:batch"}
    record = await CLICKS.batch_key.at().get(server)
    assert record.taken_at == NOW and record.handed_out == 1


async def test_equal_rows_of_one_batch_become_one_where_declared(server: Valkey) -> None:
    await SEEN.push(server, "a", "b", "a", "a", "c")
    batch = await SEEN.take(server, 4, now=NOW)
    assert sorted(batch.values) == ["a", "b"] and batch.dropped == 2
    again = await SEEN.take(server, 4, now=NOW)
    assert again.id == batch.id and sorted(again.values) == ["a", "b"]
    await SEEN.finish(server, batch)
    assert (await SEEN.take(server, 4, now=NOW)).values == ["c"]


async def test_undecodable_row_becomes_a_dead_letter_and_the_rest_is_stored(server: Valkey, table: Table) -> None:
    key = CLICKS.buffer.name(server.layout)
    await server.run(("RPUSH", key, b"bad", b'{"uid":"1"}', b"worse"), int)
    batch = await CLICKS.take(server, 10, now=NOW)
    assert batch.values == [Click("1")] and len(batch.spoiled) == 2
    assert [letter.raw for letter in await CLICKS.dead.range(server)] == [b"bad", b"worse"]
    table.store(batch)
    assert await CLICKS.finish(server, batch)
    await server.run(("RPUSH", key, b"only bad", b'{"uid":"2"}'), int)
    assert (await CLICKS.take(server, 1, now=NOW)).values == [Click("2")]


async def test_row_that_the_store_refuses_leaves_the_batch(server: Valkey) -> None:
    await CLICKS.push(server, *(Click(str(n)) for n in range(6)))
    batch = await CLICKS.take(server, 6, now=NOW)
    assert await CLICKS.bury(server, batch, batch.rows[:5], error="no such user", now=NOW) == 5
    letters = await CLICKS.dead.range(server)
    assert len(letters) == 3 and letters[-1].error == "no such user" and letters[-1].attempts == 1
    again = await CLICKS.take(server, 6, now=NOW)
    assert (again.id, again.values) == (batch.id, [Click("5")])
    await CLICKS.finish(server, again)
    assert await CLICKS.bury(server, batch, batch.rows[5:], error="late", now=NOW) == 0
    assert await CLICKS.replay(server, 9) == 3
    assert await CLICKS.length(server) == 3


async def test_full_buffer_refuses(server: Valkey) -> None:
    assert await SEEN.try_push(server, "a", "b", limit=2)
    assert not await SEEN.try_push(server, "c", limit=2)
    assert await SEEN.length(server) == 2


async def drain(on, table: Table, die: Callable[[], None] = lambda: None) -> None:
    while (batch := await CLICKS.take(on, 2, now=NOW)) is not None:
        table.store(batch, die)
        die()
        await CLICKS.finish(on, batch)
        die()


async def test_crash_at_any_step_of_either_side_stores_each_row_once(server: Valkey, tmp_path: Path) -> None:
    """Die before or after each command and each statement; a fresh process then goes on."""
    everything = Counter(str(n) for n in range(5))
    number = 0
    async for mortal in crash_points(server):
        number += 1
        await clear(server)
        table = Table(tmp_path / f"v{number}.sqlite")
        await CLICKS.push(server, *(Click(uid) for uid in everything))
        with contextlib.suppress(Died):
            await drain(mortal, table)
        await drain(server, table)
        assert table.rows() == everything
        table.sql.close()
        if not mortal.dead:
            break
    for step in range(1, 200):
        await clear(server)
        table = Table(tmp_path / f"s{step}.sqlite")
        await CLICKS.push(server, *(Click(uid) for uid in everything))
        left = step

        def die() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Died

        try:
            await drain(server, table, die)
            ended = True
        except Died:
            ended = False
        await drain(server, table)
        assert table.rows() == everything
        table.sql.close()
        if ended:
            assert step > 15
            return


async def test_processes_that_share_a_batch_store_it_once(server: Valkey, table: Table) -> None:
    await CLICKS.push(server, *(Click(str(n)) for n in range(60)))

    async def work(number: int) -> None:
        while (batch := await CLICKS.take(server, 7, now=NOW)) is not None:
            await asyncio.sleep(0.001 * (number % 3))
            table.store(batch)
            await asyncio.sleep(0)
            await CLICKS.finish(server, batch)

    await asyncio.gather(*(work(number) for number in range(5)))
    assert table.rows() == Counter(str(n) for n in range(60))


def test_pattern_with_variables_needs_them() -> None:
    assert LATE.at("sms").purgatory.logical == "stats:sms:late_purgatory"
    with pytest.raises(DeclarationError, match="has variables"):
        _ = LATE.buffer


MOVES = st.one_of(
    st.tuples(st.just("push"), st.lists(st.sampled_from("abc"), min_size=1, max_size=4)),
    st.tuples(st.just("take"), st.integers(0, 2), st.integers(1, 4)),
    st.tuples(st.just("store"), st.integers(0, 2), st.booleans()),
    st.tuples(st.just("finish"), st.integers(0, 2)),
    st.tuples(st.just("forget"), st.integers(0, 2)),
)


async def play(url: str, flush, distinct: bool, moves) -> None:
    """Three processes in any interleaving; each holds a batch, stores it (or dies while storing), finishes it."""
    flush()
    valkey = await connect(url)
    table = Table()
    rows = SEEN if distinct else Buffer(Keyspace("model", tag="m"), "model", str, purpose="a test")
    pushed: Counter[str] = Counter()
    minds: list[BufferBatch | None] = [None] * 3
    stored: set[str] = set()
    try:
        for kind, *given in (("push", list("abcabca")), *moves):
            if kind == "push":
                await rows.push(valkey, *given[0])
                pushed.update(given[0])
                continue
            mind = minds[given[0]]
            if kind == "take":
                minds[given[0]] = await rows.take(valkey, given[1], now=NOW)
            elif kind == "forget":
                minds[given[0]] = None
            elif mind is not None and kind == "store":
                if given[1]:
                    assert table.store(mind) == (mind.id not in stored)
                    stored.add(mind.id)
                else:
                    with pytest.raises(Died):
                        table.store(mind, _dies)
            elif mind is not None and kind == "finish" and mind.id in stored:
                await rows.finish(valkey, mind)
                minds[given[0]] = None
        while (batch := await rows.take(valkey, 3, now=NOW)) is not None:
            table.store(batch)
            await rows.finish(valkey, batch)
        if distinct:
            assert set(table.rows()) == set(pushed) and all(table.rows()[row] <= pushed[row] for row in pushed)
        else:
            assert table.rows() == pushed
    finally:
        table.sql.close()
        await valkey.aclose()


def _dies() -> None:
    raise Died


@pytest.mark.parametrize("distinct", [False, True])
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(MOVES, min_size=5, max_size=30))
def test_any_interleaving_stores_each_row_once(valkey_server: LocalServer, distinct: bool, moves) -> None:
    asyncio.run(play(valkey_server.url, lambda: valkey_server.call("FLUSHALL"), distinct, moves))


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(MOVES, min_size=5, max_size=30))
def test_any_interleaving_on_a_cluster_stores_each_row_once(valkey_cluster, moves) -> None:
    asyncio.run(play(valkey_cluster.url, valkey_cluster.flush, False, moves))

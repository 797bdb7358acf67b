import asyncio

import msgspec

from keystead.engine import scan
from keystead.inventory import from_registry
from keystead.keys import Keyspace, ListKey, Pair, RecordKey, Registry, SetKey, SortedSetKey
from keystead.survey import Drift, look_at_declared
from keystead.survey.pairs import Pairs
from keystead.survey.values import Faults

from ..operations import shop


class Row(msgspec.Struct, frozen=True):
    name: str


ROOM = Keyspace("room")
BOOK = RecordKey(ROOM, "books:{shelf}:{isbn}", Row, purpose="a book")
SHELF = SetKey(ROOM, "books:{shelf}", str, member="isbn", purpose="books of a shelf", pairs_with=Pair(BOOK))
TASK = RecordKey(ROOM, "task:{task_id:integer}", Row, purpose="a task")
TASKS = ListKey(ROOM, "tasks", str, purpose="tasks in order", pairs_with=Pair(TASK))
DUE = SortedSetKey(ROOM, "due", int, member="task id", score="when", purpose="tasks by time", pairs_with=Pair(TASK))


class Told(Faults):
    """Remembers every fault, not only a few examples."""

    def __init__(self) -> None:
        super().__init__()
        self.said: set[tuple[str, str]] = set()

    def add(self, kind, pattern, key, says) -> None:
        assert kind is Drift.BROKEN_PAIR
        self.said.add((key, says))


async def broken(valkey, registry) -> set[tuple[str, str]]:
    told = Told()
    pairs = Pairs(valkey, registry, told, 20_000)
    async for batch in scan(valkey, batch_keys=256):
        await pairs.check([(raw_key, match) for raw_key in dict.fromkeys(batch)
                           if (match := registry.resolve(raw_key)) is not None])
    return told.said


async def test_pairs_are_checked_beyond_the_first_members(valkey):
    members = {str(number): number for number in range(1000)}
    await valkey.zadd("pending", members)
    async with valkey.pipeline(transaction=False) as pipeline:
        for number in range(1000):
            if number != 777:
                pipeline.hset(f"pending:{number}", mapping={"customer": "a", "total_cents": "1"})
        await pipeline.execute()
    assert await broken(valkey, shop.registry()) == {("pending", "member '777' has no pending:{order_id}")}


async def test_a_pair_that_is_being_changed_is_not_reported(valkey):
    """A writer that adds and removes whole pairs all the time never looks broken."""
    stop = asyncio.Event()

    async def churn() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            async with valkey.pipeline(transaction=True) as pipeline:
                pipeline.hset(f"pending:{number}", mapping={"customer": "a", "total_cents": "1"})
                pipeline.zadd("pending", {str(number): number})
                if number > 50:
                    pipeline.delete(f"pending:{number - 50}")
                    pipeline.zrem("pending", str(number - 50))
                await pipeline.execute()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(churn())
        await asyncio.sleep(0.05)
        for _ in range(10):
            assert await broken(valkey, shop.registry()) == set()
        stop.set()


async def test_an_index_is_paired_through_its_own_variables(valkey):
    await valkey.sadd("books:top", "1", "2")
    await valkey.sadd("books:low", "3")
    for key in ("books:top:1", "books:low:2", "books:low:3"):
        await valkey.hset(key, "name", "x")
    assert await broken(valkey, Registry([ROOM])) == {
        ("books:top", "member '2' has no books:{shelf}:{isbn}"),
        ("books:low:2", "is not a member of books:{shelf}"),
    }


async def test_lists_are_asked_for_records_only(valkey):
    """Whether a list holds something cannot be asked without reading it whole, so that side is left out."""
    await valkey.rpush("tasks", *range(450))
    await valkey.zadd("due", {str(number): number for number in range(460)})
    for number in range(460):
        if number not in (3, 449):
            await valkey.hset(f"task:{number}", "name", "x")
    await valkey.config_resetstat()
    assert await broken(valkey, Registry([ROOM])) == {
        (index, f"member '{number}' has no task:{{task_id}}") for index in ("tasks", "due") for number in (3, 449)
    }
    assert "cmdstat_lpos" not in await valkey.info("commandstats")


async def test_member_that_cannot_be_named_is_broken(valkey):
    await valkey.zadd("due", {"5": 1})
    await valkey.hset("task:5", "name", "x")
    await valkey.sadd("books:top", "has:colon")
    assert await broken(valkey, Registry([ROOM])) == {
        ("books:top", "member 'has:colon' has no books:{shelf}:{isbn}"),
    }


async def test_index_of_the_wrong_type_is_reported_as_that_only(valkey):
    await valkey.set("due", "x")
    registry = Registry([ROOM])
    live, _, found = await look_at_declared(valkey, registry, from_registry(registry))
    assert live.tally.entries["due"].wrong_type.keys == 1 and found == ()


async def test_one_broken_pair_among_many_indexes_is_found(valkey):
    async with valkey.pipeline(transaction=False) as pipeline:
        for shelf in range(400):
            pipeline.sadd(f"books:{shelf}", "1", "2")
            pipeline.hset(f"books:{shelf}:1", "name", "x")
            if shelf != 123:
                pipeline.hset(f"books:{shelf}:2", "name", "x")
        await pipeline.execute()
    assert await broken(valkey, Registry([ROOM])) == {("books:123", "member '2' has no books:{shelf}:{isbn}")}


async def test_a_long_index_is_read_in_pages(valkey):
    for kind, add in (("due", valkey.zadd), ("tasks", valkey.rpush)):
        for start in range(0, 5000, 1000):
            numbers = range(start, start + 1000)
            await (add(kind, {str(number): number for number in numbers}) if kind == "due" else add(kind, *numbers))
    async with valkey.pipeline(transaction=False) as pipeline:
        for number in range(4999):
            pipeline.hset(f"task:{number}", "name", "x")
        await pipeline.execute()
    assert await broken(valkey, Registry([ROOM])) == {
        ("due", "member '4999' has no task:{task_id}"), ("tasks", "member '4999' has no task:{task_id}"),
    }

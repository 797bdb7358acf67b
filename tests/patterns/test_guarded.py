"""Guarded writes: all of them happen with the guard, or none does; beside a plain model."""

from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.keys import (
    AtMost,
    Exactly,
    FlagKey,
    IntegerKey,
    Keyspace,
    Layout,
    ListKey,
    MapKey,
    RecordKey,
    Registry,
    SetKey,
    Sliding,
    SortedSetKey,
    StringKey,
)
from keystead.patterns import (
    DailyFamily,
    DelayedSet,
    Item,
    Once,
    PendingIndex,
    PendingOutcome,
    Tallies,
    WorkList,
    Writes,
    once,
)
from keystead.telemetry import counts
from keystead.testing.checks import check_no_undeclared_keys

from .crash import crash_points
from .machines import ServerMachine, on_both, play


class Person(msgspec.Struct, frozen=True):
    name: str
    age: int | None = None
    num_changes: int = 0


SPACE = Keyspace("tests", tag="msg")
ELSEWHERE = Keyspace("elsewhere", tag="far")
MARK = FlagKey(SPACE, "mark:{uid}", ttl=Exactly(60), purpose="queued once")
LIST = ListKey(SPACE, "list", bytes, purpose="a list")
SHORT = ListKey(SPACE, "short", str, ttl=Exactly(50), purpose="a list that ends")
TEXT = StringKey(SPACE, "text:{which}", str, ttl=AtMost(100), purpose="a value")
NUMBER = IntegerKey(SPACE, "number", ttl=Exactly(60), purpose="a count")
MEMBERS = SetKey(SPACE, "members", str, member="one", ttl=Sliding(90), purpose="a set")
SCORES = SortedSetKey(SPACE, "scores", str, member="one", score="when", purpose="a sorted set")
FIELDS = MapKey(SPACE, "fields", int, fields=("{name}",), purpose="counts")
PERSON = RecordKey(SPACE, "person:{name}", Person, purpose="a record")
FAR = StringKey(ELSEWHERE, "far", str, purpose="of another tag")
WORK = WorkList(SPACE, "work", str, purpose="items")
LATER = DelayedSet(SPACE, "later", str, member="one", purpose="members")
PENDING = PendingIndex(SPACE, "pending", record="pending:{uid}", of=Person, member="uid", score="when", purpose="pairs")
EVENTS = DailyFamily(SPACE, "events", counts=("found",), breakdowns={"failed": "status"}, held_days=2,
                     zone="America/Los_Angeles", most_breakdown_fields=2, purpose="what happened")
CLICKS = DailyFamily(SPACE, "clicks", counts=("seen",), held_days=2, zone="America/Los_Angeles", purpose="clicks")
DAY = 19331


async def test_every_kind_of_write_happens_with_the_guard(server: Valkey) -> None:
    raw = bytes(range(256)) * 300
    writes = Writes(server.layout)
    LIST.at().push_right(writes, b"a", raw, b"x" * 40, b"y" * 300)
    SHORT.at().push_left(writes, "z")
    TEXT.at("1").lasting(30).set(writes, "ümlaut")
    NUMBER.at().increment(writes, 2**53 + 1)
    MEMBERS.at().add(writes, "m", "n")
    MEMBERS.at().remove(writes, "m")
    SCORES.at().add(writes, "s", 1234567890.123456)
    FIELDS.at().increment(writes, "f", 3)
    PERSON.at("ann").set(writes, Person("ann", None))
    PENDING.write(writes, "p", Person("pat", 7), 900.5)
    WORK.push(writes, "next")
    LATER.schedule(writes, "soon", 55.25)
    assert await once(server, MARK.at("u"), writes) is Once.DONE
    assert await LIST.at().range(server) == [b"a", raw, b"x" * 40, b"y" * 300]
    assert await SHORT.at().range(server) == ["z"]
    assert 40 < (await SHORT.at().remaining_seconds(server) or 0) <= 50
    assert await TEXT.at("1").get(server) == "ümlaut"
    assert 20 < (await TEXT.at("1").remaining_seconds(server) or 0) <= 30
    assert await NUMBER.at().get(server) == 2**53 + 1
    assert await MEMBERS.at().members(server) == ["n"]
    assert 80 < (await MEMBERS.at().remaining_seconds(server) or 0) <= 90
    assert await SCORES.at().range(server) == [("s", 1234567890.123456)]
    assert await FIELDS.at().all(server) == {"f": 3}
    assert await PERSON.at("ann").get(server) == Person("ann", None)
    found = await PENDING.get(server, "p")
    assert found is not None
    assert (found.score, found.record) == (900.5, Person("pat", 7))
    assert await WORK.length(server) == 1
    assert await LATER.due_at(server, "soon") == 55.25
    assert 50 < (await MARK.at("u").remaining_seconds(server) or 0) <= 60


async def test_the_same_mark_is_good_for_one_time(server: Valkey) -> None:
    for expected in (Once.DONE, Once.SEEN, Once.SEEN):
        writes = Writes(server.layout)
        LIST.at().push_right(writes, b"x")
        EVENTS.tally().incr("found", unix_date=DAY).store(writes)
        assert await once(server, MARK.at("u"), writes) is expected
    assert await LIST.at().length(server) == 1
    assert (await EVENTS.read(server, DAY)).counts["found"] == 1


async def test_a_full_list_takes_nothing_and_what_was_seen_is_not_refused(server: Valkey) -> None:
    async def put(uid: str) -> Once:
        writes = Writes(server.layout)
        LIST.at().push_right(writes, uid.encode())
        return await once(server, MARK.at(uid), writes, limit=(LIST.at(), 2))

    assert [await put(uid) for uid in "abc"] == [Once.DONE, Once.DONE, Once.FULL]
    assert await put("a") is Once.SEEN
    assert not await MARK.at("c").is_raised(server)
    assert await LIST.at().range(server) == [b"a", b"b"]
    with pytest.raises(DeclarationError, match="full with 0 elements or more"):
        once(server, MARK.at("d"), Writes(server.layout), limit=(LIST.at(), -1))


async def test_an_item_is_settled_with_its_writes_or_not_at_all(server: Valkey) -> None:
    await WORK.push(server, "a", "b")
    mine, other = WORK.worker("mine"), WORK.worker("other")
    taken = await mine.take(server, 2, now=1.0)
    writes = Writes(server.layout)
    LIST.at().push_right(writes, b"done")
    assert await mine.settle(server, taken.items[1], writes)
    assert not await mine.settle(server, taken.items[1], writes)
    assert not await other.settle(server, taken.items[0], writes)
    async with server.pipeline(transaction=False) as pipeline:
        answer = mine.settle(pipeline, taken.items[0], Writes(server.layout))
        await pipeline.execute()
    assert await answer
    assert await LIST.at().range(server) == [b"done"]
    assert await mine.held(server) == 0


async def test_who_was_taken_for_dead_writes_nothing(server: Valkey) -> None:
    await WORK.push(server, "a")
    slow = WORK.worker("slow")
    taken = await slow.take(server, 1, now=1.0)
    await WORK.alive_key.at(worker="slow").delete(server)
    await WORK.adopt(server, now=2.0)
    writes = Writes(server.layout)
    LIST.at().push_right(writes, b"done")
    assert not await slow.settle(server, taken.items[0], writes)
    assert await LIST.at().length(server) == 0
    again = await WORK.worker("quick").take(server, 1, now=3.0)
    assert await WORK.worker("quick").settle(server, again.items[0], writes)
    assert await LIST.at().length(server) == 1
    assert await WORK.poison_key.at().all(server) == {}


def pushed(server: Valkey, word: bytes, *, amount: int = 1) -> Writes:
    writes = Writes(server.layout)
    LIST.at().push_right(writes, word)
    EVENTS.tally().incr("found", amount=amount, unix_date=DAY).store(writes)
    return writes


async def test_many_items_are_settled_each_with_its_writes(server: Valkey) -> None:
    items = [f"i{number}" for number in range(400)]
    await WORK.push(server, *items, "equal", "equal", "rest")
    worker = WORK.worker("mine")
    taken = (await worker.take(server, 500, now=1.0)).items
    some = [*taken[200:402], *taken[:200]]
    assert await worker.settle_each(server, [(item, pushed(server, item.raw)) for item in some]) == [True] * 402
    assert await LIST.at().range(server) == [item.raw for item in some]
    assert (await EVENTS.read(server, DAY)).counts["found"] == 402
    assert await worker.held(server) == 1
    assert await worker.settle_each(server, []) == []


async def test_an_item_that_is_not_ours_stops_no_other(server: Valkey) -> None:
    await WORK.push(server, "a", "b", "c")
    worker = WORK.worker("mine")
    taken = (await worker.take(server, 3, now=1.0)).items
    assert await worker.settle(server, taken[1], Writes(server.layout))
    async with server.pipeline(transaction=False) as pipeline:
        also = LIST.at().length(pipeline)
        told = await worker.settle_each(server, [(item, pushed(server, item.raw)) for item in taken], also=pipeline)
    assert await also == 0
    assert told == [True, False, True]
    assert await LIST.at().range(server) == [b"a", b"c"]
    assert (await EVENTS.read(server, DAY)).counts["found"] == 2
    assert await worker.settle_each(server, [(taken[0], pushed(server, b"a"))]) == [False]
    assert await LIST.at().length(server) == 2


async def test_an_item_whose_writes_are_refused_stops_no_other(server: Valkey) -> None:
    await server.set(FIELDS.at().name(server.layout), "text")
    await WORK.push(server, "a", "b", "c")
    worker = WORK.worker("mine")
    taken = (await worker.take(server, 3, now=1.0)).items
    settlements = [(item, pushed(server, item.raw)) for item in taken]
    FIELDS.at().increment(settlements[1][1], "f", 1)
    told = await worker.settle_each(server, settlements)
    assert told[0] is told[2] is True
    assert "WRONGTYPE" in str(told[1])
    assert await LIST.at().range(server) == [b"a", b"c"]
    assert await worker.held(server) == 1
    # What is found only while it is written harms neither the others nor what follows.
    await FIELDS.at().delete(server)
    await server.hset(FIELDS.at().name(server.layout), "f", "no number")
    await WORK.push(server, "d", "e")
    more = [taken[1], *(await worker.take(server, 2, now=1.0, leftovers_first=False)).items]
    settlements = [(item, Writes(server.layout)) for item in more]
    FIELDS.at().increment(settlements[0][1], "f", 1)
    for item, writes in settlements:
        writes.add(pushed(server, item.raw))
    assert await worker.settle_each(server, settlements) == [True, True, True]
    assert await LIST.at().range(server) == [b"a", b"c", b"b", b"d", b"e"]
    assert (await EVENTS.read(server, DAY)).counts["found"] == 5


async def test_a_count_that_cannot_be_added_to_harms_no_other(server: Valkey) -> None:
    await EVENTS.tally().incr("found", unix_date=DAY).store(server)
    await server.hset(EVENTS.day_names(DAY, server.layout)[0], "found", "no number")
    await WORK.push(server, "a", "b")
    worker = WORK.worker("mine")
    settlements = [(item, pushed(server, item.raw)) for item in (await worker.take(server, 2, now=1.0)).items]
    CLICKS.tally().incr("seen", unix_date=DAY).store(settlements[1][1])
    assert await worker.settle_each(server, settlements) == [True, True]
    assert await LIST.at().range(server) == [b"a", b"b"]
    assert (await CLICKS.read(server, DAY)).counts["seen"] == 1


async def test_a_due_member_is_settled_with_its_writes_or_not_at_all(server: Valkey) -> None:
    await LATER.schedule(server, "a", 5.0)
    worker = LATER.worker("mine")
    [item] = (await worker.take(server, 1, now=6.0)).items
    writes = Writes(server.layout)
    LATER.schedule(writes, "b", 7.0)
    assert await worker.settle(server, item, writes)
    assert not await worker.settle(server, item, writes)
    assert await LATER.due.range(server) == [("b", 7.0)]
    assert await worker.held(server) == []


async def test_a_pending_pair_changes_with_its_writes_or_not_at_all(server: Valkey) -> None:
    writes = Writes(server.layout)
    LIST.at().push_right(writes, b"job")
    CLICKS.tally().incr("seen", unix_date=DAY).store(writes)
    await PENDING.open(server, "p", Person("pat"), 1.0)
    assert await PENDING.update(server, "p", 5, writes=writes, age=3) is PendingOutcome.CHANGED
    assert await PENDING.update(server, "p", 0, score=9.0, writes=writes, age=3) is PendingOutcome.DONE
    assert await PENDING.remove(server, "p", 0, writes=writes) is PendingOutcome.CHANGED
    pushed = [(LIST.at(), b"ready")]
    assert await PENDING.remove(server, "p", 1, push=pushed, writes=writes) is PendingOutcome.DONE
    assert await PENDING.remove(server, "p", 1, writes=writes) is PendingOutcome.ABSENT
    assert await LIST.at().range(server) == [b"job", b"ready", b"job"]
    assert (await CLICKS.read(server, DAY)).counts == {"seen": 2}


async def test_counts_keep_their_rules_inside_writes(server: Valkey) -> None:
    await EVENTS.tally().incr("found", unix_date=DAY - 1).store(server)
    await EVENTS.begin_rotation(server, DAY - 1, "r")
    late, overflow = (counts.value(name, family="events") for name in ("daily_late", "daily_overflow"))
    writes = Writes(server.layout)
    tallies = Tallies()
    tallies.of(EVENTS).incr("found", unix_date=DAY - 1)
    tallies.of(CLICKS).incr("seen", amount=10**12, unix_date=DAY)
    tallies.add_to(writes)
    for status in ("one", "two", "three"):
        EVENTS.tally().incr("failed", status, unix_date=DAY).store(writes)
    assert await once(server, MARK.at("u"), writes) is Once.DONE
    assert (await CLICKS.read(server, DAY)).counts == {"seen": 10**12}
    assert sum((await EVENTS.read(server, DAY)).breakdowns["failed"].values()) == 3
    assert counts.value("daily_overflow", family="events") - overflow == 1
    assert counts.value("daily_late", family="events") - late == 1
    assert [(one.count.unix_date, one.count.event, one.count.amount) for one in await EVENTS.late(server, now=1.0)] == [
        (DAY - 1, "found", 1)
    ]


async def test_what_is_remembered_after_the_call_is_no_part_of_it(server: Valkey) -> None:
    writes = Writes(server.layout)
    LIST.at().push_right(writes, b"1")
    EVENTS.tally().incr("found", unix_date=DAY).store(writes)
    under_way = once(server, MARK.at("a"), writes)
    LIST.at().push_right(writes, b"2")
    CLICKS.tally().incr("seen", unix_date=DAY).store(writes)
    assert await under_way is Once.DONE
    assert await LIST.at().range(server) == [b"1"]
    assert (await CLICKS.read(server, DAY)).counts.get("seen", 0) == 0


async def test_a_wrong_type_is_noticed_before_anything_is_written(server: Valkey) -> None:
    await server.set(FIELDS.at().name(server.layout), "text")
    await WORK.push(server, "a")
    worker = WORK.worker("mine")
    [item] = (await worker.take(server, 1, now=1.0)).items
    writes = Writes(server.layout)
    LIST.at().push_right(writes, b"x")
    FIELDS.at().increment(writes, "f", 1)
    with pytest.raises(Exception, match=r"WRONGTYPE .*fields must be a hash, and is a string"):
        await worker.settle(server, item, writes)
    assert await worker.held(server) == 1
    assert await LIST.at().length(server) == 0
    # What is made anew may have been anything.
    anew = Writes(server.layout)
    FIELDS.at().delete(anew)
    FIELDS.at().increment(anew, "f", 1)
    assert await worker.settle(server, item, anew)
    assert await FIELDS.at().all(server) == {"f": 1}


async def test_only_writes_of_one_key_can_be_remembered(server: Valkey) -> None:
    writes = Writes(server.layout)
    for call, says in (
        (lambda: LIST.at().range(writes), "LRANGE cannot be a guarded write"),
        (lambda: writes.run(("DEL", b"a", b"b"), int), "one key only, got 2"),
        (lambda: writes.run(("LMOVE", b"a", b"b", "LEFT", "RIGHT"), int), "LMOVE cannot be"),
        (lambda: WORK.try_push(writes, "x", limit=3), "push_within.lua.* cannot be a guarded write"),
        (lambda: writes.run(("RPUSH", b"a", *[b"x"] * 6000), int), "at most 5000"),
    ):
        with pytest.raises(DeclarationError, match=says):
            call()
    assert not writes
    with pytest.raises(DeclarationError, match="has no answer"):
        await LIST.at().push_right(writes, b"x")
    other = Layout.TAGGED if server.layout is Layout.PLAIN else Layout.PLAIN
    with pytest.raises(DeclarationError, match="two layouts"):
        Writes(other).add(writes)
    with pytest.raises(DeclarationError, match="these writes are for"):
        WORK.worker("w").settle(server, Item("a", b"a"), Writes(other))


async def test_writes_of_two_tags_are_refused_on_a_cluster(cluster: Valkey) -> None:
    writes = Writes(cluster.layout)
    LIST.at().push_right(writes, b"x")
    FAR.at().set(writes, "y")
    with pytest.raises(DeclarationError, match="different slots"):
        await once(cluster, MARK.at("u"), writes)


async def test_joined_writes_keep_their_order_and_leave_the_other_as_it_was(server: Valkey) -> None:
    first, second = Writes(server.layout), Writes(server.layout)
    LIST.at().push_right(first, b"1")
    EVENTS.tally().incr("found", unix_date=DAY).store(first)
    LIST.at().push_right(second, b"2")
    EVENTS.tally().incr("found", amount=2, unix_date=DAY).store(second)
    assert first.add(second) is first
    LIST.at().push_right(first, b"3")
    assert await once(server, MARK.at("a"), first) is Once.DONE
    assert await once(server, MARK.at("b"), second) is Once.DONE
    assert await LIST.at().range(server) == [b"1", b"2", b"3", b"2"]
    assert (await EVENTS.read(server, DAY)).counts["found"] == 5


async def test_dying_anywhere_leaves_item_and_writes_in_step(server: Valkey) -> None:
    async for mortal in crash_points(server):
        await server.flushall()
        await WORK.push(server, "a")
        worker = WORK.worker("mine")
        [item] = (await worker.take(server, 1, now=1.0)).items
        writes = Writes(server.layout)
        LIST.at().push_right(writes, b"x")
        EVENTS.tally().incr("found", unix_date=DAY).store(writes)
        try:
            await worker.settle(mortal, item, writes)
        except BaseException as error:
            if not mortal.dead:
                raise error
        held = await worker.held(server)
        assert await LIST.at().length(server) == 1 - held
        assert (await EVENTS.read(server, DAY)).counts.get("found", 0) == 1 - held
        if not mortal.dead:
            break


NAMES = st.sampled_from("abc")
SMALL = st.integers(-3, 5)
WRITE = st.one_of(
    st.tuples(st.just("push"), st.binary(max_size=80)),
    st.tuples(st.just("add"), NAMES),
    st.tuples(st.just("drop"), NAMES),
    st.tuples(st.just("score"), NAMES, SMALL),
    st.tuples(st.just("incr"), NAMES, SMALL),
    st.tuples(st.just("clear"),),
    st.tuples(st.just("count"), NAMES),
)


class Plain:
    """What the server should hold."""

    def __init__(self) -> None:
        self.list: list[bytes] = []
        self.members: set[str] = set()
        self.scores: dict[str, float] = {}
        self.fields: dict[str, int] = {}
        self.failed: dict[str, int] = {}
        self.marks: set[str] = set()
        self.queue: list[str] = []
        self.held: list[str] = []

    def write(self, kind: str, *values: Any) -> None:
        match kind, *values:
            case "push", raw:
                self.list.append(raw)
            case "add", name:
                self.members.add(name)
            case "drop", name:
                self.members.discard(name)
            case "score", name, score:
                self.scores[name] = score
            case "incr", name, by:
                self.fields[name] = self.fields.get(name, 0) + by
            case "clear",:
                self.fields = {}
            case "count", name:
                self.failed[name] = self.failed.get(name, 0) + 1


def remember(writes: Writes, kind: str, *values: Any) -> None:
    match kind, *values:
        case "push", raw:
            LIST.at().push_right(writes, raw)
        case "add", name:
            MEMBERS.at().add(writes, name)
        case "drop", name:
            MEMBERS.at().remove(writes, name)
        case "score", name, score:
            SCORES.at().add(writes, name, score)
        case "incr", name, by:
            FIELDS.at().increment(writes, name, by)
        case "clear",:
            FIELDS.at().delete(writes)
        case "count", name:
            FREE.tally().incr("failed", name, unix_date=DAY).store(writes)


FREE = DailyFamily(SPACE, "free", breakdowns={"failed": "status"}, held_days=2, zone="America/Los_Angeles", purpose="x")


class Guarding(ServerMachine):
    """Random writes under random guards."""

    def __init__(self, url: str, servers: list[Any]) -> None:
        super().__init__(url, servers)
        self.model = Plain()
        self.worker = WORK.worker()

    def writes(self, moves: list[tuple[Any, ...]]) -> Writes:
        parts = [Writes(self.client.layout) for _ in moves]
        for part, move in zip(parts, moves, strict=True):
            remember(part, *move)
        whole = Writes(self.client.layout)
        for part in parts:
            whole.add(part)
        return whole

    @rule(uid=NAMES, moves=st.lists(WRITE, max_size=5), most=st.none() | st.integers(0, 6))
    def do_once(self, uid: str, moves: list[tuple[Any, ...]], most: int | None) -> None:
        limit = None if most is None else (LIST.at(), most)
        found = self.run(lambda: once(self.client, MARK.at(uid), self.writes(moves), limit=limit))
        if uid in self.model.marks:
            assert found is Once.SEEN
        elif most is not None and len(self.model.list) >= most:
            assert found is Once.FULL
        else:
            assert found is Once.DONE
            self.model.marks.add(uid)
            for move in moves:
                self.model.write(*move)

    @rule(uid=NAMES)
    def forget(self, uid: str) -> None:
        self.run(lambda: MARK.at(uid).lower_flag(self.client))
        self.model.marks.discard(uid)

    @rule(item=NAMES)
    def take_one(self, item: str) -> None:
        self.run(lambda: WORK.push(self.client, item))
        self.run(lambda: self.worker.take(self.client, 1, now=1.0, leftovers_first=False))
        self.model.held.append(item)

    @rule(item=NAMES, moves=st.lists(WRITE, max_size=5))
    def settle(self, item: str, moves: list[tuple[Any, ...]]) -> None:
        given = Item(item, WORK.queue_key.codec.encode(item))
        ours = self.run(lambda: self.worker.settle(self.client, given, self.writes(moves)))
        assert ours == (item in self.model.held)
        if ours:
            self.model.held.remove(item)
            for move in moves:
                self.model.write(*move)

    @rule(items=st.lists(st.tuples(NAMES, st.lists(WRITE, max_size=3)), max_size=3, unique_by=lambda one: one[0]))
    def settle_each(self, items: list[tuple[str, list[tuple[Any, ...]]]]) -> None:
        given = [(Item(item, WORK.queue_key.codec.encode(item)), self.writes(moves)) for item, moves in items]
        told = self.run(lambda: self.worker.settle_each(self.client, given))
        for (item, moves), ours in zip(items, told, strict=True):
            assert ours is (item in self.model.held)
            if ours:
                self.model.held.remove(item)
                for move in moves:
                    self.model.write(*move)

    def teardown(self) -> None:
        model, valkey = self.model, self.client
        try:
            assert self.run(lambda: LIST.at().range(valkey)) == model.list
            assert set(self.run(lambda: MEMBERS.at().members(valkey))) == model.members
            assert dict(self.run(lambda: SCORES.at().range(valkey))) == model.scores
            assert self.run(lambda: FIELDS.at().all(valkey)) == model.fields
            assert self.run(lambda: FREE.read(valkey, DAY)).breakdowns["failed"] == model.failed
            assert self.run(lambda: self.worker.held(valkey)) == len(model.held)
            check_no_undeclared_keys(Registry([SPACE], layout=valkey.layout), *self.servers)
        finally:
            super().teardown()


@on_both
def test_guarded_writes_do_what_the_model_does(request: pytest.FixtureRequest, place: str) -> None:
    play(request, place, Guarding, examples=40, steps=20)

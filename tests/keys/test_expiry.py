"""No operation can write a key without its declared expiry, or lose one that is running: tried on a real server.

Every public operation of every reference type is listed here as one that writes or one that does not; an operation
that is in neither list fails the test, so a new one cannot slip by.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from keystead.errors import DeclarationError
from keystead.keys import (
    AtMost,
    Exactly,
    FlagKey,
    FlagRef,
    GeoKey,
    GeoRef,
    IntegerKey,
    IntegerRef,
    KeyReference,
    Keyspace,
    Layout,
    ListKey,
    ListRef,
    LockKey,
    LockKind,
    LockRef,
    MapKey,
    MapRef,
    NoneUntilEnded,
    NoTtl,
    RecordKey,
    RecordRef,
    SetKey,
    SetRef,
    Sliding,
    SortedSetKey,
    SortedSetRef,
    StreamKey,
    StreamRef,
    StringKey,
    StringRef,
    Ttl,
    Until,
)

Operation = Callable[[Any, Any], Awaitable[Any]]
SOON = time.time() + 3000


class Token(msgspec.Struct, frozen=True):
    name: str
    expires_at: float
    note: str | None = None


TOKEN = Token("a", SOON)
MAKE: dict[type, Callable[[Keyspace, Ttl], Any]] = {
    StringRef: lambda ks, ttl: StringKey(ks, "k:{x}", Token, ttl=ttl, purpose="t"),
    IntegerRef: lambda ks, ttl: IntegerKey(ks, "k:{x}", ttl=ttl, purpose="t"),
    FlagRef: lambda ks, ttl: FlagKey(ks, "k:{x}", ttl=ttl, purpose="t"),
    RecordRef: lambda ks, ttl: RecordKey(ks, "k:{x}", Token, ttl=ttl, purpose="t"),
    MapRef: lambda ks, ttl: MapKey(ks, "k:{x}", int, ttl=ttl, purpose="t"),
    ListRef: lambda ks, ttl: ListKey(ks, "k:{x}", str, ttl=ttl, purpose="t"),
    SetRef: lambda ks, ttl: SetKey(ks, "k:{x}", str, ttl=ttl, purpose="t"),
    SortedSetRef: lambda ks, ttl: SortedSetKey(ks, "k:{x}", str, member="m", score="s", ttl=ttl, purpose="t"),
    StreamRef: lambda ks, ttl: StreamKey(ks, "k:{x}", Token, most_items=10, ttl=ttl, purpose="t"),
    GeoRef: lambda ks, ttl: GeoKey(ks, "k:{x}", str, member="m", ttl=ttl, purpose="t"),
    LockRef: lambda ks, ttl: LockKey(ks, "k:{x}", LockKind.SMART, ttl=ttl, purpose="t"),
}
# What may bring a key into being or overwrite it, and whether it writes the value anew.
WRITES: dict[type, dict[str, tuple[Operation, bool]]] = {
    StringRef: {
        "set": (lambda ref, ex: ref.set(ex, TOKEN), True),
        "set_if_absent": (lambda ref, ex: ref.set_if_absent(ex, TOKEN), False),
    },
    IntegerRef: {
        "set": (lambda ref, ex: ref.set(ex, 5), True),
        "increment": (lambda ref, ex: ref.increment(ex), False),
    },
    FlagRef: {
        "raise_flag": (lambda ref, ex: ref.raise_flag(ex), True),
        "try_raise": (lambda ref, ex: ref.try_raise(ex), False),
    },
    RecordRef: {
        "set": (lambda ref, ex: ref.set(ex, TOKEN), True),
        "update": (lambda ref, ex: ref.update(ex, name="b", note=None, expires_at=SOON), False),
    },
    MapRef: {
        "set": (lambda ref, ex: ref.set(ex, "f", 1), False),
        "set_many": (lambda ref, ex: ref.set_many(ex, {"f": 1, "g": 2}), False),
        "increment": (lambda ref, ex: ref.increment(ex, "f"), False),
    },
    ListRef: {
        "push_left": (lambda ref, ex: ref.push_left(ex, "a"), False),
        "push_right": (lambda ref, ex: ref.push_right(ex, "a", "b"), False),
    },
    SetRef: {"add": (lambda ref, ex: ref.add(ex, "a"), False)},
    SortedSetRef: {
        "add": (lambda ref, ex: ref.add(ex, "a", 1), False),
        "add_many": (lambda ref, ex: ref.add_many(ex, {"a": 1.0, "b": 2.0}), False),
        "increment": (lambda ref, ex: ref.increment(ex, "a", 1), False),
    },
    StreamRef: {"append": (lambda ref, ex: ref.append(ex, TOKEN), False)},
    GeoRef: {"add": (lambda ref, ex: ref.add(ex, "a", longitude=1, latitude=2), False)},
    LockRef: {},
}
EVERY_KEY = {
    "arguments", "corrupt", "declaration", "delete", "end", "exists", "lasting", "logical", "name",
    "remaining_seconds", "until",
}
# What reads, or takes away and leaves the rest as it is.
OTHERS: dict[type, dict[str, Operation | None]] = {
    StringRef: {"get": lambda ref, ex: ref.get(ex), "get_and_delete": None, "codec": None},
    IntegerRef: {"get": lambda ref, ex: ref.get(ex)},
    FlagRef: {"is_raised": lambda ref, ex: ref.is_raised(ex), "lower_flag": None},
    RecordRef: {"get": lambda ref, ex: ref.get(ex), "record": None},
    MapRef: {
        "get": lambda ref, ex: ref.get(ex, "f"), "all": lambda ref, ex: ref.all(ex),
        "size": lambda ref, ex: ref.size(ex), "remove": lambda ref, ex: ref.remove(ex, "other"), "codec": None,
    },
    ListRef: {
        "range": lambda ref, ex: ref.range(ex), "length": lambda ref, ex: ref.length(ex),
        "pop_left": None, "pop_right": None, "codec": None,
    },
    SetRef: {
        "contains": lambda ref, ex: ref.contains(ex, "a"),
        "contains_many": lambda ref, ex: ref.contains_many(ex, ["a"]), "members": lambda ref, ex: ref.members(ex),
        "size": lambda ref, ex: ref.size(ex), "remove": lambda ref, ex: ref.remove(ex, "other"), "codec": None,
    },
    SortedSetRef: {
        "score": lambda ref, ex: ref.score(ex, "a"), "lowest_score": lambda ref, ex: ref.lowest_score(ex),
        "range": lambda ref, ex: ref.range(ex),
        "range_by_score": lambda ref, ex: ref.range_by_score(ex), "count": lambda ref, ex: ref.count(ex),
        "size": lambda ref, ex: ref.size(ex), "remove": lambda ref, ex: ref.remove(ex, "other"), "codec": None,
    },
    StreamRef: {"range": lambda ref, ex: ref.range(ex), "length": lambda ref, ex: ref.length(ex), "record": None},
    GeoRef: {
        "position": lambda ref, ex: ref.position(ex, "a"),
        "within": lambda ref, ex: ref.within(ex, longitude=1, latitude=2, metres=10),
        "remove": lambda ref, ex: ref.remove(ex, "other"), "codec": None,
    },
    LockRef: {},
}
ALL_WRITES = [
    pytest.param(ref, operation, anew, id=f"{ref.__name__}.{name}")
    for ref, writes in WRITES.items() for name, (operation, anew) in writes.items()
]
ALL_READS = [
    pytest.param(ref, operation, id=f"{ref.__name__}.{name}")
    for ref, others in OTHERS.items() for name, operation in others.items() if operation is not None
]


def reference(ref: type, ttl: Ttl) -> Any:
    return MAKE[ref](Keyspace("tests"), ttl).at("1")


async def remaining(valkey: Any, ref: KeyReference) -> float | None:
    left = await valkey.pttl(ref.name(valkey.layout))
    assert left != -2, "the key is not there"
    return None if left == -1 else left / 1000


@pytest.mark.parametrize("ref", MAKE)
def test_every_operation_is_known_to_write_or_not(ref: type) -> None:
    public = {name for name in dir(ref) if not name.startswith("_")}
    assert public == EVERY_KEY | set(WRITES[ref]) | set(OTHERS[ref])


@pytest.mark.parametrize(("ref", "write", "anew"), ALL_WRITES)
class TestWrites:
    async def test_exactly(self, valkey: Any, ref: type, write: Operation, anew: bool) -> None:
        key = reference(ref, Exactly(100))
        await write(key, valkey)
        assert 99 < (await remaining(valkey, key) or 0) <= 100
        await valkey.expire(key.name(Layout.PLAIN), 50)
        await write(key, valkey)
        left = await remaining(valkey, key) or 0
        assert 99 < left <= 100 if anew else 49 < left <= 50

    async def test_at_most(self, valkey: Any, ref: type, write: Operation, anew: bool) -> None:
        key = reference(ref, AtMost(100))
        await write(key, valkey)
        assert 99 < (await remaining(valkey, key) or 0) <= 100
        await valkey.delete(key.name(Layout.PLAIN))
        await write(key.lasting(10), valkey)
        assert 9 < (await remaining(valkey, key) or 0) <= 10
        with pytest.raises(DeclarationError, match="longer than the declared"):
            key.lasting(101)

    async def test_sliding(self, valkey: Any, ref: type, write: Operation, anew: bool) -> None:
        key = reference(ref, Sliding(100))
        await write(key, valkey)
        await valkey.expire(key.name(Layout.PLAIN), 50)
        await write(key, valkey)
        left = await remaining(valkey, key) or 0
        # A write that finds the value there already is no use of it.
        assert 99 < left <= 100 or (49 < left <= 50 and write in (
            WRITES[StringRef]["set_if_absent"][0], WRITES[FlagRef]["try_raise"][0],
        ))

    async def test_until_an_instant_of_the_caller(self, valkey: Any, ref: type, write: Operation, anew: bool) -> None:
        key = reference(ref, Until())
        with pytest.raises(DeclarationError, match="does not say when"):
            await write(key, valkey)
        assert await valkey.exists(key.name(Layout.PLAIN)) == 0
        await write(key.until(SOON), valkey)
        assert await valkey.pexpiretime(key.name(Layout.PLAIN)) == pytest.approx(SOON * 1000, abs=1)

    async def test_none(self, valkey: Any, ref: type, write: Operation, anew: bool) -> None:
        key = reference(ref, NoTtl())
        await write(key, valkey)
        assert await remaining(valkey, key) is None

    async def test_none_until_ended_stays_ended(self, valkey: Any, ref: type, write: Operation, anew: bool) -> None:
        key = reference(ref, NoneUntilEnded(60))
        await write(key, valkey)
        assert await remaining(valkey, key) is None
        await key.end(valkey)
        await write(key, valkey)
        assert 59 < (await remaining(valkey, key) or 0) <= 60

    async def test_the_audit_finds_nothing(self, valkey: Any, ref: type, write: Operation, anew: bool) -> None:
        for rule in (NoTtl(), NoneUntilEnded(9), Exactly(9), AtMost(9), Sliding(9), Sliding(9, reads=False), Until()):
            key = reference(ref, rule)
            await valkey.delete(key.name(Layout.PLAIN))
            await write(key.until(SOON) if isinstance(rule, Until) else key, valkey)
            assert rule.check(await remaining(valkey, key)) is None


@pytest.mark.parametrize(
    ("ref", "write"),
    [
        (StringRef, "set"), (StringRef, "set_if_absent"), (RecordRef, "set"), (RecordRef, "update"),
        (StreamRef, "append"),
    ],
)
async def test_until_an_instant_in_the_payload(valkey: Any, ref: type, write: str) -> None:
    key = reference(ref, Until("expires_at"))
    await WRITES[ref][write][0](key, valkey)
    assert await valkey.pexpiretime(key.name(Layout.PLAIN)) == pytest.approx(SOON * 1000, abs=1)


async def test_an_update_that_does_not_say_until_when_is_refused(valkey: Any) -> None:
    key = reference(RecordRef, Until("expires_at"))
    with pytest.raises(DeclarationError, match="does not say when"):
        await key.update(valkey, name="b")
    assert await valkey.dbsize() == 0


@pytest.mark.parametrize(("ref", "read"), ALL_READS)
async def test_a_read_renews_only_what_lives_from_its_last_use(valkey: Any, ref: type, read: Operation) -> None:
    write, _ = next(iter(WRITES[ref].values()))
    for rule, renewed in ((Sliding(100), True), (Sliding(100, reads=False), False), (Exactly(100), False)):
        key = reference(ref, rule)
        await write(key, valkey)
        await valkey.expire(key.name(Layout.PLAIN), 50)
        await read(key, valkey)
        left = await remaining(valkey, key) or 0
        assert 99 < left <= 100 if renewed else 49 < left <= 50


@pytest.mark.parametrize("rule", [NoTtl(), NoneUntilEnded(9), Exactly(9), Sliding(9)])
def test_a_caller_cannot_choose_where_the_rule_leaves_no_choice(rule: Ttl) -> None:
    key = reference(StringRef, rule)
    for choose in (lambda: key.lasting(5), lambda: key.until(SOON)):
        with pytest.raises(DeclarationError):
            choose()


async def test_ending_never_prolongs(valkey: Any) -> None:
    key = reference(LockRef, NoneUntilEnded(60))
    await valkey.set(key.name(Layout.PLAIN), "x", ex=10)
    await key.end(valkey)
    assert 9 < (await remaining(valkey, key) or 0) <= 10
    with pytest.raises(DeclarationError, match="not declared NoneUntilEnded"):
        await reference(LockRef, Exactly(9)).end(valkey)


async def test_writes_in_a_pipeline_carry_the_expiry(valkey: Any) -> None:
    keyspace = Keyspace("tests")
    counter = IntegerKey(keyspace, "n:{x}", ttl=Exactly(100), purpose="t").at("1")
    words = SetKey(keyspace, "s:{x}", str, ttl=Exactly(100), purpose="t").at("1")
    async with valkey.pipeline(transaction=True) as pipeline:
        first, second = counter.increment(pipeline), counter.increment(pipeline)
        added = words.add(pipeline, "a", "b")
        await pipeline.execute()
    assert (await first, await second, await added) == (1, 2, 2)
    assert 99 < (await remaining(valkey, counter) or 0) <= 100
    assert 99 < (await remaining(valkey, words) or 0) <= 100

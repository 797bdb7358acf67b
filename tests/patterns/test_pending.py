"""Pending indexes: index and record change together or not at all, beside a plain model."""

import asyncio
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keystead.engine import Valkey, connect
from keystead.errors import Corrupt, DeclarationError
from keystead.keys import Keyspace, ListKey, Personal, Registry
from keystead.patterns.pending import PendingIndex, PendingOutcome
from keystead.testing.server import LocalServer

from .crash import crash_points


class Sms(msgspec.Struct, frozen=True):
    uid: str
    status: str = "queued"
    error_code: str | None = None
    failure_job_last_called_at: float | None = None
    num_failures: int = 0
    num_changes: int = 0


class Hollow(msgspec.Struct, frozen=True):
    note: str | None = None


class Plain(msgspec.Struct, frozen=True):
    uid: str


SPACE = Keyspace("tests", tag="msg")
PENDING = PendingIndex(
    SPACE, "sms:pending", record="sms:pending:{sid}", of=Sms, member="message sid", score="when the failure job is due",
    failures="num_failures", called_at="failure_job_last_called_at", purpose="texts awaiting a receipt",
    personal=Personal(variable="sid"), writers=("t",), readers=("t",),
)
LINKS = PendingIndex(SPACE, "links:{lane}", record="links:{lane}:of:{code}", of=Plain, member="code", score="when",
                     changes=None, tag="lnk:{lane}", purpose="links")
RECOVERY = ListKey(SPACE, "sms:recovery", bytes, purpose="sids to ask for")
JOBS = ListKey(SPACE, "jobs", bytes, purpose="jobs")


async def state(valkey: Valkey) -> dict[str, tuple[float, dict[bytes, bytes]]]:
    """Every pair on the server; fails if index and records are out of step."""
    index = await PENDING.index.range(valkey)
    records = set()
    for node in await valkey.nodes():
        keys = await node.call(("KEYS", "*"))
        records |= {key.decode().rpartition("}")[2] for key in keys if b"sms:pending:" in key}
    assert records == {f"sms:pending:{member}" for member, _ in index}
    found = {}
    for member, score in index:
        fields = await valkey.hgetall(PENDING.record(member).name(valkey.layout))
        found[member] = score, fields
    return found


async def test_pair_is_opened_read_and_removed_together(server: Valkey) -> None:
    assert await PENDING.open(server, "SM1", Sms("a"), 900.5)
    assert not await PENDING.open(server, "SM1", Sms("b"), 1, only_new=True)
    entry = await PENDING.get(server, "SM1")
    assert (entry.member, entry.score, entry.record) == ("SM1", 900.5, Sms("a"))
    assert await PENDING.get(server, "SM2") is None
    push = [(JOBS.at(), b"job"), (RECOVERY.at(), b"SM1")]
    assert await PENDING.remove(server, "SM1", 0, push=push) is PendingOutcome.DONE
    assert await JOBS.at().range(server) == [b"job"] and await RECOVERY.at().range(server) == [b"SM1"]
    assert await state(server) == {} and await PENDING.size(server) == 0
    assert await PENDING.remove(server, "SM1", 0, push=[(JOBS.at(), b"job")]) is PendingOutcome.ABSENT
    assert await JOBS.at().length(server) == 1


async def test_opening_again_replaces_the_whole_record(server: Valkey) -> None:
    await PENDING.open(server, "SM1", Sms("a", error_code="30003"), 1)
    assert await PENDING.open(server, "SM1", Sms("b"), 2)
    assert (await PENDING.get(server, "SM1")).record == Sms("b")


async def test_change_is_refused_when_someone_was_faster(server: Valkey) -> None:
    await PENDING.open(server, "SM1", Sms("a", error_code="1"), 10)
    assert await PENDING.update(server, "SM1", 0, status="sending", score=20) is PendingOutcome.DONE
    assert await PENDING.update(server, "SM1", 0, status="failed") is PendingOutcome.CHANGED
    assert await PENDING.remove(server, "SM1", 0) is PendingOutcome.CHANGED
    assert await PENDING.retry(server, "SM1", 0, push=[(RECOVERY.at(), b"SM1")]) is PendingOutcome.CHANGED
    entry = await PENDING.get(server, "SM1")
    assert (entry.score, entry.record) == (20, Sms("a", "sending", "1", num_changes=1))
    assert await PENDING.update(server, "SM1", 1, error_code=None) is PendingOutcome.DONE
    assert (await PENDING.get(server, "SM1")).record == Sms("a", "sending", num_changes=2)
    assert await PENDING.retry(server, "SM1", 2, push=[(RECOVERY.at(), b"SM1")]) is PendingOutcome.DONE
    assert await RECOVERY.at().range(server) == [b"SM1"]
    assert await PENDING.remove(server, "SM1", None) is PendingOutcome.DONE


async def test_of_many_who_saw_the_same_only_one_changes(server: Valkey) -> None:
    await PENDING.open(server, "SM1", Sms("a"), 10)
    outcomes = await asyncio.gather(*(PENDING.update(server, "SM1", 0, status=str(n)) for n in range(20)))
    assert outcomes.count(PendingOutcome.DONE) == 1 and outcomes.count(PendingOutcome.CHANGED) == 19


async def test_stale_members_are_counted_and_put_off(server: Valkey) -> None:
    for number, score in enumerate((5.0, 1.0, 99.0)):
        await PENDING.open(server, f"SM{number}", Sms(str(number)), score)
    stale = await PENDING.take_stale(server, 10, now=50.25, again_at=950.5)
    assert [(entry.member, entry.score) for entry in stale] == [("SM1", 1.0), ("SM0", 5.0)]
    assert stale.found[0].record == Sms("1", failure_job_last_called_at=50.25, num_failures=1, num_changes=1)
    assert {member: score for member, (score, _) in (await state(server)).items()} == {
        "SM0": 950.5, "SM1": 950.5, "SM2": 99.0
    }
    assert len(await PENDING.take_stale(server, 10, now=50.25, again_at=950.5)) == 0
    assert len(await PENDING.take_stale(server, 1, now=99, again_at=999)) == 1


async def break_pair(valkey: Valkey, member: str, how: str) -> None:
    index, record = PENDING.index.name(valkey.layout), PENDING.record(member).name(valkey.layout)
    if how == "no record":
        await valkey.run(("DEL", record), int)
    elif how == "no index":
        await valkey.run(("ZREM", index, member), int)
    else:
        await valkey.run(("SET", record, "x"), str)


@pytest.mark.parametrize("how", ["no record", "no index", "wrong type"])
async def test_broken_pair_counts_as_absent_and_is_removed(server: Valkey, how: str) -> None:
    async def broken() -> None:
        await PENDING.open(server, "SM1", Sms("a"), 10)
        await break_pair(server, "SM1", how)

    for attempt in (
        lambda: PENDING.update(server, "SM1", 0, status="x"),
        lambda: PENDING.remove(server, "SM1", 0, push=[(JOBS.at(), b"job")]),
        lambda: PENDING.retry(server, "SM1", 0, push=[(JOBS.at(), b"job")]),
    ):
        await broken()
        assert await attempt() is PendingOutcome.ABSENT
        assert await state(server) == {}
    await broken()
    assert await PENDING.get(server, "SM1") is None
    assert await state(server) == {}
    await broken()
    assert await PENDING.open(server, "SM1", Sms("b"), 10, only_new=True)
    assert (await PENDING.get(server, "SM1")).record == Sms("b")
    assert await JOBS.at().length(server) == 0


@pytest.mark.parametrize("how", ["no record", "wrong type"])
async def test_broken_pair_does_not_look_like_the_end(server: Valkey, how: str) -> None:
    for name in ("take_stale", "due", "pop"):
        for number in range(4):
            await PENDING.open(server, f"SM{number}", Sms(str(number)), number)
        await break_pair(server, "SM0", how)
        await break_pair(server, "SM2", how)
        if name == "take_stale":
            entries = await PENDING.take_stale(server, 5, now=9, again_at=99)
        else:
            entries = await getattr(PENDING, name)(server, 5, until=9)
        assert [entry.member for entry in entries] == ["SM1", "SM3"] and entries.repaired == 2
        assert set(await state(server)) == (set() if name == "pop" else {"SM1", "SM3"})


async def test_undecodable_record_is_told_and_never_dropped_silently(server: Valkey) -> None:
    await PENDING.open(server, "SM1", Sms("a"), 1)
    await server.run(("HSET", PENDING.record("SM1").name(server.layout), "num_failures", "many"), int)
    with pytest.raises(Corrupt, match="num_failures"):
        await PENDING.get(server, "SM1")
    due = await PENDING.due(server, 5, until=9)
    assert not due.found and due.broken[0].member == "SM1" and b"many" in due.broken[0].fields.values()
    popped = await PENDING.pop(server, 5, until=9)
    assert popped.broken[0].fields[b"uid"] == b"a"
    assert "SM1" in str(popped.broken[0].error)


@pytest.mark.parametrize("read", ["take_stale", "due", "pop"])
async def test_what_others_put_there_stops_nobody(server: Valkey, read: str) -> None:
    """Counts that are no numbers, members that can be none: told as broken, and the good one behind them comes."""
    index = PENDING.index.name(server.layout)
    for place, member in enumerate((b"x:y", b"", b"\xff", b"bad")):
        await server.zadd(index, {member: place})
        head, tail = PENDING._record_name(server)
        fields = {"uid": "u", "num_failures": "x" if member == b"bad" else "0", "num_changes": ""}
        await server.hset(head.encode() + member + tail.encode(), mapping=fields)
    await PENDING.open(server, "good", Sms("g"), 9)
    limits = {"now": 10.0, "again_at": 20.0} if read == "take_stale" else {"until": 10.0}
    entries = await getattr(PENDING, read)(server, 10, **limits)
    assert [entry.member for entry in entries] == ["good"]
    assert [(each.member, each.score) for each in entries.broken] == [("x:y", 0), ("", 1), ("\\xff", 2), ("bad", 3)]
    assert all(isinstance(each.error, Corrupt) for each in entries.broken)


async def test_many_broken_pairs_are_repaired_in_bounded_steps(server: Valkey) -> None:
    index = PENDING.index.name(server.layout)
    await server.zadd(index, {f"m{number}": 1 for number in range(2500)})
    await PENDING.open(server, "good", Sms("g"), 2)
    steps = [await PENDING.take_stale(server, 5, now=3, again_at=9) for _ in range(3)]
    assert [(step.repaired, len(step)) for step in steps] == [(1000, 0), (1000, 0), (500, 1)]


async def test_change_of_a_record_without_a_number_changes_nothing(server: Valkey) -> None:
    await PENDING.open(server, "a", Sms("u"), 1)
    record = PENDING.record("a").name(server.layout)
    await server.hset(record, "num_changes", "x")
    before = await server.hgetall(record)
    with pytest.raises(Exception, match="not an integer"):
        await PENDING.update(server, "a", None, status="sent", score=5)
    assert await server.hgetall(record) == before


async def test_due_then_remove_with_a_job_leaves_no_gap(server: Valkey) -> None:
    """At each crash the member is either still there, or its job is on the list."""
    async for mortal in crash_points(server):
        for node in await server.nodes():
            await node.call(("FLUSHALL",))
        for number in range(3):
            await PENDING.open(server, f"SM{number}", Sms(str(number)), number)
        try:
            for entry in await PENDING.due(mortal, 10, until=9):
                push = [(JOBS.at(), entry.member.encode())]
                await PENDING.remove(mortal, entry.member, entry.record.num_changes, push=push)
        except BaseException as died:
            if not mortal.dead:
                raise died
        jobs = [raw.decode() for raw in await JOBS.at().range(server)]
        assert sorted([*jobs, *await state(server)]) == ["SM0", "SM1", "SM2"]
        if not mortal.dead:
            assert len(jobs) == 3
            return


async def test_changes_travel_in_the_callers_transaction(server: Valkey) -> None:
    async with server.pipeline(transaction=True) as pipeline:
        opened = PENDING.open(pipeline, "SM1", Sms("a"), 1)
        JOBS.at().push_right(pipeline, b"count")
        await pipeline.execute()
    assert await opened and await JOBS.at().length(server) == 1


async def test_wrong_list_is_noticed_before_anything_is_removed(server: Valkey) -> None:
    await PENDING.open(server, "SM1", Sms("a"), 1)
    await server.run(("SET", JOBS.at().name(server.layout), "x"), str)
    with pytest.raises(Exception, match="WRONGTYPE"):
        await PENDING.remove(server, "SM1", 0, push=[(JOBS.at(), b"job")])
    assert set(await state(server)) == {"SM1"}


async def test_records_without_a_change_count_are_guarded_by_presence(server: Valkey) -> None:
    links = LINKS.at("3")
    await links.open(server, "abc", Plain("u"), 5)
    with pytest.raises(DeclarationError, match="no field that counts changes"):
        await links.remove(server, "abc", 0)
    assert [entry.member for entry in await links.take_stale(server, 5, now=9, again_at=20)] == ["abc"]
    assert await links.remove(server, "abc", None) is PendingOutcome.DONE
    with pytest.raises(DeclarationError, match="has variables"):
        await LINKS.size(server)


def test_declaration_says_what_is_wrong() -> None:
    space = Keyspace("bad", tag="b")
    with pytest.raises(DeclarationError, match="no field num_changes"):
        PendingIndex(space, "p", record="p:{x}", of=Plain, member="m", score="s", purpose="p")
    with pytest.raises(DeclarationError, match="needs a variable"):
        PendingIndex(space, "p", record="q", of=Plain, member="m", score="s", changes=None, purpose="p")
    hollow = PendingIndex(
        Keyspace("hollow", tag="h"), "h", record="h:{x}", of=Hollow, member="m", score="s", changes=None, purpose="p"
    )
    with pytest.raises(DeclarationError, match="cannot be kept"):
        hollow.open(None, "x", Hollow(), 1)
    with pytest.raises(DeclarationError, match="counts by itself"):
        PENDING.update(None, "SM1", 0, num_changes=4)


def test_audit_knows_the_pair() -> None:
    assert PENDING.index_key.pairs_with.record is PENDING.record_key
    registry = Registry([SPACE])
    assert registry.resolve(b"sms:pending:SM1").declaration is PENDING.record_key


MEMBERS = st.sampled_from(["a", "b", "c"])
TIMES = st.integers(0, 20).map(lambda number: number / 2)
SEEN = st.integers(0, 1)  # how many changes ago the caller looked
MOVES = st.one_of(
    st.tuples(st.just("open"), MEMBERS, TIMES, st.booleans()),
    st.tuples(st.just("update"), MEMBERS, SEEN, st.sampled_from(["x", "y", None])),
    st.tuples(st.just("remove"), MEMBERS, SEEN),
    st.tuples(st.just("retry"), MEMBERS, SEEN),
    st.tuples(st.just("stale"), TIMES, st.integers(1, 3)),
    st.tuples(st.just("pop"), TIMES, st.integers(1, 2)),
    st.tuples(st.just("break"), MEMBERS, st.sampled_from(["no record", "no index", "wrong type"])),
)


@dataclass
class Held:
    score: float
    record: Sms


class Both:
    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey
        self.pairs: dict[str, Held] = {}
        self.broken: dict[str, float] = {}  # member → score in the index, for halves that are still there
        self.jobs: list[bytes] = []

    def lowest(self, until: float, most: int) -> list[str]:
        """The members that a walk returns; broken ones it meets before it is full are removed."""
        scores = {**{member: held.score for member, held in self.pairs.items()}, **self.broken}
        found: list[str] = []
        for score, member in sorted((score, member) for member, score in scores.items() if score <= until):
            if len(found) == most:
                break
            if member in self.pairs:
                found.append(member)
            else:
                del self.broken[member]
                assert score <= until
        return found

    async def move(self, kind: str, *given) -> None:
        valkey = self.valkey
        if kind in ("stale", "pop"):
            now, most = given
            members = self.lowest(now, most)
            if kind == "stale":
                entries = await PENDING.take_stale(valkey, most, now=now, again_at=now + 3)
                for member in members:
                    old = self.pairs[member].record
                    self.pairs[member] = Held(now + 3, msgspec.structs.replace(
                        old, failure_job_last_called_at=now, num_failures=old.num_failures + 1,
                        num_changes=old.num_changes + 1,
                    ))
                expected = [(member, self.pairs[member].record) for member in members]
            else:
                entries = await PENDING.pop(valkey, most, until=now)
                expected = [(member, self.pairs.pop(member).record) for member in members]
            assert [(entry.member, entry.record) for entry in entries] == expected
            return
        member, *rest = given
        held = self.pairs.get(member)
        if kind == "open":
            score, only_new = rest
            wrote = await PENDING.open(valkey, member, Sms("new"), score, only_new=only_new)
            assert wrote == (held is None or not only_new)
            if wrote:
                self.pairs[member] = Held(score, Sms("new"))
                self.broken.pop(member, None)
            return
        if kind == "break":
            if held is not None:
                await break_pair(valkey, member, rest[0])
                del self.pairs[member]
                if rest[0] != "no index":
                    self.broken[member] = held.score
                else:
                    await valkey.run(("DEL", PENDING.record(member).name(valkey.layout)), int)
            return
        expected = (held.record.num_changes - rest[0]) if held else 0
        should = PendingOutcome.CHANGED if rest[0] else PendingOutcome.DONE
        if held is None:
            should = PendingOutcome.ABSENT
        self.broken.pop(member, None)
        if kind == "update":
            assert await PENDING.update(valkey, member, expected, error_code=rest[1]) is should
            if should is PendingOutcome.DONE:
                held.record = msgspec.structs.replace(
                    held.record, error_code=rest[1], num_changes=held.record.num_changes + 1
                )
        else:
            act = PENDING.remove if kind == "remove" else PENDING.retry
            assert await act(valkey, member, expected, push=[(JOBS.at(), member.encode())]) is should
            if should is PendingOutcome.DONE:
                self.jobs.append(member.encode())
                if kind == "remove":
                    del self.pairs[member]

    async def check(self) -> None:
        index = dict(await PENDING.index.range(self.valkey))
        assert index == {**{member: held.score for member, held in self.pairs.items()}, **self.broken}
        for member, held in self.pairs.items():
            assert await PENDING.record(member).get(self.valkey) == held.record
        assert await JOBS.at().range(self.valkey) == self.jobs


async def play(url: str, flush, moves) -> None:
    flush()
    valkey = await connect(url)
    try:
        both = Both(valkey)
        for move in (*(("open", member, float(place), False) for place, member in enumerate("abc")), *moves):
            await both.move(*move)
            await both.check()
    finally:
        await valkey.aclose()


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(MOVES, min_size=8, max_size=40))
def test_pending_index_does_what_the_model_does(valkey_server: LocalServer, moves) -> None:
    asyncio.run(play(valkey_server.url, lambda: valkey_server.call("FLUSHALL"), moves))


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(MOVES, min_size=8, max_size=40))
def test_pending_index_on_a_cluster_does_what_the_model_does(valkey_cluster, moves) -> None:
    asyncio.run(play(valkey_cluster.url, valkey_cluster.flush, moves))

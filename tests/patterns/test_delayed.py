"""Delayed sets: what waits, what is held; each due member taken by exactly one, beside a plain model."""

import asyncio
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keystead.engine import Valkey, connect
from keystead.errors import DeclarationError
from keystead.keys import Keyspace, ListKey, Registry
from keystead.patterns.delayed import DelayedSet, IfWaiting, MoveStop
from keystead.patterns.worklist_items import DeadLetter
from keystead.patterns.worklist_worker import Failed
from keystead.testing.server import LocalServer

from .crash import crash_points

SPACE = Keyspace("tests", tag="rem")
QUEUED = DelayedSet(SPACE, "reminders:queued", str, member="reminder", purgatory="reminders:send_purgatory",
                    purpose="reminders", writers=("t",), readers=("t",))
NUMBERS = DelayedSet(SPACE, "numbers", int, member="number", purpose="numbers")
LANES = DelayedSet(SPACE, "retry:{lane}", str, tag="retry:{lane}", member="m", purpose="lanes")
HOT = ListKey(SPACE, "hot", str, purpose="ready")


async def scored(valkey: Valkey, ref) -> dict[str, float]:
    reply = await valkey.run(("ZRANGE", ref.name(valkey.layout), 0, -1, "WITHSCORES"), list)
    flat = reply if not reply or not isinstance(reply[0], list) else [part for pair in reply for part in pair]
    return {member.decode(): float(score) for member, score in zip(flat[::2], flat[1::2], strict=True)}


async def expire(valkey: Valkey, name: str) -> None:
    await valkey.run(("DEL", QUEUED.alive_key.at(name).name(valkey.layout)), int)


async def test_only_due_members_are_taken_and_scores_are_kept(server: Valkey) -> None:
    await QUEUED.schedule_many(server, {"a": 10.25, "b": 20, "c": 30})
    worker = QUEUED.worker()
    taken = await worker.take(server, 10, now=20)
    assert [(item.value, item.due_at) for item in taken] == [("a", 10.25), ("b", 20.0)]
    assert await scored(server, QUEUED.due) == {"c": 30}
    assert await worker.held(server) == [("a", 10.25), ("b", 20.0)]
    again = await worker.take(server, 10, now=99)
    assert again.recovered and again.values == ["a", "b"]
    assert (await worker.finish(server, taken.items[:1])).count == 1
    more = await worker.take(server, 10, now=99, leftovers_first=False)
    assert more.values == ["c"] and not more.recovered
    late = await worker.finish(server, taken)
    assert late.count == 1 and late.lost == (taken.items[0],)


async def test_names_are_as_documented_and_declared(server: Valkey) -> None:
    await QUEUED.schedule_many(server, {"a": 1, "b": 2, "c": 3})
    await QUEUED.worker().take(server, 1, now=9)
    await QUEUED.worker("w").take(server, 1, now=9)
    names, registry = set(), Registry([SPACE], server.layout)
    for node in await server.nodes():
        for key in await node.call(("KEYS", "*")):
            assert registry.resolve(key)
            names.add(key.decode().rpartition("}")[2])
    assert names == {"reminders:queued", "reminders:send_purgatory", "reminders:send_purgatory:w",
                     "reminders:send_purgatory:w:alive", "reminders:queued:workers"}


async def test_schedule_replaces_keeps_or_only_hastens(server: Valkey) -> None:
    assert await QUEUED.schedule(server, "a", 10)
    assert not await QUEUED.schedule(server, "a", 5, if_waiting=IfWaiting.KEEP)
    assert not await QUEUED.schedule(server, "a", 11, if_waiting=IfWaiting.EARLIER)
    assert await QUEUED.schedule(server, "a", 9, if_waiting=IfWaiting.EARLIER)
    assert await QUEUED.due_at(server, "a") == 9
    assert await QUEUED.schedule(server, "a", 50)
    assert await QUEUED.next_at(server) == 50
    assert await QUEUED.cancel(server, "a", "b") == 1
    assert await QUEUED.next_at(server) is None and await QUEUED.size(server) == 0


async def test_reschedule_moves_back_only_what_is_held(server: Valkey) -> None:
    await QUEUED.schedule_many(server, {"a": 1, "b": 2})
    worker = QUEUED.worker("w")
    taken = await worker.take(server, 2, now=5)
    await worker.finish(server, taken.items[1:])
    settled = await worker.reschedule(server, [(item, 60.5) for item in taken])
    assert settled.count == 1 and settled.lost == (taken.items[1],)
    assert await scored(server, QUEUED.due) == {"a": 60.5}
    assert await scored(server, worker.purgatory) == {}


async def test_dead_workers_members_wait_again_and_the_earlier_time_wins(server: Valkey) -> None:
    await QUEUED.schedule_many(server, {"a": 1, "b": 2, "c": 3, "d": 4})
    dead, living = QUEUED.worker("dead"), QUEUED.worker("living")
    held = await dead.take(server, 3, now=9)
    await living.take(server, 1, now=9)
    await QUEUED.schedule(server, "b", 100)
    await QUEUED.schedule(server, "c", 0.5)
    assert (await QUEUED.adopt(server, now=9)).workers == 0
    await expire(server, "dead")
    adopted = await QUEUED.adopt(server, now=9)
    assert (adopted.workers, adopted.items, adopted.dead) == (1, 3, 0)
    assert await scored(server, QUEUED.due) == {"a": 1, "b": 2, "c": 0.5}
    assert (await dead.finish(server, held)).count == 0


async def test_recovered_members_can_be_put_off(server: Valkey) -> None:
    await QUEUED.schedule_many(server, {"a": 1, "b": 50.125})
    worker = QUEUED.worker()
    await worker.take(server, 2, now=60)
    assert (await worker.recover(server, now=60, not_before=30.5)).items == 2
    assert await scored(server, QUEUED.due) == {"a": 30.5, "b": 50.125}
    assert (await worker.recover(server, now=60)).items == 0


async def test_member_that_kills_its_worker_dies_and_its_neighbours_live(server: Valkey) -> None:
    await QUEUED.schedule_many(server, {"good": 1, "deadly": 2, "other": 3})
    for number in range(20):
        worker = QUEUED.worker(f"w{number}")
        taken = await worker.take(server, 5, now=9)
        if not taken:
            break
        for item in taken:
            if item.value == "deadly":
                break
            assert (await worker.finish(server, [item])).count == 1
        await expire(server, f"w{number}")
        await QUEUED.adopt(server, now=9)
    [letter] = await QUEUED.dead_letters(server)
    assert (letter.raw, letter.attempts, letter.dead_at) == (b"deadly", 3, 9.0) and "worker died" in letter.error
    assert await QUEUED.size(server) == 0
    assert await server.run(("HLEN", QUEUED.poison_key.at().name(server.layout)), int) == 0
    assert await QUEUED.replay(server, 5, at=20) == 1
    assert await scored(server, QUEUED.due) == {"deadly": 20} and await QUEUED.dead_letters(server) == []


async def test_chosen_dead_letters_wait_again_once(server: Valkey) -> None:
    letters = [DeadLetter(QUEUED.due_key.codec.encode(member), "no", 1.0, 3) for member in ("a", "b", "c")]
    await QUEUED.dead.push_right(server, *letters)
    raws = [QUEUED.dead_key.codec.encode(letter) for letter in letters]
    await QUEUED.schedule(server, "c", 5)
    assert await QUEUED.replay_chosen(server, raws[0], raws[2], b"no letter", at=20) == 2
    assert await QUEUED.due.range(server) == [("c", 5.0), ("a", 20.0)]
    assert await QUEUED.dead_letters(server) == [letters[1]]
    assert await QUEUED.replay_chosen(server, *raws, at=30) == 1
    assert await QUEUED.replay_chosen(server, *raws, at=30) == 0


async def test_member_that_comes_round_again_and_again_is_not_blamed_for_old_crashes(server: Valkey) -> None:
    await QUEUED.schedule(server, "daily", 1)
    for number in range(6):
        worker = QUEUED.worker("w")
        await worker.take(server, 1, now=9)
        await worker.recover(server, now=9)  # a deployment, say
        again = await worker.take(server, 1, now=9)
        assert (await worker.reschedule(server, [(again.items[0], float(number))])).count == 1
    assert await QUEUED.size(server) == 1 and await QUEUED.dead_letters(server) == []


async def test_failed_member_waits_again_and_dies_after_its_tries(server: Valkey) -> None:
    await QUEUED.schedule(server, "a", 1)
    worker, failed = QUEUED.worker("w"), []
    for number in range(3):
        [item] = await worker.take(server, 5, now=100)
        failed.append(await worker.fail(server, item, error=f"try {number}", now=50, again_at=10.5 + number))
        if number < 2:
            assert await scored(server, QUEUED.due) == {"a": 10.5 + number}
    assert failed == [Failed(1, False), Failed(2, False), Failed(3, True)]
    [letter] = await QUEUED.dead_letters(server)
    assert (letter.raw, letter.attempts, letter.error, letter.dead_at) == (b"a", 3, "try 2", 50.0)
    assert await QUEUED.size(server) == 0 and await worker.held(server) == []
    assert await worker.fail(server, item, error="x", now=50, again_at=60) == Failed(0, False), "not ours any more"
    assert await QUEUED.size(server) == 0


async def test_last_try_after_crashes_is_made_alone(server: Valkey) -> None:
    await QUEUED.schedule_many(server, {"a": 1, "b": 2, "c": 3})
    worker = QUEUED.worker("w")
    for _ in range(2):
        assert (await worker.take(server, 2, now=9)).values == ["a", "b"]
        await worker.recover(server, now=9)
    alone = []
    for _ in range(3):
        taken = await worker.take(server, 5, now=9)
        alone.append(taken.values)
        await worker.finish(server, taken)
    assert alone == [["a"], ["b"], ["c"]]


async def test_dead_letters_are_bounded(server: Valkey) -> None:
    few = DelayedSet(Keyspace("few", tag="few"), "few", str, member="m", purpose="few", most_dead=2)
    await few.schedule_many(server, dict.fromkeys("abcd", 1.0))
    worker = few.worker()
    assert await worker.bury(server, await worker.take(server, 5, now=9), error="x", now=9) == 4
    assert [letter.raw for letter in await few.dead_letters(server)] == [b"c", b"d"]


async def test_wrong_type_is_noticed_before_anything_moves(server: Valkey) -> None:
    await QUEUED.schedule(server, "a", 1)
    worker = QUEUED.worker("w")
    taken = await worker.take(server, 1, now=9)
    await server.run(("SET", QUEUED.poison_key.at().name(server.layout), "x"), str)
    for settle in (
        worker.finish(server, taken), worker.reschedule(server, [(taken.items[0], 5.0)]),
        worker.bury(server, taken, error="x", now=9), worker.recover(server, now=9),
        worker.fail(server, taken.items[0], error="x", now=9, again_at=10),
    ):
        with pytest.raises(Exception, match="WRONGTYPE"):
            await settle
        assert await worker.held(server) == [("a", 1.0)]


async def test_claimed_members_are_due_again_later(server: Valkey) -> None:
    await QUEUED.schedule_many(server, {"a": 1, "b": 2, "c": 900})
    taken = await QUEUED.claim(server, 10, now=10, again_at=910)
    assert [(item.value, item.due_at) for item in taken] == [("a", 1.0), ("b", 2.0)]
    assert await scored(server, QUEUED.due) == {"a": 910, "b": 910, "c": 900}


@pytest.mark.parametrize(
    ("waiting", "there", "most", "limit", "stop", "count"),
    [
        ({}, 0, 5, None, MoveStop.EMPTY, 0),
        ({"a": 1, "b": 2}, 0, 5, None, MoveStop.EMPTY, 2),
        ({"a": 1, "b": 2, "c": 3}, 0, 2, None, MoveStop.COUNT, 2),
        ({"a": 1, "b": 2, "c": 99}, 0, 5, None, MoveStop.NOT_DUE, 2),
        ({"a": 1, "b": 2, "c": 3}, 2, 5, 4, MoveStop.BACKPRESSURE, 2),
        ({"a": 1}, 4, 5, 4, MoveStop.BACKPRESSURE, 0),
        ({"a": 1, "b": 99}, 0, 5, 4, MoveStop.NOT_DUE, 1),
    ],
)
async def test_due_members_move_to_a_list_until_a_reason_stops_them(
    server: Valkey, waiting, there, most, limit, stop, count
) -> None:
    if waiting:
        await QUEUED.schedule_many(server, waiting)
    if there:
        await HOT.at().push_right(server, *["x"] * there)
    moved = await QUEUED.move_due(server, HOT.at(), most, now=10, limit=limit)
    assert (moved.count, moved.stop) == (count, stop)
    assert await HOT.at().range(server) == ["x"] * there + sorted(waiting)[:count]
    assert await scored(server, QUEUED.due) == dict(sorted(waiting.items())[count:])


async def test_undecodable_member_becomes_a_dead_letter(server: Valkey) -> None:
    await server.run(("ZADD", NUMBERS.due.name(server.layout), 1, b"x\n", 2, b"7"), int)
    taken = await NUMBERS.worker("w").take(server, 5, now=9)
    assert taken.values == [7] and [each.raw for each in taken.spoiled] == [b"x\n"]
    [letter] = await NUMBERS.dead.range(server)
    assert letter.raw == b"x\n" and letter.dead_at == 9 and "does not decode" in letter.error


async def test_claimed_member_that_does_not_decode_becomes_a_dead_letter(server: Valkey) -> None:
    await server.run(("ZADD", NUMBERS.due.name(server.layout), 1, b"x\n", 2, b"7"), int)
    claimed = await NUMBERS.claim(server, 5, now=9, again_at=20)
    assert claimed.values == [7] and [each.raw for each in claimed.spoiled] == [b"x\n"]
    assert await scored(server, NUMBERS.due) == {"7": 20}
    [letter] = await NUMBERS.dead.range(server)
    assert letter.raw == b"x\n" and "does not decode" in letter.error


async def test_each_due_member_goes_to_exactly_one_of_many(server: Valkey) -> None:
    await NUMBERS.schedule_many(server, {number: float(number % 7) for number in range(300)})
    seen: Counter[int] = Counter()

    async def work(name: str) -> None:
        worker = NUMBERS.worker(name)
        while taken := await worker.take(server, 9, now=10):
            await asyncio.sleep(0)
            seen.update(taken.values)
            assert (await worker.finish(server, taken)).count == len(taken)

    await asyncio.gather(*(work(f"w{number}") for number in range(8)))
    assert seen == Counter(range(300))


async def test_schedule_and_finish_share_a_transaction(server: Valkey) -> None:
    await QUEUED.schedule(server, "a", 1)
    taken = await QUEUED.worker("w").take(server, 1, now=2)
    async with server.pipeline(transaction=True) as pipeline:
        finished = QUEUED.worker("w").finish(pipeline, taken)
        QUEUED.schedule(pipeline, "next", 3)
        await pipeline.execute()
    assert (await finished).count == 1
    assert await scored(server, QUEUED.due) == {"next": 3}


async def test_crash_at_any_command_loses_nothing(server: Valkey) -> None:
    everything = {str(number): float(number) for number in range(6)}
    async for mortal in crash_points(server):
        for node in await server.nodes():
            await node.call(("FLUSHALL",))
        await QUEUED.schedule_many(server, everything)
        worker = QUEUED.worker("w")
        done: list[str] = []
        try:
            while taken := await worker.take(mortal, 2, now=9):
                finished = await worker.finish(mortal, taken)
                done += [item.value for item in taken if item not in finished.lost]
        except BaseException as died:
            if not mortal.dead:
                raise died
        held, waiting = await scored(server, worker.purgatory), await scored(server, QUEUED.due)
        assert not held.keys() & waiting.keys()
        gone = everything.keys() - held.keys() - waiting.keys()
        assert set(done) <= gone and len(gone) - len(done) <= 2
        if not mortal.dead:
            assert done == list(everything)
            return


def test_pattern_with_variables_needs_them() -> None:
    assert LANES.at("7").due.logical == "retry:7"
    assert LANES.at("7").worker("w").purgatory.logical == "retry:7:purgatory:w"
    with pytest.raises(DeclarationError, match="has variables"):
        _ = LANES.due


MEMBERS = st.sampled_from("abcdef")
TIMES = st.integers(0, 40).map(lambda number: number / 4)
WORKERS = st.sampled_from(["", "w1", "w2"])
MOVES = st.one_of(
    st.tuples(st.just("schedule"), MEMBERS, TIMES, st.sampled_from(list(IfWaiting))),
    st.tuples(st.just("take"), WORKERS, st.integers(1, 4), TIMES, st.booleans()),
    st.tuples(st.just("finish"), WORKERS, st.integers(0, 255)),
    st.tuples(st.just("reschedule"), WORKERS, TIMES),
    st.tuples(st.just("cancel"), MEMBERS),
    st.tuples(st.just("claim"), st.integers(1, 4), TIMES),
    st.tuples(st.just("move"), st.integers(1, 4), TIMES, st.integers(0, 12)),
    st.tuples(st.just("expire"), WORKERS),
    st.tuples(st.just("adopt"), TIMES),
    st.tuples(st.just("recover"), WORKERS, TIMES),
)


class Both:
    """The pattern and dictionaries, moved together; the clock goes forth and back as the moves say."""

    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey
        self.due: dict[str, float] = {}
        self.held: dict[str, dict[str, float]] = {"": {}, "w1": {}, "w2": {}}
        self.minds: dict[str, list] = {"": [], "w1": [], "w2": []}
        self.alive: set[str] = set()
        self.known: set[str] = set()
        self.hot: list[str] = []
        self.crashes: Counter[str] = Counter()
        self.suspects: set[str] = set()
        self.dead: list[str] = []

    def first(self, scores: dict[str, float], now: float, most: int) -> list[tuple[str, float]]:
        found = sorted((score, member) for member, score in scores.items() if score <= now)
        return [(member, score) for score, member in found[:most]]

    def back(self, name: str, not_before: float) -> None:
        for member, score in self.first(self.held[name], float("inf"), 99):
            self.crashes[member] += 1
            if self.crashes[member] == 3:
                self.dead.append(member)
                self.acquit(member)
                continue
            if self.crashes[member] == 2:
                self.suspects.add(member)
            self.due[member] = min(max(score, not_before), self.due.get(member, float("inf")))
        self.held[name] = {}

    def acquit(self, member: str) -> None:
        del self.crashes[member]
        self.suspects.discard(member)

    def apart(self, found: list[tuple[str, float]]) -> list[tuple[str, float]]:
        for place, (member, _) in enumerate(found):
            if member in self.suspects:
                return found[: max(1, place)]
        return found

    async def move(self, kind: str, *given) -> None:
        valkey, due = self.valkey, self.due
        if kind == "schedule":
            member, at, when = given
            await QUEUED.schedule(valkey, member, at, if_waiting=when)
            if member not in due or when is IfWaiting.REPLACE or (when is IfWaiting.EARLIER and at < due[member]):
                due[member] = at
        elif kind == "cancel":
            assert await QUEUED.cancel(valkey, given[0]) == (due.pop(given[0], None) is not None)
        elif kind == "claim":
            most, now = given
            expected = self.first(due, now, most)
            taken = await QUEUED.claim(valkey, most, now=now, again_at=now + 5)
            assert [(item.value, item.due_at) for item in taken] == expected
            due.update(dict.fromkeys((member for member, _ in expected), now + 5))
        elif kind == "move":
            most, now, limit = given
            expected = self.first(due, now, max(0, min(most, limit - len(self.hot))))
            moved = await QUEUED.move_due(valkey, HOT.at(), most, now=now, limit=limit)
            assert moved.count == len(expected)
            for member, _ in expected:
                del due[member]
                self.hot.append(member)
        elif kind == "adopt":
            dead = self.known - self.alive
            assert (await QUEUED.adopt(valkey, now=1.0, not_before=given[0])).workers == len(dead)
            for name in sorted(dead):
                self.back(name, given[0])
            self.known -= dead
        else:
            await self.work(kind, *given)

    async def work(self, kind: str, name: str, *given) -> None:
        valkey, held, worker = self.valkey, self.held[name], QUEUED.worker(name)
        if kind == "take":
            most, now, leftovers = given
            if name:
                self.alive.add(name)
                self.known.add(name)
            taken = await worker.take(valkey, most, now=now, leftovers_first=leftovers)
            if leftovers and held:
                expected = self.apart(self.first(held, float("inf"), most))
                assert taken.recovered
            else:
                expected = self.apart(self.first(self.due, now, most))
                for member, score in expected:
                    del self.due[member]
                    held[member] = score
            assert [(item.value, item.due_at) for item in taken] == expected
            self.minds[name] += taken.items
        elif kind in ("finish", "reschedule"):
            mask = given[0] if kind == "finish" else 255
            some = [item for place, item in enumerate(self.minds[name]) if mask >> (place % 8) & 1]
            self.minds[name] = [item for item in self.minds[name] if item not in some]
            ours = [held.pop(item.value, None) is not None for item in some]
            if kind == "finish":
                settled = await worker.finish(valkey, some)
            else:
                settled = await worker.reschedule(valkey, [(item, given[0]) for item in some])
                self.due.update({item.value: given[0] for item, our in zip(some, ours, strict=True) if our})
            assert settled.count == sum(ours)
            for item in {item.value for item, our in zip(some, ours, strict=True) if our}:
                self.acquit(item)
        elif kind == "expire" and name:
            await expire(valkey, name)
            self.alive.discard(name)
        elif kind == "recover":
            recovered, before = await worker.recover(valkey, now=1.0, not_before=given[0]), len(self.dead)
            members = len(held)
            self.back(name, given[0])
            assert (recovered.dead, recovered.items + recovered.dead) == (len(self.dead) - before, members)

    async def check(self) -> None:
        assert await scored(self.valkey, QUEUED.due) == self.due
        for name, held in self.held.items():
            assert await scored(self.valkey, QUEUED.worker(name).purgatory) == held
        assert await HOT.at().range(self.valkey) == self.hot
        assert [letter.raw.decode() for letter in await QUEUED.dead_letters(self.valkey)] == self.dead


async def play(url: str, flush, moves) -> None:
    flush()
    valkey = await connect(url)
    try:
        both = Both(valkey)
        first = [("schedule", member, number / 2, IfWaiting.REPLACE) for number, member in enumerate("abcde")]
        for move in (*first, *moves):
            await both.move(*move)
            await both.check()
    finally:
        await valkey.aclose()


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(MOVES, min_size=8, max_size=40))
def test_delayed_set_does_what_the_model_does(valkey_server: LocalServer, moves) -> None:
    asyncio.run(play(valkey_server.url, lambda: valkey_server.call("FLUSHALL"), moves))


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(MOVES, min_size=8, max_size=40))
def test_delayed_set_on_a_cluster_does_what_the_model_does(valkey_cluster, moves) -> None:
    asyncio.run(play(valkey_cluster.url, valkey_cluster.flush, moves))

"""Workers of a list beside a plain Python model: random moves, crashes, late finishes, equal payloads."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keystead.engine import Valkey, connect
from keystead.keys import Keyspace
from keystead.patterns.worklist import WorkList
from keystead.patterns.worklist_items import Item, opened
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer

SPACE = Keyspace("model", tag="m")
LIST = WorkList(SPACE, "model", int, purpose="a test", tries=3)
WORKERS = ("", "w1", "w2")
ITEMS = st.sampled_from([b"1", b"1", b"2", b"3", b"4", b"bad"])
NAMES = st.sampled_from(WORKERS)
MOVES = st.one_of(
    st.tuples(st.just("push"), st.lists(ITEMS, min_size=1, max_size=6)),
    st.tuples(st.just("within"), st.lists(ITEMS, min_size=1, max_size=3), st.integers(0, 12)),
    st.tuples(st.just("take"), NAMES, st.integers(1, 5), st.booleans()),
    st.tuples(st.just("take"), NAMES, st.integers(1, 5), st.booleans()),
    st.tuples(st.just("finish"), NAMES, st.integers(0, 255)),
    st.tuples(st.just("advance"), NAMES, st.integers(1, 5)),
    st.tuples(st.just("hand_over"), NAMES, st.integers(0, 255)),
    st.tuples(st.just("put_back"), NAMES, st.booleans()),
    st.tuples(st.just("fail"), NAMES),
    st.tuples(st.just("bury"), NAMES),
    st.tuples(st.just("forget"), NAMES),  # the process died: it no longer knows what it took
    st.tuples(st.just("expire"), NAMES),  # its sign of life ran out; the process may still be there, only late
    st.tuples(st.just("recover"), NAMES),
    st.tuples(st.just("adopt")),
    st.tuples(st.just("leave"), NAMES),
    st.tuples(st.just("replay"), st.integers(1, 5)),
)


@dataclass
class Model:
    """What must be true, in lists and dictionaries."""

    queue: list[bytes] = field(default_factory=list)
    held: dict[str, list[bytes]] = field(default_factory=lambda: {name: [] for name in WORKERS})
    dead: list[bytes] = field(default_factory=list)
    done: list[bytes] = field(default_factory=list)
    tries: Counter[bytes] = field(default_factory=Counter)
    suspects: set[bytes] = field(default_factory=set)  # after crashes, their last try comes
    alive: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)

    def take(self, name: str, most: int, leftovers: bool) -> list[bytes]:
        recovered = leftovers and bool(self.held[name])
        source = self.held[name] if recovered else self.queue
        items = source[:most]
        for place, item in enumerate(items):
            if item in self.suspects and len(items) > 1:
                items = items[: max(1, place)]
                break
        if not recovered:
            del self.queue[: len(items)]
            self.held[name] += items
        return items

    def see(self, name: str) -> None:
        if name:
            self.alive.add(name)
            self.known.add(name)

    def remove(self, name: str, items: list[bytes]) -> list[bytes]:
        """Remove one copy of each, the leftmost; gives those that were there."""
        found = []
        for item in items:
            if item in self.held[name]:
                self.held[name].remove(item)
                found.append(item)
                self.acquit(item)
        return found

    def acquit(self, item: bytes) -> None:
        self.tries.pop(item, None)
        self.suspects.discard(item)

    def accuse(self, items: list[bytes]) -> list[bytes]:
        counted = {item: self.tries[item] + 1 for item in items}
        self.tries.update(dict.fromkeys(counted, 1))
        gone = [item for item in items if counted[item] >= 3]
        self.dead += gone
        for item in gone:
            self.acquit(item)
        return [item for item in items if counted[item] < 3]

    def crash(self, name: str) -> None:
        items, self.held[name] = self.held[name], []
        left = self.accuse(items)
        self.suspects.update(item for item in left if self.tries[item] == 2)
        self.queue[:0] = left


class Both:
    """The pattern and the model, moved together and compared after every move."""

    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey
        self.model = Model()
        self.minds: dict[str, list[Item[int]]] = {name: [] for name in WORKERS}  # what each process thinks it holds
        self.pushed: Counter[bytes] = Counter()

    def raws(self, name: str) -> list[bytes]:
        return [item.raw for item in self.minds[name]]

    async def seen(self, name: str, taken) -> None:
        """Compare a take with the model; undecodable ones died at once."""
        expected, spoiled = opened(LIST.queue_key.codec, self.last)
        assert [item.raw for item in taken] == [item.raw for item in expected]
        for each in spoiled:
            self.model.remove(name, [each.raw])
            self.model.dead.append(each.raw)
        self.minds[name] += taken.items

    async def move(self, kind: str, *arguments) -> None:
        valkey, model = self.valkey, self.model
        if kind == "push":
            await LIST.push_raw(valkey, *arguments[0])
            model.queue += arguments[0]
            self.pushed.update(arguments[0])
            return
        if kind == "within":
            values = [int(item) for item in arguments[0] if item.isdigit()]
            room = len(model.queue) + len(values) <= arguments[1]
            assert await LIST.try_push(valkey, *values, limit=arguments[1]) == (room and bool(values or model.queue))
            if room:
                model.queue += [b"%d" % value for value in values]
                self.pushed.update(b"%d" % value for value in values)
            return
        if kind == "adopt":
            dead = model.known - model.alive
            recovered = await LIST.adopt(valkey, now=1.0)
            assert recovered.workers == len(dead)
            for name in sorted(dead, reverse=True):
                model.crash(name)
            model.known -= dead
            return
        if kind == "replay":
            assert await LIST.replay(valkey, arguments[0]) == len(model.dead[: arguments[0]])
            model.queue += model.dead[: arguments[0]]
            del model.dead[: arguments[0]]
            return
        name, *rest = arguments
        worker = LIST.worker(name)
        mind = self.minds[name]
        if kind == "take":
            taken = await worker.take(valkey, rest[0], now=1.0, leftovers_first=rest[1])
            model.see(name)
            self.last = model.take(name, *rest)
            await self.seen(name, taken)
        elif kind == "advance":
            found = model.remove(name, self.raws(name))
            model.done += found
            model.see(name)
            taken = await worker.finish_and_take(valkey, mind, rest[0], now=1.0)
            assert len(taken.lost) == len(mind) - len(found)
            self.minds[name] = []
            self.last = model.take(name, rest[0], True)
            await self.seen(name, taken)
        elif kind in ("finish", "hand_over"):
            some = [item for place, item in enumerate(mind) if rest[0] >> (place % 8) & 1]
            if rest[0] & 1:
                some.reverse()
            for item in some:
                mind.remove(item)
            found = model.remove(name, [item.raw for item in some])
            if kind == "finish":
                finished = await worker.finish(valkey, some)
            else:
                finished = await worker.hand_over(valkey, [(item, item.raw) for item in some], DONE)
                self.handed += found
            assert finished.count == len(found) and len(finished.lost) == len(some) - len(found)
            model.done += found
        elif kind == "put_back":
            front = rest[0]
            found = []
            for item in self.raws(name):
                if item in model.held[name]:
                    model.held[name].remove(item)
                    found.append(item)
            assert await worker.put_back(valkey, mind, front=front) == len(found)
            model.queue[:] = found + model.queue if front else model.queue + found
            self.minds[name] = []
        elif kind == "fail" and mind:
            item = mind.pop(0)
            failed = await worker.fail(valkey, item, error="no", now=1.0)
            if item.raw in model.held[name]:
                model.held[name].remove(item.raw)
                tries = model.tries[item.raw] + 1
                left = model.accuse([item.raw])
                model.queue += left
                assert (failed.tries, failed.dead) == (tries if left else 3, not left)
            else:
                assert failed.tries == 0
        elif kind == "bury" and mind:
            item = mind.pop(0)
            if item.raw in model.held[name]:
                model.held[name].remove(item.raw)
                model.acquit(item.raw)
                model.dead.append(item.raw)
            await worker.bury(valkey, [item], error="no", now=1.0)
        elif kind == "forget":
            self.minds[name] = []
        elif kind == "expire" and name:
            await valkey.run(("DEL", LIST.alive_key.at(name).name(valkey.layout)), int)
            model.alive.discard(name)
        elif kind == "recover":
            await worker.recover(valkey, now=1.0)
            model.crash(name)
        elif kind == "leave" and name:
            assert await worker.leave(valkey) == bool(model.held[name])
            await valkey.run(("DEL", LIST.alive_key.at(name).name(valkey.layout)), int)  # it lingers for a second
            model.alive.discard(name)

    async def check(self) -> None:
        """Every list is as the model has it, and every item that was pushed is in exactly one place."""
        valkey, model = self.valkey, self.model

        async def elements(ref) -> list[bytes]:
            return await valkey.run(("LRANGE", ref.name(valkey.layout), 0, -1), list)

        assert await elements(LIST.queue) == model.queue
        for name in WORKERS:
            assert await elements(LIST.worker(name).purgatory) == model.held[name]
        assert [letter.raw for letter in await LIST.dead_letters(valkey)] == model.dead
        assert await elements(DONE) == self.handed
        everywhere = [*model.queue, *model.dead, *model.done, *(item for held in model.held.values() for item in held)]
        assert Counter(everywhere) == self.pushed

    handed: list[bytes]
    last: list[bytes]


DONE = WorkList(SPACE, "done", bytes, purpose="what was handed over").queue


async def play(url: str, flush, moves) -> None:
    flush()
    valkey = await connect(url)
    try:
        both = Both(valkey)
        both.handed, both.last = [], []
        for move in (("push", [b"1", b"2", b"1", b"bad", b"3", b"1", b"4", b"2"]), *moves):
            await both.move(*move)
            await both.check()
    finally:
        await valkey.aclose()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(MOVES, min_size=10, max_size=50))
def test_work_list_does_what_the_model_does(valkey_server: LocalServer, moves) -> None:
    asyncio.run(play(valkey_server.url, lambda: valkey_server.call("FLUSHALL"), moves))


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(MOVES, min_size=10, max_size=40))
def test_work_list_on_a_cluster_does_what_the_model_does(valkey_cluster: LocalCluster, moves) -> None:
    asyncio.run(play(valkey_cluster.url, valkey_cluster.flush, moves))

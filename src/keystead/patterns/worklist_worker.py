"""One worker of a work list: takes items into a purgatory of its own and finishes them."""

import asyncio
import hashlib
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from keystead.engine import Pipeline, Script, Valkey
from keystead.engine.failures import ErrorReply
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import KeyReference, ListRef, MapRef, Reply
from keystead.patterns.guarded import Writes, judged
from keystead.patterns.worklist_items import DeadLetter, Item, Spoiled, TakenItems, count_spoiled, facts_of, opened
from keystead.patterns.worklist_liveness import Liveness
from keystead.telemetry import logger

T = TypeVar("T")

# One blocking wait at most, so that an item can only arrive while the sign of life sent along still counts.
LONGEST_WAIT_SECONDS = 10.0
# Writes that one script does at once; nobody else is served meanwhile.
MOST_TOGETHER = 50

_log = logger("patterns.worklist")


def _script(verb: str) -> Script:
    return Script("keystead.patterns", f"scripts/worklist/{verb}.lua")


TAKE, TAKE_MORE, TAKE_FROM = _script("take"), _script("take_more"), _script("take_from")
FINISH, FINISH_AND_TAKE = _script("finish"), _script("finish_and_take")
HAND_OVER, PUT_BACK, FAIL, BURY = _script("hand_over"), _script("put_back"), _script("fail"), _script("bury")
RECOVER, SETTLE, SETTLE_ALL = _script("recover"), _script("settle"), _script("settle_all")


@dataclass(frozen=True, slots=True)
class Finished(Generic[T]):
    """What became of items: how many were finished, and those that were no longer this worker's."""

    count: int
    lost: tuple[Item[T], ...] = ()


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a dead worker had left: items that will be tried again, items given up, and how many workers were dead."""

    items: int
    dead: int
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed try: how many there were so far (0: the item is no longer ours), and whether it is a dead letter now."""

    tries: int
    dead: bool


@dataclass(frozen=True, slots=True)
class Rules:
    """What the declaration says about dying and failing."""

    tries: int
    poison_seconds: float
    alive_seconds: float
    most_dead: int

    @property
    def poison_ms(self) -> int:
        return round(self.poison_seconds * 1000)

    @property
    def alive_ms(self) -> int:
        return round(self.alive_seconds * 1000)

    def of_crashes(self, now: float) -> tuple[int, int, str, int]:
        """What scripts are told that count a crash against what a dead worker held."""
        return self.tries, self.poison_ms, facts_of("its worker died with it", now), self.most_dead


class Worker(Generic[T]):
    """Takes and finishes. Give each task that works by itself a worker of its own name.

    ``take`` returns what already lies in purgatory before it moves anything, so a worker that finishes what it took
    before it takes again loses nothing by a crash, a lost reply or a forgotten item: it comes back with the next take.
    """

    def __init__(
        self, name: str, queue: ListRef[T], purgatory: ListRef[T], poison: MapRef[int], dead: ListRef[DeadLetter],
        liveness: Liveness | None, rules: Rules,
    ) -> None:
        self.name = name
        self.queue, self.purgatory, self.poison, self.dead = queue, purgatory, poison, dead
        self._liveness = liveness
        self._rules = rules
        self._places = (queue, purgatory, poison, *((liveness.mark, liveness.workers) if liveness else ()))

    # -- taking -----------------------------------------------------------------------------------------------------

    def take(
        self, on: ScriptRunner, most: int, *, now: float, leftovers_first: bool = True
    ) -> Awaitable[TakenItems[T]]:
        """Move up to ``most`` of the oldest items into purgatory and return them, or return its leftovers.

        One atomic step, which also counts as a sign of life. An item that some worker died with comes alone. What does
        not decode becomes a dead letter (over a connection) or is named in ``spoiled`` (in a pipeline).
        A lost reply is asked for again, and gives the same items. ``leftovers_first=False`` is for a worker that takes
        more while it still holds items; there a lost reply is an error, and the items lie in purgatory.
        """
        script = TAKE if leftovers_first else TAKE_MORE
        taking: Awaitable[TakenItems[T]] = script(
            on, keys=self._places, args=(most, self.name, self._rules.alive_ms), decode=self._taken
        )
        return taking if isinstance(on, Pipeline) else self._without_spoiled(on, taking, now)

    def take_from(
        self, on: ScriptRunner, queues: Sequence[ListRef[T]], closed: KeyReference, most: int, *, now: float,
        leftovers_first: bool = True, holds_nothing: bool = True,
    ) -> Awaitable[TakenItems[T]]:
        """As ``take``, from several lists of the same tag in the order given: priorities, or work already sorted.

        Nothing is taken while the key ``closed`` exists. An item whose last try this is after crashes comes ``alone``,
        and only to a worker that holds nothing; until then others are served around it, and ``suspects_wait`` is set.
        Whose purgatory is empty but who holds something elsewhere says so by ``holds_nothing``.
        What is put back, failed or adopted goes to this list's own queue.
        """
        living = self._living()
        taking: Awaitable[TakenItems[T]] = TAKE_FROM(
            on, keys=(self.purgatory, self.poison, living.mark, living.workers, closed, *queues),
            args=(most, self.name, self._rules.alive_ms, int(leftovers_first), int(holds_nothing)),
            decode=self._taken,
        )
        return taking if isinstance(on, Pipeline) else self._without_spoiled(on, taking, now)

    def finish_and_take(
        self, on: ScriptRunner, items: Sequence[Item[T]], most: int, *, now: float
    ) -> Awaitable[TakenItems[T]]:
        """Finish these and take the next, leftovers first, in one atomic step. ``lost`` were no longer ours."""

        def decode(reply: Reply) -> TakenItems[T]:
            taken = self._taken(reply[1])
            return replace(taken, lost=tuple(items[place - 1] for place in reply[0]))

        taking: Awaitable[TakenItems[T]] = FINISH_AND_TAKE(
            on, keys=self._places, args=(most, self.name, self._rules.alive_ms, *(item.raw for item in items)),
            decode=decode,
        )
        return taking if isinstance(on, Pipeline) else self._without_spoiled(on, taking, now)

    async def wait_and_take(self, valkey: Valkey, most: int, timeout_seconds: float, *, now: float) -> TakenItems[T]:
        """As ``take``; an empty queue is waited on, without polling, until something comes or the time is over."""
        taken = await self.take(valkey, most, now=now)
        end = asyncio.get_running_loop().time() + timeout_seconds
        while not taken.items and not taken.spoiled:
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                break
            taken = await self._wait(valkey, most, min(left, LONGEST_WAIT_SECONDS, self._rules.alive_seconds / 3), now)
        return taken

    async def _wait(self, valkey: Valkey, most: int, seconds: float, now: float) -> TakenItems[T]:
        queue, purgatory = self.queue.name(valkey.layout), self.purgatory.name(valkey.layout)
        # In one write: the sign of life is on the server before an item can arrive.
        async with valkey.pipeline(transaction=False) as pipeline:
            if self._liveness is not None:
                self.beat(pipeline)
            pipeline.run(("BLMOVE", queue, purgatory, "LEFT", "RIGHT", max(seconds, 0.01)), bool)
            suspects = pipeline.run(("EXISTS", self.poison.name(valkey.layout)), bool)
            came = (await pipeline.execute())[-2]
        if not came:
            return TakenItems([])
        # The one that came lies in purgatory. While there are suspects it may be one, and then it comes alone.
        if most > 1 and not await suspects:
            return await self._with_first(valkey, most, now)
        return await self.take(valkey, most, now=now)

    async def _with_first(self, valkey: Valkey, most: int, now: float) -> TakenItems[T]:
        # The others lie in purgatory behind the first, so the second answer holds them all.
        async with valkey.pipeline(transaction=False) as pipeline:
            self.take(pipeline, most - 1, now=now, leftovers_first=False)
            everything = pipeline.run(("LRANGE", self.purgatory.name(valkey.layout), 0, most - 1), list)
            await pipeline.execute()
        items, spoiled = opened(self.queue.codec, await everything)
        return await self._without_spoiled(valkey, _ready(TakenItems(items, False, spoiled)), now)

    def _taken(self, reply: Reply) -> TakenItems[T]:
        items, spoiled = opened(self.queue.codec, reply[1])
        how = reply[0]
        return TakenItems(items, how == 1, spoiled, closed=how == 2, suspects_wait=how == 3, alone=how == 4)

    async def _without_spoiled(self, on: ScriptRunner, taking: Awaitable[TakenItems[T]], now: float) -> TakenItems[T]:
        taken = await taking
        if taken.spoiled:
            count_spoiled(self.queue.declaration, taken.spoiled)
            await self.bury(on, taken.spoiled, error=None, now=now)
        return taken

    # -- settling ---------------------------------------------------------------------------------------------------

    def finish(self, on: ScriptRunner, items: Iterable[Item[T]]) -> Awaitable[Finished[T]]:
        """Remove exactly these from purgatory: one copy of each, all in one atomic step.

        In a caller's transaction it happens together with the result. ``lost`` are items that another worker has
        adopted meanwhile. After a lost reply do not finish again: take, and see what is left.
        """
        given = tuple(items)
        return FINISH(
            on, keys=(self.purgatory, self.poison), args=[item.raw for item in given],
            decode=lambda missing: _finished(given, missing),
        )

    def settle(self, on: ScriptRunner, item: Item[T], writes: Writes) -> Awaitable[bool]:
        """Remove this item from purgatory and do the writes, in one atomic step; or neither, and say False.

        False: another worker has adopted the item, and what follows from it is that worker's. After a lost reply do not
        settle again: take, and see what is left.
        """
        names, packed = writes.packed(on.layout)
        return SETTLE(on, keys=(self.purgatory, self.poison, *names), args=(item.raw, packed),
                      decode=lambda reply: bool(judged(writes, reply)))

    async def settle_each(
        self, valkey: Valkey, settlements: Sequence[tuple[Item[T], Writes]], *, also: Pipeline | None = None
    ) -> list[bool | ErrorReply]:
        """As ``settle`` for each of them: whether it was ours, or why the server refused its writes.

        Some dozens are settled in one step, which is much less work for the server: counts of one family are added up.
        Where one of those is another worker's, or its writes are refused, they are settled one by one. ``also`` is a
        pipeline with something else for the same exchange; it is executed here, errors are for who asked.
        """
        groups = _together(settlements)
        async with valkey.pipeline(transaction=False) if also is None else also as pipeline:
            asked = [self._settle_together(pipeline, settlements[first:end]) for first, end in groups]
            await pipeline.execute(raise_on_error=False)
        found: list[bool | ErrorReply] = [True] * len(settlements)
        alone: list[int] = []
        for (first, end), each in zip(groups, asked, strict=True):
            if (settled := await answer(each)) is not True:
                alone += range(first, end)
                found[first] = settled
        if len(settlements) > 1 and alone:
            async with valkey.pipeline(transaction=False) as pipeline:
                again = [(place, self.settle(pipeline, *settlements[place])) for place in alone]
                await pipeline.execute(raise_on_error=False)
            for place, each in again:
                found[place] = await answer(each)
        return found

    def _settle_together(self, on: Pipeline, group: Sequence[tuple[Item[T], Writes]]) -> Awaitable[bool]:
        """All of them in one atomic step, or none if one is not there."""
        if len(group) == 1:
            return self.settle(on, *group[0])
        writes = Writes(on.layout)
        for _, each in group:
            writes.add(each)
        names, packed = writes.packed(on.layout)

        def decode(reply: Reply) -> bool:
            if isinstance(reply[-1], bytes):
                _log.error("something that follows from items could not be written", list=self.queue.logical,
                           error=reply.pop().decode(errors="replace")[:300])
            return bool(judged(writes, reply))

        raws = [item.raw for item, _ in group]
        return SETTLE_ALL(on, keys=(self.purgatory, self.poison, *names), args=(packed, *raws), decode=decode)

    def hand_over(
        self, on: ScriptRunner, results: Sequence[tuple[Item[T], bytes]], to: ListRef[Any]
    ) -> Awaitable[Finished[T]]:
        """Finish items and push the ready bytes that follow from each onto a list of the same tag, in one step.

        For an item that is no longer ours nothing is pushed, so each item is handed over once.
        """
        given = tuple(item for item, _ in results)
        pairs = [part for item, raw in results for part in (item.raw, raw)]
        return HAND_OVER(on, keys=(self.purgatory, self.poison, to), args=pairs,
                         decode=lambda missing: _finished(given, missing))

    def put_back(self, on: ScriptRunner, items: Iterable[Item[T]], *, front: bool = False) -> Awaitable[int]:
        """Return items to the queue in their order, behind the others or to be served next; says how many were ours."""
        return PUT_BACK(on, keys=(self.purgatory, self.queue), args=(int(front), *(item.raw for item in items)))

    def fail(self, on: ScriptRunner, item: Item[T], *, error: str, now: float) -> Awaitable[Failed]:
        """Count a failed try: behind the others again, or a dead letter with the error after the declared tries."""
        rules = self._rules
        return FAIL(
            on, keys=(self.purgatory, self.queue, self.poison, self.dead),
            args=(item.raw, rules.tries, rules.poison_ms, facts_of(error, now), rules.most_dead),
            decode=lambda tries: Failed(abs(tries), tries < 0),
        )

    def bury(
        self, on: ScriptRunner, items: Iterable[Item[T] | Spoiled], *, error: str | None, now: float
    ) -> Awaitable[int]:
        """Move items to the dead letters at once; says how many were ours. ``error`` None: spoiled ones say it."""
        pairs: list[bytes | str] = []
        for item in items:
            reason = error if error is not None else item.reason if isinstance(item, Spoiled) else ""
            pairs += (item.raw, facts_of(reason, now))
        return BURY(on, keys=(self.purgatory, self.dead, self.poison), args=(self._rules.most_dead, *pairs))

    def is_suspect(self, on: Valkey | Pipeline, raw: bytes) -> Awaitable[bool]:
        """Whether this would be the last try of an item after crashes; for whoever got it other than by ``take``."""
        mark = f"crashed:{hashlib.sha1(raw, usedforsecurity=False).hexdigest()}"
        return on.run(("HEXISTS", self.poison.name(on.layout), mark), bool, repeat=True)

    def held(self, on: Valkey | Pipeline) -> Awaitable[int]:
        """How many items lie in purgatory."""
        return self.purgatory.length(on)

    # -- living and dying -------------------------------------------------------------------------------------------

    def recover(self, on: ScriptRunner, *, now: float) -> Awaitable[Recovered]:
        """At the start of a worker: return what an earlier one of this name left to the front of the queue.

        It counts as a crash of each of those items; one that crashed too often becomes a dead letter. The others keep
        their order and come one at a time until finished, so that one bad item does not condemn its neighbours.
        """
        return RECOVER(
            on, keys=(self.purgatory, self.queue, self.poison, self.dead), args=self._rules.of_crashes(now),
            decode=lambda reply: Recovered(*reply),
        )

    def beat(self, on: Valkey | Pipeline) -> Awaitable[None]:
        """A sign of life: until it expires, nobody adopts what this worker holds."""
        return self._living().beat(on)

    def leave(self, on: ScriptRunner) -> Awaitable[bool]:
        """Let the sign of life end within a second, so that what is left can be adopted; says whether anything is."""
        return self._living().leave(on)

    def alive(self, valkey: Valkey) -> AbstractAsyncContextManager[None]:
        """Give signs of life while the block runs, and leave at its end.

        A server that is away is tried again; meanwhile the sign may expire and others adopt what is held here, which
        ``finish`` then says.
        """
        return self._living().alive(valkey)

    def _living(self) -> Liveness:
        if self._liveness is None:
            raise DeclarationError("the default worker gives no signs of life; give the worker a name")
        return self._liveness


def _finished(given: tuple[Item[T], ...], missing: list[int]) -> Finished[T]:
    return Finished(len(given) - len(missing), tuple(given[place - 1] for place in missing))


def _together(settlements: Sequence[tuple[Item[T], Writes]]) -> list[tuple[int, int]]:
    """From where to where the server can do it in about a millisecond; no two items of such a group are equal."""
    groups: list[tuple[int, int]] = []
    first, size, raws = 0, 0, set[bytes]()
    for place, (item, writes) in enumerate(settlements):
        if place > first and (size + len(writes) > MOST_TOGETHER or item.raw in raws):
            groups.append((first, place))
            first, size, raws = place, 0, set()
        raws.add(item.raw)
        size += len(writes)
    return [*groups, (first, len(settlements))] if settlements else groups


async def answer(asked: Awaitable[bool]) -> bool | ErrorReply:
    """What was answered, also where the server refused it."""
    try:
        return await asked
    except ErrorReply as error:
        return error


R = TypeVar("R")


async def _ready(value: R) -> R:
    return value

"""The scheduler beside a plain model of it: every step is made on both, and the whole state compared.

Each move is one command, so whoever holds something in a hand (taken, not claimed) or a claim may be forgotten between
any two of them: that is a crash.
"""

from typing import Any

import msgspec
from hypothesis import strategies as st

from keystead.engine import Valkey
from keystead.jobs import scheduler_steps as steps
from keystead.jobs.keys import (
    SCHEDULER_LEADER,
    TASKS_ACTIVE,
    TASKS_DEAD,
    TASKS_ORPHANS,
    TASKS_PAUSED,
    TASKS_PAYLOAD,
    TASKS_PROCESSING,
    TASKS_QUEUE,
    TASKS_SCHEDULED,
)
from keystead.jobs.models import Task
from keystead.jobs.scheduler_steps import Cancelled, Claim, Failed, IfKnown, Refusal, Revived, Scheduled
from keystead.patterns import Term

IDS = ("a", "b:1", "c", "d")
LEADER = SCHEDULER_LEADER.at()
GRACE = 5.0
START = 1000.0

# What a careless change of JSON would spoil.
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {}, {"empty": [], "none": None, "big": 2**60 + 1, "fine": 0.1234567890123456},
    {"text": '"attempts":7,"cancelled":true} \\', "attempts": 3, "cancelled": True, "deep": [{"last_error": "{"}]},
)

_ID = st.sampled_from(IDS)
_PLACE = st.integers(0, 7)
_MOVE = st.one_of(
    st.tuples(st.just("schedule"), _ID, st.integers(-8, 40), st.sampled_from(IfKnown), st.integers(1, 3),
              st.sampled_from(ARGUMENTS)),
    st.tuples(st.just("cancel"), _ID),
    st.tuples(st.just("revive"), _ID),
    st.tuples(st.just("elect"), st.sampled_from(("one", "two"))),
    st.tuples(st.just("lapse")),
    st.tuples(st.just("promote"), st.booleans(), st.integers(1, 3)),
    st.tuples(st.just("promote"), st.just(False), st.just(100)),
    st.tuples(st.just("take")),
    st.tuples(st.just("take")),
    st.tuples(st.just("claim"), _PLACE),
    st.tuples(st.just("claim"), _PLACE),
    st.tuples(st.just("crash"), st.sampled_from(("hands", "claims")), _PLACE),
    st.tuples(st.just("heartbeat"), _PLACE),
    st.tuples(st.just("complete"), _PLACE),
    st.tuples(st.just("fail"), _PLACE, st.integers(0, 20), st.booleans(), st.booleans()),
    st.tuples(st.just("expire"), _ID),
    st.tuples(st.just("reclaim"), st.booleans()),
    st.tuples(st.just("reclaim"), st.just(False)),
    st.tuples(st.just("advance"), st.integers(1, 40)),
    st.tuples(st.just("pause"), st.booleans()),
)
# What often happens in a row, so that random lives come as far as real ones.
_RECLAIMED = (("reclaim", False), ("advance", 24), ("reclaim", False))
_ROWS = st.one_of(
    st.just((("promote", False, 100), ("take",))),
    st.just((("promote", False, 100), ("take",), ("claim", 0))),
    st.just(_RECLAIMED),
    _ID.map(lambda name: (("expire", name), *_RECLAIMED)),
    st.just((("lapse",), ("elect", "one"))),
)
MOVES = st.lists(st.one_of(_MOVE.map(lambda move: (move,)), _ROWS), min_size=15, max_size=50).map(
    lambda rows: [move for row in rows for move in row]
)


class Both:
    """The server and the model."""

    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey
        self.now = START
        self.scheduled: dict[str, float] = {}
        self.queue: list[str] = []  # left to right, as on the server
        self.processing: list[str] = []
        self.payload: dict[str, Task] = {}
        self.active: dict[str, str] = {}
        self.orphans: dict[str, float] = {}
        self.dead: dict[str, Task] = {}
        self.paused = False
        self.leader: str | None = None
        self.terms: list[Term] = []
        self.hands: list[str] = []
        self.claims: list[Claim] = []
        self.claimed = 0
        self.done: list[str] = []
        self.cancelled: set[str] = set()

    async def move(self, kind: str, *given: Any) -> None:
        await getattr(self, f"_{kind}")(*given)

    # -- clients ----------------------------------------------------------------------------------------------------

    async def _schedule(self, name: str, quarters: int, mode: IfKnown, tries: int, args: dict[str, Any]) -> None:
        task = Task(name, "job", args, self.now + quarters / 4, self.now, max_attempts=tries)
        assert await steps.schedule(self.valkey, task, mode) is self._expected(task, mode)

    def _expected(self, task: Task, mode: IfKnown) -> Scheduled:
        known, due = self.payload.get(task.id), self.scheduled.get(task.id)
        outcome = Scheduled.REPLACED if known else Scheduled.NEW
        if known and due is None and known.cancelled:
            if task.id not in self.queue:
                return Scheduled.RUNNING
            outcome = Scheduled.NEW
        elif known and (mode is IfKnown.KEEP or (mode is IfKnown.EARLIER and (due is None or task.run_at >= due))):
            return Scheduled.EXISTS
        elif known and due is None and task.id not in self.queue:
            return Scheduled.RUNNING
        if task.id in self.queue:
            self.queue.remove(task.id)
        self.payload[task.id] = task
        self.scheduled[task.id] = task.run_at
        return outcome

    async def _cancel(self, name: str) -> None:
        outcome = await steps.cancel(self.valkey, name)
        if name not in self.payload:
            assert outcome is Cancelled.UNKNOWN
            return
        assert outcome is (Cancelled.RUNNING if name in self.active else Cancelled.CANCELLED)
        if name in self.scheduled:
            del self.scheduled[name], self.payload[name]
        else:
            self.payload[name] = msgspec.structs.replace(self.payload[name], cancelled=True)

    async def _revive(self, name: str) -> None:
        outcome = await steps.revive(self.valkey, name, self.now)
        if name not in self.dead:
            assert outcome is Revived.UNKNOWN
        elif name in self.payload:
            assert outcome is Revived.EXISTS
        else:
            assert outcome is Revived.REVIVED
            self.payload[name] = msgspec.structs.replace(self.dead.pop(name), attempts=0)
            self.scheduled[name] = self.now

    async def _pause(self, paused: bool) -> None:
        flag = TASKS_PAUSED.at()
        await (flag.raise_flag(self.valkey) if paused else flag.lower_flag(self.valkey))
        self.paused = paused

    async def _advance(self, quarters: int) -> None:
        self.now += quarters / 4

    # -- the leader -------------------------------------------------------------------------------------------------

    async def _elect(self, instance: str) -> None:
        answer = await LEADER.elect(self.valkey, instance)
        if self.leader is None or self.leader.startswith(instance):
            assert isinstance(answer, Term)
            if self.leader is None:
                assert all(answer.epoch > earlier.epoch for earlier in self.terms)
                self.terms.append(answer)
            self.leader = answer.value
        else:
            assert not isinstance(answer, Term)

    async def _lapse(self) -> None:
        await LEADER.reference.delete(self.valkey)
        self.leader = None

    def _term(self, earlier: bool) -> str:
        """The leader's value; or what an earlier one, that was stopped for a while, still takes for it."""
        if earlier and self.terms:
            return self.terms[0].value
        return self.leader or "nobody:0"

    async def _promote(self, earlier: bool, most: int) -> None:
        value = self._term(earlier)
        promoted = await steps.promote(self.valkey, value, most, now=self.now)
        if value != self.leader:
            assert promoted is None
            return
        assert promoted is not None
        if self.paused:
            assert promoted.paused
            return
        due = sorted((at, name) for name, at in self.scheduled.items() if at <= self.now)[:most]
        for _, name in due:
            del self.scheduled[name]
            self.queue.insert(0, name)
        assert (promoted.moved, promoted.dropped) == (len(due), 0)
        assert promoted.next_at == min(self.scheduled.values(), default=None)

    async def _reclaim(self, earlier: bool) -> None:
        value = self._term(earlier)
        found = await steps.reclaim(self.valkey, value, now=self.now, grace_seconds=GRACE)
        if value != self.leader:
            assert found is None
            return
        counted = {"returned": 0, "dead": 0, "dropped": 0, "waiting": 0}
        for name in list(self.processing):
            if name in self.active:
                continue
            if name not in self.orphans or self.now - self.orphans[name] < GRACE:
                self.orphans.setdefault(name, self.now)
                counted["waiting"] += 1
                continue
            self.processing.remove(name)
            del self.orphans[name]
            became = self._failed(name, steps.LOST_WORKER)
            if became is Failed.AGAIN:
                self.queue.append(name)
            counted[{Failed.AGAIN: "returned", Failed.DEAD: "dead", Failed.CANCELLED: "dropped"}[became]] += 1
        assert found == steps.Reclaimed(**counted)

    def _failed(self, name: str, error: str, counts: bool = True, give_up: bool = False) -> Failed:
        task = self.payload.pop(name)
        if task.cancelled:
            return Failed.CANCELLED
        task = msgspec.structs.replace(task, attempts=task.attempts + counts, last_error=error)
        if give_up or task.attempts >= task.max_attempts:
            self.dead[name] = task
            return Failed.DEAD
        self.payload[name] = task
        return Failed.AGAIN

    # -- workers ----------------------------------------------------------------------------------------------------

    async def _take(self) -> None:
        raw = await steps.take_now(self.valkey)
        assert raw == (self.queue[-1].encode() if self.queue else None)
        if raw is not None:
            self.processing.insert(0, self.queue.pop())
            self.hands.append(raw.decode())

    async def _claim(self, place: int) -> None:
        if not self.hands:
            return
        name = self.hands.pop(place % len(self.hands))
        self.claimed += 1
        holder = f"worker:{self.claimed}"
        held = await steps.claim(self.valkey, name, holder, 30.0)
        if name in self.active or name not in self.processing:
            assert held is Refusal.TAKEN
            return
        self.orphans.pop(name, None)
        if self.payload[name].cancelled:
            assert held is Refusal.DROPPED
            self.processing.remove(name)
            del self.payload[name]
        elif self.paused:
            assert held is Refusal.PAUSED
            self.processing.remove(name)
            self.queue.append(name)
        else:
            assert isinstance(held, Claim)
            assert TASKS_PAYLOAD.codec.decode(held.raw) == self.payload[name]
            assert await steps.claim(self.valkey, name, holder, 30.0) == held  # a lost reply is asked for again
            self.active[name] = holder
            self.claims.append(held)

    async def _crash(self, whose: str, place: int) -> None:
        forgotten: list[Any] = getattr(self, whose)
        if forgotten:
            forgotten.pop(place % len(forgotten))

    async def _expire(self, name: str) -> None:
        await TASKS_ACTIVE.at(name).delete(self.valkey)
        self.active.pop(name, None)

    def _held(self, place: int, keep: bool = False) -> tuple[Claim | None, bool]:
        if not self.claims:
            return None, False
        place %= len(self.claims)
        held = self.claims[place] if keep else self.claims.pop(place)
        return held, self.active.get(held.id) == held.holder

    async def _heartbeat(self, place: int) -> None:
        held, ours = self._held(place, keep=True)
        assert held is None or await steps.heartbeat(self.valkey, held, 30.0) is ours

    async def _complete(self, place: int) -> None:
        held, ours = self._held(place)
        if held is None:
            return
        assert await steps.complete(self.valkey, held) is ours
        if ours:
            self.processing.remove(held.id)
            del self.payload[held.id], self.active[held.id]
            self.done.append(held.id)

    async def _fail(self, place: int, quarters: int, counts: bool, give_up: bool) -> None:
        held, ours = self._held(place)
        if held is None:
            return
        due = self.now + quarters / 4
        became = await steps.fail(self.valkey, held, "it \"broke\" \\", due, counts=counts, give_up=give_up)
        if not ours:
            assert became is Failed.LOST
            return
        self.processing.remove(held.id)
        del self.active[held.id]
        assert became is self._failed(held.id, "it \"broke\" \\", counts, give_up)
        if became is Failed.AGAIN:
            self.scheduled[held.id] = due

    # -- what must hold ---------------------------------------------------------------------------------------------

    async def check(self) -> None:
        """The server holds what the model does, and the invariants hold on the server."""
        async with self.valkey.pipeline(transaction=True) as pipeline:
            asked = [
                TASKS_SCHEDULED.at().range(pipeline), TASKS_ORPHANS.at().range(pipeline),
                TASKS_QUEUE.at().range(pipeline), TASKS_PROCESSING.at().range(pipeline),
                TASKS_PAYLOAD.at().all(pipeline), TASKS_DEAD.at().all(pipeline), LEADER.current(pipeline),
                *(TASKS_ACTIVE.at(name).get(pipeline) for name in IDS),
            ]
            await pipeline.execute()
        answers: list[Any] = [await answer for answer in asked]  # type: ignore[misc]
        scheduled, orphans, queue, processing, payload, dead, leader, *holders = answers
        scheduled, orphans = dict(scheduled), dict(orphans)
        active = {name: holder for name, holder in zip(IDS, holders, strict=True) if holder is not None}
        places = [*scheduled, *queue, *processing]
        assert len(places) == len(set(places)), "an id is in one place only"
        assert set(places) == set(payload), "and there it has a task"
        assert set(active) <= set(processing), "who is worked on is among those"
        assert set(orphans) <= set(processing) - set(active)
        assert (scheduled, queue, processing) == (self.scheduled, self.queue, self.processing)
        assert (payload, dead) == (self.payload, self.dead)
        assert (active, orphans) == (self.active, self.orphans)
        assert leader == self.leader

    async def everybody_dies_and_the_rest_is_done(self) -> None:
        """No process is left. A new leader and a new worker see every task to its end."""
        wanted = {name for name, task in self.payload.items() if not task.cancelled}
        before = len(self.done)
        self.hands.clear()
        self.claims.clear()
        for name in IDS:
            await self._expire(name)
        await self._lapse()
        await self._elect("last")
        await self._pause(False)
        for _ in range(3):
            await self._reclaim(False)
            await self._advance(50)
            await self._promote(False, 100)
            while self.queue:
                await self._take()
                await self._claim(0)
                await self._complete(0)
            await self.check()
        assert not self.payload and not self.processing
        assert wanted == set(self.done[before:]) | (wanted & set(self.dead))

"""Delayed set: members wait until they are due, and each is then taken by exactly one worker.

``docs/patterns/delayed.md`` says when to choose it and what it cannot promise.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar, Unpack

from keystead.engine import Pipeline, Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import (
    AtMost,
    FlagKey,
    Keyspace,
    ListKey,
    ListRef,
    MapKey,
    Reply,
    SetKey,
    Sliding,
    SortedSetKey,
    SortedSetRef,
    Value,
)
from keystead.keys.codecs import Of
from keystead.keys.executor import Executor
from keystead.patterns.delayed_worker import BURY, DelayedWorker, DueItems, due_items, obituaries
from keystead.patterns.derived import around
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.worklist import ALIVE_SECONDS, POISON_SECONDS, TRIES, purgatory_name
from keystead.patterns.worklist_items import DeadLetter, DeadLetterCodec, count_spoiled
from keystead.patterns.worklist_liveness import Liveness
from keystead.patterns.worklist_worker import Recovered, Rules

T = TypeVar("T")

CLAIM = Script("keystead.patterns", "scripts/delayed/claim.lua")
MOVE_DUE = Script("keystead.patterns", "scripts/delayed/move_due.lua")
ADOPT = Script("keystead.patterns", "scripts/delayed/adopt.lua")
REPLAY = Script("keystead.patterns", "scripts/delayed/replay.lua")
REPLAY_CHOSEN = Script("keystead.patterns", "scripts/delayed/replay_chosen.lua")


class IfWaiting(Enum):
    """What ``schedule`` does with a member that waits already."""

    REPLACE = ()
    KEEP = ("NX",)
    EARLIER = ("LT",)


class MoveStop(Enum):
    """Why ``move_due`` stopped."""

    EMPTY = "src_empty"
    COUNT = "max_count"
    BACKPRESSURE = "backpressure"
    NOT_DUE = "max_score"


@dataclass(frozen=True, slots=True)
class MovedDue:
    """How many members moved to the list, and why it ended."""

    count: int
    stop: MoveStop


class DelayedSet(Generic[T]):
    """Members by the time they are due; a worker takes due ones into its purgatory and settles exactly those.

    Declares, from the set's name and that of the purgatory (``{set}_purgatory`` unless given): the set, ``{purgatory}``
    of the default worker, ``{purgatory}:{worker}`` and its ``:alive`` for named ones, ``{set}:workers``,
    ``{set}:poison`` (crashes and failures by member) and ``{set}:dead``. A member waits at most once. A pattern with
    variables is used through ``at``.

    ``tries``: a member that its worker died with, or failed, so often becomes a dead letter. ``most_dead`` bounds the
    dead letters by dropping the oldest; 0 keeps all.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, of: Of[T], *, member: str, score: str = "unix time when it is due",
        purgatory: str = "", tries: int = TRIES, alive_seconds: float = ALIVE_SECONDS,
        poison_seconds: float = POISON_SECONDS, most_dead: int = 0, **facts: Unpack[PatternFacts],
    ) -> None:
        shelter = purgatory or purgatory_name(pattern)
        self._rules = Rules(tries, poison_seconds, alive_seconds, most_dead)
        self.dead_key: ListKey[DeadLetter] = ListKey(
            keyspace, f"{pattern}:dead", DeadLetterCodec(),
            **told(facts, "given up with the error, newest right",
                   scripts=_scripts("bury", "fail", "recover", "adopt", "replay", "replay_chosen")),
        )
        self.due_key: SortedSetKey[T] = SortedSetKey(
            keyspace, pattern, of, member=member, score=score,
            **told(facts, scripts=_scripts("take", "reschedule", "move_due", "claim", "adopt", "replay"),
                   dead=self.dead_key),
        )
        held = _scripts("take", "finish", "settle", "reschedule")
        self.purgatory_key: SortedSetKey[T] = SortedSetKey(
            keyspace, shelter, of, member=member, score=score,
            **told(facts, "taken by the default worker, not settled", scripts=held, dead=self.dead_key),
        )
        self.worker_key: SortedSetKey[T] = SortedSetKey(
            keyspace, f"{shelter}:{{worker}}", of, member=member, score=score,
            **told(facts, "taken by one worker, not settled", scripts=held, dead=self.dead_key),
        )
        presence = _scripts("take", "adopt")
        self.alive_key = FlagKey(keyspace, f"{shelter}:{{worker}}:alive", **told(
            facts, "sign of life of one worker", scripts=presence, ttl=AtMost(alive_seconds), personal=False
        ))
        self.workers_key: SetKey[str] = SetKey(
            keyspace, f"{pattern}:workers", str, member="a worker's name",
            **told(facts, "workers that may hold members", scripts=presence, personal=False),
        )
        self.poison_key: MapKey[int] = MapKey(
            keyspace, f"{pattern}:poison", int, fields=("{sha1}", "crashed:{sha1}"),
            **told(facts, "crashes and failures by the SHA-1 of a member",
                   scripts=_scripts("take", "finish", "fail", "recover", "adopt"),
                   ttl=Sliding(poison_seconds, reads=False), personal=False),
        )
        self._arguments: Mapping[str, str] | None = None if self.due_key.template.names else {}

    def at(self, *variables: Value, **named: Value) -> "DelayedSet[T]":
        """The same set for these variables of its pattern."""
        bound: DelayedSet[T] = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound._arguments = self.due_key.template.bind(variables, named)
        return bound

    @property
    def arguments(self) -> Mapping[str, str]:
        if self._arguments is None:
            raise DeclarationError(f"{self.due_key.pattern} has variables: say which with at(...)")
        return self._arguments

    @property
    def due(self) -> SortedSetRef[T]:
        """The waiting members, as a key: for a script or transaction of the room's own."""
        return self.due_key.at(**self.arguments)

    @property
    def dead(self) -> ListRef[DeadLetter]:
        """The dead letters, newest right."""
        return self.dead_key.at(**self.arguments)

    # -- waiting ----------------------------------------------------------------------------------------------------

    def schedule(
        self, on: Executor, member: T, at: float, *, if_waiting: IfWaiting = IfWaiting.REPLACE
    ) -> Awaitable[bool]:
        """Let a member be due at a time; says whether that changed anything. Also for a caller's transaction."""
        command = ("ZADD", self.due.name(on.layout), *if_waiting.value, "CH", repr(float(at)), self._encoded(member))
        return on.run(command, bool)

    def schedule_many(self, on: Executor, times: Mapping[T, float]) -> Awaitable[int]:
        """Let several members be due, each at its time; says how many are new."""
        return self.due.add_many(on, times)

    def cancel(self, on: Executor, *members: T) -> Awaitable[int]:
        """Members wait no longer; says how many did. One that a worker has taken is not reached any more."""
        return self.due.remove(on, *members)

    def due_at(self, on: Valkey | Pipeline, member: T) -> Awaitable[float | None]:
        """When a waiting member is due."""
        return self.due.score(on, member)

    def next_at(self, on: Valkey | Pipeline) -> Awaitable[float | None]:
        """When the next member is due, None if none waits."""
        return self.due.lowest_score(on)

    def size(self, on: Valkey | Pipeline) -> Awaitable[int]:
        """How many wait; those in purgatory do not count."""
        return self.due.size(on)

    # -- working ----------------------------------------------------------------------------------------------------

    def worker(self, name: str = "") -> DelayedWorker[T]:
        """A worker by name, or the default worker: a single runner with the documented purgatory, never adopted."""
        arguments, rules = self.arguments, self._rules
        poison = self.poison_key.at(**arguments)
        if not name:
            return DelayedWorker("", self.due, self.purgatory_key.at(**arguments), poison, self.dead, None, rules)
        named = {**arguments, "worker": name}
        purgatory = self.worker_key.at(**named)
        mark, workers = self.alive_key.at(**named), self.workers_key.at(**arguments)
        liveness = Liveness(name, purgatory, mark, workers, rules.alive_seconds)
        return DelayedWorker(name, self.due, purgatory, poison, self.dead, liveness, rules)

    def adopt(self, on: ScriptRunner, *, now: float, not_before: float = 0.0) -> Awaitable[Recovered]:
        """Let what dead workers hold wait again, due at its old time or ``not_before``, whichever is later.

        A member that was scheduled again meanwhile keeps the earlier of both times; one that crashed too often becomes
        a dead letter. One atomic step. With 3,000 members it ends; more dead workers come with the next call.
        """
        arguments = self.arguments
        names = (
            *around(self.worker_key, "worker", arguments, on.layout),
            *around(self.alive_key, "worker", arguments, on.layout),
        )
        return ADOPT(
            on, keys=[self.due, self.workers_key.at(**arguments), self.poison_key.at(**arguments), self.dead],
            args=(*names, float(not_before), *self._rules.of_crashes(now)),
            decode=lambda reply: Recovered(reply[1], reply[2], reply[0]),
        )

    def claim(self, on: ScriptRunner, most: int, *, now: float, again_at: float) -> Awaitable[DueItems[T]]:
        """Return due members and put them off to ``again_at`` in one step, without a purgatory.

        Whoever is done with one cancels it; otherwise it is due again then. What does not decode becomes a dead letter
        (over a connection) or is named in ``spoiled`` and comes again (in a pipeline).
        """
        claiming: Awaitable[DueItems[T]] = CLAIM(
            on, keys=[self.due], args=(now, float(again_at), most), decode=self._claimed
        )
        return claiming if isinstance(on, Pipeline) else self._without_spoiled(on, claiming, now)

    def move_due(
        self, on: ScriptRunner, to: ListRef[Any], most: int, *, now: float, limit: int | None = None
    ) -> Awaitable[MovedDue]:
        """Move due members, byte for byte, to the end of a list of the same tag, while it is shorter than ``limit``."""
        return MOVE_DUE(
            on, keys=[self.due, to], args=(now, most, -1 if limit is None else limit),
            decode=lambda reply: MovedDue(reply[1], MoveStop(reply[0].decode())),
        )

    # -- the dead ---------------------------------------------------------------------------------------------------

    def dead_letters(self, on: Valkey | Pipeline, first: int = 0, last: int = -1) -> Awaitable[list[DeadLetter]]:
        """Dead letters by place, oldest first."""
        return self.dead.range(on, first, last)

    def replay(self, on: ScriptRunner, most: int, *, at: float) -> Awaitable[int]:
        """Let up to ``most`` of the oldest dead letters wait again, due at ``at``; says how many."""
        return REPLAY(on, keys=[self.dead, self.due], args=(most, float(at)))

    def replay_chosen(self, on: ScriptRunner, *raw_letters: bytes, at: float) -> Awaitable[int]:
        """Let these dead letters, byte for byte as they lie there, wait again, due at ``at``; says how many.

        One atomic step, and each letter once, whoever else does the same. At most a few hundred at once: each is
        looked for among all.
        """
        return REPLAY_CHOSEN(on, keys=[self.dead, self.due], args=(float(at), *raw_letters), decode=int)

    async def _without_spoiled(
        self, on: ScriptRunner, claiming: Awaitable[DueItems[T]], now: float
    ) -> DueItems[T]:
        claimed = await claiming
        if claimed.spoiled:
            count_spoiled(self.due_key, claimed.spoiled)
            await BURY(on, keys=[self.due, self.dead, self.poison_key.at(**self.arguments)],
                       args=(self._rules.most_dead, *obituaries(claimed.spoiled, "", now)))
        return claimed

    def _encoded(self, member: T) -> bytes:
        return self.due_key.codec.encode(member)

    def _claimed(self, reply: Reply) -> DueItems[T]:
        items, spoiled = due_items(self.due_key.codec, reply)
        return DueItems(items, False, spoiled)


def _scripts(*verbs: str) -> tuple[str, ...]:
    return tuple(f"delayed/{verb}.lua" for verb in verbs)

"""Work list: a list of waiting items and a purgatory for each worker, so that no crash loses an item.

``docs/patterns/worklist.md`` says when to choose it and what it cannot promise.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Generic, TypeVar, Unpack

from keystead.engine import Pipeline, Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import AtMost, FlagKey, Keyspace, ListKey, ListRef, MapKey, SetKey, Sliding, Value
from keystead.keys.codecs import Of
from keystead.keys.executor import Executor
from keystead.patterns.derived import around
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.worklist_items import DeadLetter, DeadLetterCodec
from keystead.patterns.worklist_liveness import Liveness
from keystead.patterns.worklist_worker import Recovered, Rules, Worker

T = TypeVar("T")

PUSH_WITHIN = Script("keystead.patterns", "scripts/worklist/push_within.lua")
ADOPT = Script("keystead.patterns", "scripts/worklist/adopt.lua")
REPLAY = Script("keystead.patterns", "scripts/worklist/replay.lua")
REPLAY_CHOSEN = Script("keystead.patterns", "scripts/worklist/replay_chosen.lua")

ALIVE_SECONDS = 30.0
POISON_SECONDS = 7 * 86400.0
TRIES = 3


class WorkList(Generic[T]):
    """Items wait in a list, oldest left. A worker takes some into its purgatory and finishes exactly those.

    Declares, from the queue's name and that of the purgatory (``{queue}_purgatory`` unless given):

    - the queue, and ``{purgatory}`` of the default worker;
    - ``{purgatory}:{worker}`` and ``{purgatory}:{worker}:alive`` for workers with a name;
    - ``{queue}:workers``, ``{queue}:poison`` (crashes and failures by item) and ``{queue}:dead`` (dead letters).

    ``tries``: an item that its worker died with, or failed, so often becomes a dead letter. ``most_dead`` bounds the
    dead letters by dropping the oldest; 0 keeps all. A pattern with variables is used through ``at``.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, of: Of[T], *, purgatory: str = "", tries: int = TRIES,
        alive_seconds: float = ALIVE_SECONDS, poison_seconds: float = POISON_SECONDS, most_dead: int = 0,
        **facts: Unpack[PatternFacts],
    ) -> None:
        shelter = purgatory or purgatory_name(pattern)
        self._rules = Rules(tries, poison_seconds, alive_seconds, most_dead)
        self.dead_key: ListKey[DeadLetter] = ListKey(
            keyspace, f"{pattern}:dead", DeadLetterCodec(),
            **told(facts, "given up with the error, newest right",
                   scripts=_scripts("bury", "fail", "replay", "replay_chosen")),
        )
        self.queue_key: ListKey[T] = ListKey(
            keyspace, pattern, of, **told(facts, scripts=_scripts("take", "put_back", "adopt"), dead=self.dead_key)
        )
        self.purgatory_key: ListKey[T] = ListKey(keyspace, shelter, of, **told(
            facts, "taken by the default worker, not finished", scripts=_scripts("take", "finish", "settle", "recover"),
            dead=self.dead_key,
        ))
        self.worker_key: ListKey[T] = ListKey(keyspace, f"{shelter}:{{worker}}", of, **told(
            facts, "taken by one worker, not finished", scripts=_scripts("take", "finish", "settle", "adopt"),
            dead=self.dead_key,
        ))
        presence = _scripts("take", "leave", "adopt")
        self.alive_key = FlagKey(keyspace, f"{shelter}:{{worker}}:alive", **told(
            facts, "sign of life of one worker", scripts=presence, ttl=AtMost(alive_seconds), personal=False
        ))
        self.workers_key: SetKey[str] = SetKey(
            keyspace, f"{pattern}:workers", str, member="a worker's name",
            **told(facts, "workers that may hold items", scripts=presence, personal=False),
        )
        self.poison_key: MapKey[int] = MapKey(
            keyspace, f"{pattern}:poison", int, fields=("{sha1}", "crashed:{sha1}"),
            **told(
                facts, "crashes and failures by the SHA-1 of an item", scripts=_scripts("fail", "recover", "adopt"),
                ttl=Sliding(poison_seconds, reads=False), personal=False,
            ),
        )
        self._bind({} if not self.queue_key.template.names else None)

    def _bind(self, arguments: Mapping[str, str] | None) -> None:
        self._arguments = arguments
        # Every push asks for it, so it is made once.
        self._queue = None if arguments is None else self.queue_key.at(**arguments)

    def at(self, *variables: Value, **named: Value) -> "WorkList[T]":
        """The same list for these variables of its pattern."""
        bound: WorkList[T] = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound._bind(self.queue_key.template.bind(variables, named))
        return bound

    def trying(self, tries: int) -> "WorkList[T]":
        """The same list, where an item becomes a dead letter only after so many tries."""
        patient: WorkList[T] = object.__new__(type(self))
        patient.__dict__.update(self.__dict__)
        patient._rules = replace(self._rules, tries=tries)
        return patient

    @property
    def arguments(self) -> Mapping[str, str]:
        if self._arguments is None:
            raise DeclarationError(f"{self.queue_key.pattern} has variables: say which with at(...)")
        return self._arguments

    @property
    def queue(self) -> ListRef[T]:
        """The waiting items, as a key: for a script or transaction that pushes them itself."""
        return self._queue or self.queue_key.at(**self.arguments)

    @property
    def dead(self) -> ListRef[DeadLetter]:
        """The dead letters, newest right."""
        return self.dead_key.at(**self.arguments)

    # -- filling ----------------------------------------------------------------------------------------------------

    def push(self, on: Executor, *values: T) -> Awaitable[int]:
        """Append, in one step; returns the new length. For use inside a caller's transaction as well."""
        return self.push_raw(on, *map(self.queue_key.codec.encode, values))

    def push_raw(self, on: Executor, *raws: bytes) -> Awaitable[int]:
        """Append bytes as they are, for elements that were encoded elsewhere."""
        if not raws:
            raise DeclarationError(f"{self.queue_key.pattern}: there is nothing to push")
        return on.run(("RPUSH", self.queue.name(on.layout), *raws), int)

    def try_push(self, on: ScriptRunner, *values: T, limit: int) -> Awaitable[bool]:
        """Append all, or none if the queue would then hold more than ``limit``; says whether they were appended."""
        encode = self.queue_key.codec.encode
        return PUSH_WITHIN(on, keys=[self.queue], args=(limit, *map(encode, values)), decode=bool)

    # -- working ----------------------------------------------------------------------------------------------------

    def worker(self, name: str = "") -> Worker[T]:
        """A worker by name, with a purgatory and a sign of life of its own; without a name the default worker.

        The default worker is for a single runner at a time (under a lock): it has the documented purgatory and no
        sign of life, and nobody adopts what it holds.
        """
        arguments = self.arguments
        poison = self.poison_key.at(**arguments)
        if not name:
            purgatory = self.purgatory_key.at(**arguments)
            return Worker("", self.queue, purgatory, poison, self.dead, None, self._rules)
        named = {**arguments, "worker": name}
        purgatory = self.worker_key.at(**named)
        mark, workers = self.alive_key.at(**named), self.workers_key.at(**arguments)
        liveness = Liveness(name, purgatory, mark, workers, self._rules.alive_seconds)
        return Worker(name, self.queue, purgatory, poison, self.dead, liveness, self._rules)

    def adopt(
        self, on: ScriptRunner, *, now: float, given_up: ListRef[DeadLetter] | None = None
    ) -> Awaitable[Recovered]:
        """Return what dead workers hold to the front of the queue, each worker's items in their order.

        A worker is dead when its sign of life has expired. Items that crashed too often become dead letters, in another
        list of the same tag where ``given_up`` says so: for whoever has more to do before a letter is dead. One atomic
        step; any number may try at once. With 5,000 items it ends; more dead workers come with the next call.
        """
        arguments = self.arguments
        names = (
            *around(self.worker_key, "worker", arguments, on.layout),
            *around(self.alive_key, "worker", arguments, on.layout),
        )
        return ADOPT(
            on,
            keys=[self.queue, self.workers_key.at(**arguments), self.poison_key.at(**arguments), given_up or self.dead],
            args=(*names, *self._rules.of_crashes(now)),
            decode=lambda reply: Recovered(reply[1], reply[2], reply[0]),
        )

    def length(self, on: Valkey | Pipeline) -> Awaitable[int]:
        """How many wait; those in purgatory do not count."""
        return self.queue.length(on)

    # -- the dead ---------------------------------------------------------------------------------------------------

    def dead_letters(self, on: Valkey | Pipeline, first: int = 0, last: int = -1) -> Awaitable[list[DeadLetter]]:
        """Dead letters by place, oldest first."""
        return self.dead.range(on, first, last)

    def bury(self, on: Executor, value: T, *, error: str, now: float) -> None:
        """Add a dead letter, among the writes that settle an item which cannot be worked off."""
        self.dead.push_right(on, DeadLetter(self.queue_key.codec.encode(value), error[:1000], now))

    def replay(self, on: ScriptRunner, most: int) -> Awaitable[int]:
        """Return up to ``most`` of the oldest dead letters to the end of the queue; says how many."""
        return REPLAY(on, keys=[self.dead, self.queue], args=(most,))

    def replay_chosen(self, on: ScriptRunner, *raw_letters: bytes) -> Awaitable[int]:
        """Return these dead letters, byte for byte as they lie there, to the end of the queue; says how many.

        One atomic step, and each letter is returned once, whoever else does the same. At most a few hundred at once:
        each is looked for among all.
        """
        return REPLAY_CHOSEN(on, keys=[self.dead, self.queue], args=raw_letters, decode=int)


def purgatory_name(pattern: str) -> str:
    """The usual name; after a variable a colon is needed to tell the variable's end."""
    return f"{pattern}:purgatory" if pattern.endswith("}") else f"{pattern}_purgatory"


def _scripts(*verbs: str) -> tuple[str, ...]:
    return tuple(f"worklist/{verb}.lua" for verb in verbs)

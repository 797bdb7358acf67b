"""A channel: where its messages wait, by urgency; where they wait for another try; and what guards its provider."""

from collections.abc import Awaitable
from typing import Final, Generic, TypeVar, Unpack

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.keys import (
    FLOAT,
    AtMost,
    Executor,
    FlagKey,
    Keyspace,
    ListKey,
    ListRef,
    NoneUntilEnded,
    SortedSetKey,
    SortedSetRef,
    StringKey,
    StringRef,
)
from keystead.keys.codecs import Of
from keystead.messaging.sending.models import Lane, Outgoing
from keystead.messaging.sending.trace import trace
from keystead.patterns import Breaker, FailureShare, Once, PatternFacts, SmartLock, WorkList, Writes, once
from keystead.patterns.facts import told
from keystead.patterns.worklist_items import DeadLetter, DeadLetterCodec

T = TypeVar("T", bound=Outgoing)

MOVE_DUE = Script("keystead.patterns", "scripts/delayed/move_due.lua")

DAY_SECONDS: Final = 86_400
DECIDED_SECONDS: Final = 7 * DAY_SECONDS
PACE_AHEAD_SECONDS: Final = 3600
PROBE_SECONDS: Final = 30.0
LONGEST_PAUSE_SECONDS: Final = 3600
MOST_MOVED: Final = 100
_LANES: Final[dict[str, Lane]] = {lane.value: lane for lane in Lane}


class Channel(Generic[T]):
    """The keys of what one channel sends, declared from one name and that of its queue:

    - ``{queue}``, ``{queue}:high`` and ``{queue}:low``, with the purgatories and dead letters of a ``WorkList``;
    - ``{queue}:given_up``: what is about to become a dead letter, once its failure job is queued;
    - ``{channel}:retry``, and ``:high`` and ``:low`` of it: messages to be sent again, by the time they are due;
    - ``{channel}:inflight:{uid}``: the intent, written before the provider is asked and removed with the result;
    - ``{channel}:queued:{uid}``: seen, so that the same message is not queued twice within a day;
    - ``{channel}:decided:{step}:{uid}:{retry}``: what was decided after a failure;
    - ``{channel}:breaker``, ``{channel}:rate``, ``{channel}:paused`` for the provider, and the lock of a single run.
    """

    def __init__(
        self, keyspace: Keyspace, name: str, *, queue: str, of: Of[T], purgatory: str, lock: str,
        **facts: Unpack[PatternFacts],
    ) -> None:
        self.name = name
        self.work: WorkList[T] = WorkList(keyspace, queue, of, purgatory=purgatory, **facts)
        taken, moved = ("worklist/take_from.lua",), ("delayed/move_due.lua",)
        dead = self.work.dead_key
        self.given_up_key: ListKey[DeadLetter] = ListKey(keyspace, f"{queue}:given_up", DeadLetterCodec(), **told(
            facts, "given up, and its failure job not queued yet",
            scripts=("worklist/adopt.lua", "worklist/fail.lua", "worklist/recover.lua", "worklist/settle.lua"),
        ))
        lists = {lane: ListKey(keyspace, f"{queue}:{lane}", of, **told(facts, word, scripts=taken, dead=dead))
                 for lane, word in ((Lane.HIGH, "before the others"), (Lane.LOW, "after the others"))}
        self._lists: dict[Lane, ListRef[T]] = {
            lane: key.at() for lane, key in {Lane.NORMAL: self.work.queue_key, **lists}.items()
        }
        waits = "to be tried again when it is due"
        self._retries: dict[Lane, SortedSetKey[T]] = {
            lane: SortedSetKey(keyspace, f"{name}:retry{suffix}", of, member="a message",
                               score="unix time when it is due", **told(facts, waits, scripts=moved, dead=dead))
            for lane, suffix in ((Lane.NORMAL, ""), (Lane.HIGH, ":high"), (Lane.LOW, ":low"))
        }
        self.intent_key: StringKey[str] = StringKey(keyspace, f"{name}:inflight:{{uid}}", str, **told(
            facts, "the provider is being asked: number of the try, and which courier", ttl=AtMost(DAY_SECONDS),
            personal=False,
        ))
        self.queued_key = FlagKey(keyspace, f"{name}:queued:{{uid}}", **told(
            facts, "seen, and not to be queued again", ttl=AtMost(DAY_SECONDS), personal=False,
            scripts=("guarded/once.lua",),
        ))
        decided = f"{name}:decided:{{step}}:{{uid}}:{{retry}}"
        self.decided_key: StringKey[str] = StringKey(keyspace, decided, str, **told(
            facts, "what was decided after a failure", ttl=AtMost(DECIDED_SECONDS), personal=False,
            scripts=("sending/decide.lua",),
        ))
        self.breaker = Breaker(
            keyspace, f"{name}:breaker", trips=FailureShare(50, of_calls=20), probe_seconds=PROBE_SECONDS,
            **_of_provider(facts),
        )
        self.rate_key: StringKey[float] = StringKey(keyspace, f"{name}:rate", FLOAT, **told(
            facts, "when the next message may be sent", ttl=AtMost(2 * PACE_AHEAD_SECONDS), personal=False,
            scripts=("limits/reserve.lua",),
        ))
        self.paused_key = FlagKey(keyspace, f"{name}:paused", **told(
            facts, "nothing is taken while it is there", ttl=NoneUntilEnded(LONGEST_PAUSE_SECONDS), personal=False,
            scripts=taken,
        ))
        self.lock = SmartLock(keyspace, lock, **_of_provider(facts))

    # -- filling ----------------------------------------------------------------------------------------------------

    def waiting(self, lane: str = Lane.NORMAL) -> ListRef[T]:
        """The list of a lane, as a key."""
        return self._lists[lane_of(lane)]

    def push(self, on: Executor, item: T, lane: str = "") -> None:
        """Let a message wait in its lane, in a transaction or among the writes of someone else. Nobody is asked whether
        it was seen before."""
        self.waiting(lane or item.lane).push_right(on, item)

    def queue(
        self, valkey: ScriptRunner, item: T, *, writes: Writes, now: float, lane: str = "", limit: int | None = None,
        trace_seconds: float = 2 * DAY_SECONDS,
    ) -> Awaitable[Once]:
        """Let a message wait and do the room's writes with it, unless its uid was seen within a day or ``limit``
        messages wait in the lane already. One atomic step."""
        place = self.waiting(lane or item.lane)
        whole = Writes(valkey.layout).add(writes)
        place.push_right(whole, item)
        trace(whole, item.uid, "queued", now, kept_seconds=trace_seconds, channel=self.name, lane=lane or item.lane)
        return once(valkey, self.queued_key.at(item.uid), whole, limit=None if limit is None else (place, limit))

    def retry_later(self, on: Executor, item: T, due_at: float) -> None:
        """Let a message wait until it is due; then it goes to the end of its lane."""
        self._retries[lane_of(item.lane)].at().add(on, item, due_at)

    def retrying(self, lane: str = Lane.NORMAL) -> SortedSetRef[T]:
        """The messages of a lane that wait for another try, as a key."""
        return self._retries[lane_of(lane)].at()

    # -- for couriers -----------------------------------------------------------------------------------------------

    def move_due(self, on: ScriptRunner, lane: Lane, *, now: float) -> Awaitable[int]:
        """Return messages that are due to their lane; says how many."""
        return MOVE_DUE(on, keys=[self._retries[lane].at(), self._lists[lane]], args=(now, MOST_MOVED, -1),
                        decode=lambda reply: int(reply[1]))

    def next_due(self, on: Executor, lane: Lane) -> Awaitable[float | None]:
        """When the next message of a lane is to be tried again."""
        return self._retries[lane].at().lowest_score(on)

    @property
    def given_up(self) -> ListRef[DeadLetter]:
        """What is about to become a dead letter."""
        return self.given_up_key.at()

    def intent(self, uid: str) -> StringRef[str]:
        return self.intent_key.at(uid)

    async def asked_since(self, valkey: Executor, uid: str) -> float | None:
        """For how many seconds the intent of a message has been standing; None if there is none."""
        left = await self.intent(uid).remaining_seconds(valkey)
        return None if left is None else max(0.0, DAY_SECONDS - left)

    def decided(self, step: str, uid: str, retry: int) -> StringRef[str]:
        """Where it is noted what was decided after one failure."""
        return self.decided_key.at(step, uid, retry)

    # -- pausing ----------------------------------------------------------------------------------------------------

    def pause(self, on: Executor) -> Awaitable[None]:
        """Take nothing until ``resume``."""
        return on.run(("SET", self.paused_key.at().name(on.layout), b"1"), _nothing)

    def pause_for(self, on: Executor, seconds: float) -> Awaitable[None]:
        """Take nothing for a while, unless it is paused already."""
        milliseconds = max(1, round(min(seconds, LONGEST_PAUSE_SECONDS) * 1000))
        return on.run(("SET", self.paused_key.at().name(on.layout), b"1", "NX", "PX", milliseconds), _nothing)

    def resume(self, on: Executor) -> Awaitable[bool]:
        """Take again; says whether it was paused."""
        return self.paused_key.at().lower_flag(on)


def lane_of(name: str) -> Lane:
    """The lane of this name; a name that is none is the normal one, so that no message is stuck for it."""
    return _LANES.get(name, Lane.NORMAL)


def _of_provider(facts: PatternFacts) -> PatternFacts:
    return {"purpose": facts["purpose"], "writers": facts.get("writers", ()), "readers": facts.get("readers", ()),
            "tag": facts.get("tag")}


def _nothing(reply: object) -> None:
    return None

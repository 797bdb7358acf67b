"""Waiting in turn beside a plain model: random arrivals, departures, deaths and moves of the clock."""

import asyncio
import contextlib
import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from keystead.keys import Layout
from keystead.patterns import lock_leased
from keystead.patterns.lock_lease import LockLease, new_holder
from keystead.patterns.lock_leased import QUEUE_KEPT_SECONDS

from .lock_room import LEASE_SECONDS, LEASED, NUMBERED, patched
from .machines import ServerMachine, on_both, play

PEOPLE = range(4)
HANDOVER_SECONDS = 10.0
NEAR_SECONDS = 4.0  # an end so near is brought about, since the server's own time runs on while the test does


class Model:
    """Who holds the lock until when, and who waits in which order; only those who listen can be handed it."""

    def __init__(self) -> None:
        self.holder: int | None = None
        self.ends_at = math.inf
        self.queue: list[int] = []
        self.queue_ends_at = math.inf
        self.listening: set[int] = set()
        self.number = 0

    def give(self, who: int, now: float, seconds: float) -> None:
        self.holder, self.ends_at, self.number = who, now + seconds, self.number + 1

    def hand_over(self, now: float, me: int | None) -> None:
        while self.queue:
            head = self.queue.pop(0)
            if head == me or head in self.listening:
                self.give(head, now, LEASE_SECONDS if head == me else HANDOVER_SECONDS)
                return
        self.holder, self.ends_at = None, math.inf

    def ask(self, who: int, now: float) -> int | None:
        """None when taken, else how many are ahead."""
        if self.holder == who:
            self.ends_at = now + LEASE_SECONDS
            self.queue = [each for each in self.queue if each != who]
            return None
        if who not in self.queue:
            self.queue.append(who)
        self.queue_ends_at = now + QUEUE_KEPT_SECONDS
        if self.holder is None:
            self.hand_over(now, who)
        return None if self.holder == who else self.queue.index(who)

    def take(self, who: int, now: float) -> bool:
        if self.holder is None:
            self.give(who, now, LEASE_SECONDS)
        return self.holder == who

    def leave(self, who: int, now: float) -> bool:
        self.queue = [each for each in self.queue if each != who]
        if self.holder != who:
            return False
        self.hand_over(now, None)
        return True


@on_both
@pytest.mark.parametrize("lock", [LEASED.at("x"), NUMBERED.at("x")], ids=["unnumbered", "numbered"])
def test_waiting_in_turn_behaves_as_its_model(request: pytest.FixtureRequest, place: str, lock) -> None:
    who = st.sampled_from(PEOPLE)

    class Machine(ServerMachine):
        def __init__(self, url: str, servers: list) -> None:
            super().__init__(url, servers)
            self.model = Model()
            self.names = {person: new_holder() for person in PEOPLE}
            self.ears: dict[int, contextlib.AsyncExitStack] = {}
            self.patches = contextlib.ExitStack()
            self.patches.enter_context(patched(lock_leased, HANDOVER_SECONDS=HANDOVER_SECONDS))

        @rule(who=who)
        def listen(self, who: int) -> None:
            async def go() -> None:
                self.ears[who] = contextlib.AsyncExitStack()
                await self.ears[who].enter_async_context(self.client.hub().subscribe(lock.turn_of(self.names[who])))
            if who not in self.ears:
                self.run(go)
                self.model.listening.add(who)

        @rule(who=who)
        def die(self, who: int) -> None:
            """The process is gone: nobody listens, and nothing else is said."""
            async def go() -> None:
                channel = lock.turn_of(self.names[who]).name(self.client.layout)
                await self.ears.pop(who).aclose()
                verb = "NUMSUB" if self.client.layout is Layout.PLAIN else "SHARDNUMSUB"
                async with asyncio.timeout(20):
                    while any(server.call("PUBSUB", verb, channel)[1] for server in self.servers):
                        await asyncio.sleep(0.001)
            if who in self.ears:
                self.run(go)
                self.model.listening.discard(who)

        @rule(who=who, times=st.integers(1, 2))
        def ask(self, who: int, times: int) -> None:
            for _ in range(times):
                answer = self.run(lambda: lock.ask(self.client, self.names[who], now=self.clock.now()))
                ahead = self.model.ask(who, self.clock.now())
                if ahead is None:
                    assert isinstance(answer, LockLease)
                    assert answer.fence == (self.model.number if lock.fence else 0)
                else:
                    assert not isinstance(answer, LockLease) and answer.ahead == ahead

        @rule(who=who)
        def take_without_waiting(self, who: int) -> None:
            lease = self.run(lambda: lock.try_acquire(self.client, now=self.clock.now(), me=self.names[who]))
            assert (lease is not None) == self.model.take(who, self.clock.now())

        @rule(who=who, times=st.integers(1, 2))
        def leave(self, who: int, times: int) -> None:
            for _ in range(times):
                freed = self.run(lambda: lock.leave(self.client, self.names[who], now=self.clock.now()))
                assert freed == self.model.leave(who, self.clock.now())

        @rule(seconds=st.sampled_from([5.0, 10.0, 15.0, 35.0, 65.0]))
        def time_passes(self, seconds: float) -> None:
            self.clock.advance(seconds)
            now = self.clock.now() + NEAR_SECONDS
            if now >= self.model.ends_at:
                self.model.holder, self.model.ends_at = None, math.inf
                self.run(lambda: self.client.delete(lock.reference.name(self.client.layout)))
            if now >= self.model.queue_ends_at:
                self.model.queue, self.model.queue_ends_at = [], math.inf
                self.run(lambda: self.client.delete(self._queue_key()))

        def _queue_key(self) -> bytes:
            return lock._keys()[1].name(self.client.layout)

        @invariant()
        def holder_and_queue_are_those_of_the_model(self) -> None:
            async def look():
                return await lock.holder(self.client), await self.client.zrange(self._queue_key(), 0, -1)

            holder, queue = self.runner.run(look())
            uid = None if self.model.holder is None else self.names[self.model.holder][:-1].rpartition(b'"')[2].decode()
            assert (None if holder is None else holder.uid) == uid
            assert queue == [self.names[person] for person in self.model.queue]

        def teardown(self) -> None:
            for ears in self.ears.values():
                self.run(ears.aclose)
            super().teardown()
            self.patches.close()

    play(request, place, Machine, examples=40, steps=30)

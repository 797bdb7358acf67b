"""Random lives of push messages: whatever happens, each is in one place, counted, and ends once."""

import random

import pytest

from keystead.messaging.push.keys import SENDING
from keystead.messaging.push.models import FailureInfo, Identifier

from ..sending.mortal import MortalClient, has_died
from .room import Room

FAILURES = [FailureInfo("send", identifier, retryable) for identifier, retryable in (
    (Identifier.NETWORK, True), (Identifier.SERVER, True), (Identifier.CLIENT_OTHER, False),
)]
FATES = ["ok", "ok", "ok", None, "DeviceNotRegistered", "MessageRateExceeded", "SomethingNew"]
LOCKS = ("push:send_job:lock", "push:ticket_hot_to_cold:lock", "push:check_job:lock")


class Life:
    """One room, random steps, and the uids that were queued."""

    def __init__(self, room: Room, rng: random.Random) -> None:
        self.room, self.rng, self.queued = room, rng, []

    async def queue(self) -> None:
        token = f"ExponentPushToken[d{self.rng.randrange(5)}]"
        lane = self.rng.choice(("high", "normal", "low"))
        self.queued.append(await self.room.queue(token, uid=f"pma_{len(self.queued)}", lane=lane))

    async def send(self) -> None:
        if self.rng.random() < 0.3:
            self.room.provider.answers.append(self.rng.choice(FAILURES))
        await self._run("courier")
        self.room.provider.answers.clear()
        # A breaker that opened would make most lives dull.
        await SENDING.breaker.calls.at().delete(self.room.valkey)
        await SENDING.breaker.probe.at().delete(self.room.valkey)

    async def move(self) -> None:
        await self._run("cold_to_hot")

    async def check(self) -> None:
        for device in range(5):
            self.room.provider.fates[f"ExponentPushToken[d{device}]"] = self.rng.choice(FATES)
        if self.rng.random() < 0.2:
            self.room.provider.receipt_answers.append(FailureInfo("check", Identifier.SERVER, True))
        await self._run("check")
        self.room.provider.receipt_answers.clear()

    async def jobs(self) -> None:
        await self.room.run_jobs(times=self.rng.choice((1, 2)))

    async def advance(self) -> None:
        self.room.clock.advance(self.rng.choice((1.0, 60.0, 901.0, 2000.0)))

    async def _run(self, which: str) -> None:
        """By a process that dies at some exchange, now and then; then by one that does not."""
        if self.rng.random() < 0.3:
            mortal = MortalClient(self.room.valkey, self.rng.randrange(1, 20), after=self.rng.random() < 0.5)
            try:
                await getattr(self.room.with_client(mortal), which)().run()
            except BaseException as error:
                if not has_died(error):
                    raise
            await self.room.valkey.delete(*LOCKS)
        await getattr(self.room.workers, which)().run()


@pytest.mark.parametrize("seed", range(12))
async def test_after_every_step_each_message_is_in_one_place_and_counted(valkey, seed):
    room = Room(valkey)
    life = Life(room, random.Random(seed))
    steps = [life.queue, life.send, life.send, life.move, life.check, life.jobs, life.advance]
    for _ in range(50):
        await life.rng.choice(steps)()
        await room.check_all()
    # Whatever is still on its way ends, once the provider is well again.
    room.provider.fates = {}
    for _ in range(12):
        room.clock.advance(3700.0)
        await room.workers.courier().run()
        await room.run_jobs()
        room.clock.advance(901.0)
        await room.workers.cold_to_hot().run()
        await room.workers.check().run()
        await room.run_jobs()
        await room.check_all()
    assert await room.places() == {}
    arrived = {success.attempt.uid for success in room.succeeded}
    failed = {failure.attempt.uid for failure, settled in room.failed if settled.is_over}
    assert arrived | failed == set(life.queued) and not arrived & failed

"""Whole lives of email: couriers that die at any point, and random steps after each of which everything must hold."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from keystead.engine import Valkey
from keystead.jobs import AfterFailure
from keystead.messaging.email.gateway import NotAccepted
from keystead.messaging.email.models import Bounce, BounceReason, Complaint, Delivery
from keystead.messaging.email.stats import EVENTS, SENDS
from keystead.store import Database
from tests.messaging.sending.mortal import has_died, lives

from .room import ADA, DOWN, LOST, REJECTED, Room, on_sqlite

pytestmark = on_sqlite


@pytest_asyncio.fixture
async def room(server: Valkey, database: Database) -> Room:
    """On one server, and on the cluster."""
    return Room(server, database)



async def drain(room: Room, count: int = 0, rounds: int = 6) -> None:
    """Let everything come to its end, or so many email; the steps are longer than it is waited for news."""
    for _ in range(rounds):
        await room.send()
        room.later(6)  # so that news are not looked for again and again
        await room.reconcile()
        await room.run_jobs()
        if count and len(room.succeeded) >= count:
            return
        await room.let_pass(700)
        await room.sweep()


async def test_a_courier_that_dies_at_any_point_sends_nothing_twice_and_loses_nothing(room: Room) -> None:
    """The provider tells of each email that it took, with our uid; so whatever was sent is found out."""

    async def tell(mail: Any, message_id: str) -> None:
        await room.tell(message_id, Delivery(), uid=mail.uid)

    async for mortal in lives(room.valkey):
        for node in await room.valkey.nodes():
            await node.call(("FLUSHALL",))
        room.provider.before_answer = tell
        room.provider.sent.clear()
        room.succeeded.clear()
        uids = [await room.queue() for _ in range(2)]
        dying = replace(room.workers, valkey=mortal).courier(hostname="dying")  # type: ignore[arg-type]
        try:
            await dying._run()
        except BaseException as error:
            assert has_died(error), error
        await drain(room, 2)
        assert sorted(mail.uid for mail in room.provider.sent) == sorted(uids)
        assert sorted(told.email.uid for told in room.succeeded) == sorted(uids) and room.failed == []
        assert await room.pending() == {}
        if not mortal.dead:
            return


NEWS: list[Any] = [Delivery(), Bounce(BounceReason("Transient", "General"), [ADA], [ADA]), Complaint("abuse", [], [])]


@pytest.mark.parametrize("seed", range(4))
async def test_after_every_step_of_a_random_life_everything_holds(room: Room, seed: int) -> None:
    rng = random.Random(seed)
    queued: set[str] = set()
    ended: Counter[str] = Counter()
    ids: list[str] = []

    def finals() -> Counter[str]:
        over = Counter(told.email.uid for told in room.succeeded)
        over.update(failure.email.uid for failure, after in room.failed if after is not AfterFailure.RETRY)
        return over

    async def queue() -> None:
        to = f"person{rng.randrange(1000)}@example.com"
        template = rng.choice(["code", "code", "missing"])
        queued.add(await room.queue(to, template, lane=rng.choice(["high", "normal", "low"])))

    async def send() -> None:
        answers: list[NotAccepted] = [DOWN, REJECTED, LOST]
        if rng.random() < 0.5:
            room.provider.answers.append(rng.choice(answers))
        before = len(room.provider.sent)
        await room.send()
        room.provider.answers.clear()
        ids.extend(f"m-{number}" for number in range(before, len(room.provider.sent)))

    async def tell() -> None:
        message_id = rng.choice([*ids, "unknown"])
        uid = room.provider.sent[int(message_id[2:])].uid if message_id in ids and rng.random() < 0.8 else ""
        await room.tell(message_id, rng.choice(NEWS), uid=uid, sns_id=f"sns-{rng.random()}")
        room.later(6)

    async def later() -> None:
        await room.let_pass(rng.choice([1.0, 40.0, 700.0, 3600.0]))

    steps = [queue, queue, send, send, tell, tell, room.reconcile, room.sweep, room.run_jobs, later]
    for _ in range(60):
        await rng.choice(steps)()
        await room.pending()  # fails where index and records are out of step
        now_ended = finals()
        assert not now_ended or max(now_ended.values()) == 1, "each uid ends once"
        assert now_ended.keys() <= queued and ended.keys() <= now_ended.keys()
        ended = now_ended
        counted = await room.counted(SENDS)
        failed = sum(sum(counted.get(kind, {}).values()) for kind in ("failed_permanently", "failed_transiently"))
        assert counted.get("attempted", 0) == sum(counted.get("accepted", {}).values()) + failed
        await room.counted(EVENTS)
    await room.let_pass(86_400)
    for _ in range(3):
        await drain(room)
        await room.let_pass(86_400)
    assert set(finals()) == queued, "each comes to its end"
    assert await room.pending() == {}
    assert not [name for name in await room.names() if name.startswith(("email:early:", "email:inflight:"))]

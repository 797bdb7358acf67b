"""Deaths at any point of any job: no text is lost, none is called back twice, none is sent twice (acceptance 2)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import parse_qs

import pytest

from keystead.engine import connect
from keystead.messaging.sms import Failures, Settled, SmsFailure
from keystead.messaging.sms.keys import (
    EARLY,
    NEWS,
    PENDING,
    RECONCILIATION_LOCK,
    RECOVERY,
    RECOVERY_LOCK,
    SENDING,
    STALE_LOCK,
)
from keystead.messaging.sms.models import FailureInfo, Identifier
from keystead.messaging.sms.stats import POLLING, SENDS
from keystead.messaging.sms.statuses import Status
from keystead.testing.server import LocalServer

from ...patterns.crash import Died, crash_points
from .mortal import Fate
from .room import NOON, NUMBER, Room

Step = Callable[[Room], Awaitable[object]]
TEXTS = 2


async def fates(most: int = 200) -> AsyncIterator[Fate]:
    for at in range(1, most):
        for after in (False, True):
            yield Fate(at, after=after)
    raise AssertionError(f"the job did not end within {most} calls")


async def sent(room: Room) -> None:
    await room.send()


async def told(room: Room) -> None:
    """One arrived, one failed; with news that is late, and of nobody."""
    await room.send()
    for place, sid in enumerate(room.provider.messages):
        for status in ("queued", "accepted", "undelivered" if place == 1 else "delivered", "sent"):
            uid = parse_qs(room.provider.messages[sid].callback_url.partition("?")[2])["uid"][0]
            await room.tell(sid, status, uid=uid)


async def without_news(room: Room) -> None:
    await room.send()
    room.clock.advance(900)


async def to_recover(room: Room) -> None:
    await without_news(room)
    await room.find_stale()
    await room.run_jobs()
    for held in list(room.provider.messages.values())[:1]:
        held.status, held.updated_at = Status.DELIVERED, NOON + 100


async def nothing(room: Room) -> None:
    return None


JOBS: dict[str, tuple[Step, Step]] = {
    "send": (nothing, lambda room: room.send()),
    "reconcile": (told, lambda room: room.reconcile()),
    "find stale": (without_news, lambda room: room.find_stale()),
    "recover": (to_recover, lambda room: room.recover()),
}


async def restart(room: Room) -> None:
    """The locks of a dead process are freed by time; here at once."""
    for lock in (SENDING.lock, STALE_LOCK, RECOVERY_LOCK, RECONCILIATION_LOCK):
        await lock.at().reference.delete(room.valkey)


async def drain(room: Room) -> None:
    """Let everything come to its end: whoever has no news by now is asked about."""
    for _ in range(12):
        await room.send()
        await room.reconcile()
        await room.run_jobs()
        await room.check_all()
        if not await PENDING.size(room.valkey) and not await _left(room):
            return
        room.clock.advance(900)
        for held in room.provider.messages.values():
            if held.status is Status.ACCEPTED:
                held.status, held.updated_at = Status.DELIVERED, room.clock.now()
        await room.find_stale()
        await room.run_jobs()
        await room.recover()
    raise AssertionError("something never came to its end")


async def _left(room: Room) -> list[int]:
    lists = (NEWS.queue, RECOVERY.queue, SENDING.work.queue, SENDING.work.dead, NEWS.dead, RECOVERY.dead)
    sizes = [await place.length(room.valkey) for place in lists]
    sizes += [await EARLY.at().size(room.valkey), await room.valkey.zcard("sms:retry")]
    return [size for size in sizes if size]


@pytest.mark.parametrize("job", JOBS)
async def test_death_at_any_call_loses_no_text_and_repeats_none(job: str, valkey_server: LocalServer) -> None:
    before, work = JOBS[job]
    deaths = 0
    valkey_server.ensure_running()
    valkey = await connect(valkey_server.url)
    async for fate in fates():
        valkey_server.call("FLUSHALL")
        room = Room(valkey)
        uids = [await room.queue(f"Hello {place}") for place in range(TEXTS)]
        await before(room)
        mortal = fate.of(await connect(valkey_server.url))
        dying = Room(mortal)
        dying.clock, dying.provider = room.clock, room.provider
        dying.workers = dying.with_gateway(room.provider)
        room.provider.create = fate.over(type(room.provider).create.__get__(room.provider))  # type: ignore[method-assign]
        room.provider.read = fate.over(type(room.provider).read.__get__(room.provider))  # type: ignore[method-assign]
        try:
            await work(dying)
        except (Died, BaseExceptionGroup):
            assert fate.struck
        finally:
            await asyncio.shield(_closed(mortal, fate))
        del room.provider.create, room.provider.read
        if not fate.struck:
            break
        deaths += 1
        await room.pending()
        await restart(room)
        await drain(room)
        ended = [success.sms.uid for success in room.succeeded]
        ended += [failure.sms.uid for failure, settled in room.failed if settled.is_over]
        assert sorted(ended) == sorted(uids), (fate._at, fate._after)
        assert sorted(held.body for held in room.provider.messages.values()) == [f"Hello {n}" for n in range(TEXTS)]
    await valkey.aclose()
    assert deaths >= 8


async def _closed(mortal: object, fate: Fate) -> None:
    fate.struck, struck = False, fate.struck
    fate._at = 0
    await mortal.aclose()  # type: ignore[attr-defined]
    fate.struck = struck


@pytest.mark.parametrize("kind", ["send", "pending"])
async def test_a_failure_job_that_dies_anywhere_decides_once(kind: str, valkey_server: LocalServer) -> None:
    valkey_server.ensure_running()
    valkey = await connect(valkey_server.url)
    async for mortal in crash_points(valkey):
        valkey_server.call("FLUSHALL")
        room = Room(valkey)
        if kind == "send":
            info = FailureInfo("send", Identifier.SERVER, "500", True)
            failure = SmsFailure(room.sms.outgoing(NUMBER, "Hello"), info)
        else:
            await room.queue()
            await without_news(room)
            await room.find_stale()
            (record,) = (await room.pending()).values()
            failure = SmsFailure(record.nested(), FailureInfo("pending", Identifier.STUCK, None, True))
        with contextlib.suppress(Died):
            await Failures(mortal, room.clock).settle(failure)  # type: ignore[arg-type]
        assert await room.failures.settle(failure) is Settled.RETRIED
        if kind == "send":
            assert await room.counted(SENDS) == {"retried": 1}
        else:
            assert (await room.counted(POLLING))["queued_for_recovery"] == {"0": 1}
            assert await RECOVERY.length(valkey) == 1
        if not mortal.dead:
            break
    await valkey.aclose()

"""A touch ends once: well with the first destination that is reached, badly with the last that fails."""

import asyncio
from itertools import permutations

import pytest

from keystead.engine import Valkey
from keystead.ids import new_uid
from keystead.messaging.touches.keys import PENDING, QUEUED, REMAINING, TO_LOG
from keystead.messaging.touches.models import LogEntry, Touch
from keystead.messaging.touches.pending import Ended, open_pending
from keystead.patterns import Writes, once

from .room import ON_FAILURE, ON_SUCCESS, Room, on_sqlite

pytestmark = on_sqlite
ROW = LogEntry("user_touch_debug_log", "insert", {"uid": "x"})


def a_touch(uid: str = "tch_1", **given) -> Touch:
    facts = {"success_callback": ON_SUCCESS, "failure_callback": ON_FAILURE, **given}
    return Touch(uid, "ada", "hello_there", "sms", {}, queued_at=1.0, **facts)


async def opened(valkey: Valkey, touch: Touch, messages: list[str], now: float = 10.0) -> bool:
    writes = Writes(valkey.layout)
    waits = open_pending(writes, touch, messages, now)
    if waits:
        await write(valkey, writes)
    return waits


async def write(valkey: Valkey, writes: Writes) -> None:
    """Do writes that nothing guards."""
    await once(valkey, QUEUED.at(new_uid("test")), writes)


def row(valkey: Valkey) -> Writes:
    writes = Writes(valkey.layout)
    TO_LOG.queue.push_right(writes, ROW)
    return writes


async def parts(valkey: Valkey, uid: str) -> tuple[bool, bool, bool]:
    return (await PENDING.index.score(valkey, uid) is not None, await PENDING.record(uid).exists(valkey),
            await REMAINING.at(uid).exists(valkey))


async def test_a_touch_without_callbacks_does_not_wait(wide_room: Room):
    assert not await opened(wide_room.valkey, a_touch(success_callback=None, failure_callback=None), ["a"])
    assert await parts(wide_room.valkey, "tch_1") == (False, False, False)


async def test_fail_succeed_fail_gives_one_success_callback(wide_room: Room):
    valkey, pending = wide_room.valkey, wide_room.pending
    assert await opened(valkey, a_touch(), ["a", "b", "c"])
    assert await pending.failed("tch_1", "a", row(valkey), 11.0) is Ended.OTHERS_REMAIN
    assert await parts(valkey, "tch_1") == (True, True, True)
    assert await pending.succeeded("tch_1", row(valkey), 12.0) is Ended.NOW
    assert await pending.failed("tch_1", "c", row(valkey), 13.0) is Ended.BEFORE
    assert await pending.succeeded("tch_1", row(valkey), 14.0) is Ended.BEFORE
    assert await parts(valkey, "tch_1") == (False, False, False)
    assert await wide_room.callbacks() == ["shop.reached"]
    assert await TO_LOG.length(valkey) == 4, "the log is written in any case"


async def test_three_failures_give_one_failure_callback(wide_room: Room):
    valkey, pending = wide_room.valkey, wide_room.pending
    await opened(valkey, a_touch(), ["a", "b", "c"])
    outcomes = [await pending.failed("tch_1", one, row(valkey), 11.0) for one in ("a", "a", "b", "c", "c")]
    others, now, before = Ended.OTHERS_REMAIN, Ended.NOW, Ended.BEFORE
    assert outcomes == [others, others, others, now, before]
    assert await wide_room.callbacks() == ["shop.missed"]


async def test_success_and_last_failure_racing_give_exactly_one_callback(wide_room: Room):
    valkey, pending = wide_room.valkey, wide_room.pending
    for turn in range(20):
        await opened(valkey, a_touch(f"tch_{turn}"), ["a"])
        await asyncio.gather(
            pending.succeeded(f"tch_{turn}", row(valkey), 11.0), pending.failed(f"tch_{turn}", "a", row(valkey), 11.0),
            pending.succeeded(f"tch_{turn}", row(valkey), 11.0), pending.failed(f"tch_{turn}", "a", row(valkey), 11.0),
        )
    assert len(await wide_room.callbacks()) == 20


async def test_callback_arguments_come_out_as_they_went_in(wide_room: Room):
    """An empty list stays a list, and no digit of a number is lost."""
    arguments = {"codes": [], "nothing": {}, "price": 0.1, "large": 9007199254740993, "tiny": 1e-17, "text": "é\u2028"}
    callback = type(ON_SUCCESS)("shop.reached", arguments)
    await opened(wide_room.valkey, a_touch(success_callback=callback), ["a"])
    await wide_room.pending.succeeded("tch_1", row(wide_room.valkey), 12.5)
    (record,) = await wide_room.jobs()
    assert record.kwargs == arguments and record.queued_at == 12.5


async def test_a_callback_goes_to_the_queue_it_names(wide_room: Room):
    callback = type(ON_FAILURE)("touch.abandon_links", {"codes": ["a"]}, "keystead")
    await opened(wide_room.valkey, a_touch(failure_callback=callback), ["a"])
    await wide_room.pending.failed("tch_1", "a", row(wide_room.valkey), 12.5)
    assert [record.name for record in await wide_room.jobs("keystead")] == ["touch.abandon_links"]
    assert not await wide_room.jobs()


@pytest.mark.parametrize("missing", ["index", "record", "remaining"])
async def test_what_is_left_of_a_broken_touch_is_removed_without_a_callback(room: Room, missing: str):
    valkey = room.valkey
    for step in ("succeeded", "failed", "drop"):
        await opened(valkey, a_touch(), ["a"])
        if missing == "index":
            await PENDING.index.remove(valkey, "tch_1")
        else:
            await (PENDING.record("tch_1") if missing == "record" else REMAINING.at("tch_1")).delete(valkey)
        if step == "succeeded":
            await room.pending.succeeded("tch_1", row(valkey), 11.0)
        elif step == "failed":
            await room.pending.failed("tch_1", "a", row(valkey), 11.0)
        else:
            await room.pending.drop("tch_1", Writes(valkey.layout), 11.0, "stale")
        assert await parts(valkey, "tch_1") == (False, False, False)
    assert not await room.callbacks()


async def test_every_order_of_three_destinations_gives_one_callback(room: Room):
    valkey, expected = room.valkey, []
    for number, order in enumerate(permutations([("a", True), ("b", False), ("c", False)])):
        uid = f"tch_{number}"
        await opened(valkey, a_touch(uid), ["a", "b", "c"])
        for message, good in order:
            if good:
                await room.pending.succeeded(uid, row(valkey), 1.0)
            else:
                await room.pending.failed(uid, message, row(valkey), 1.0)
        expected.append("shop.reached")
    assert await room.callbacks() == expected

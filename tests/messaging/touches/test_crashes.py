"""A process that dies between any two of its calls loses no touch, and sends none twice."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from keystead.engine import Pipeline, Valkey
from keystead.messaging.touches.keys import PENDING, TO_LOG, TO_SEND
from keystead.messaging.touches.models import Touch
from tests.patterns.crash import Died

from .room import Room, on_sqlite

pytestmark = on_sqlite
MOST_CALLS = 120


class Fate:
    """Lets the process die at its ``at``-th call, before that reached the server or after."""

    def __init__(self, at: int, after: bool) -> None:
        self._left, self._after, self.dead = at, after, False

    async def call(self, made: Callable[[], Awaitable[Any]]) -> Any:
        if self.dead:
            raise Died
        self._left -= 1
        if self._left == 0:
            if self._after:
                await made()
            self.dead = True
            raise Died
        return await made()


@contextmanager
def mortal(monkeypatch: pytest.MonkeyPatch, fate: Fate) -> Iterator[None]:
    """Every call of every client in the block is subject to the fate."""
    with monkeypatch.context() as patched:
        for owner, name in ((Valkey, "run"), (Valkey, "run_block"), (Valkey, "run_script"), (Pipeline, "execute")):
            whole = getattr(owner, name)

            def call(self: Any, *given: Any, _whole: Any = whole, **named: Any) -> Awaitable[Any]:
                return fate.call(lambda: _whole(self, *given, **named))

            patched.setattr(owner, name, call)
        yield


async def lives(room: Room) -> AsyncIterator[Fate]:
    """Fates that strike ever later; the last one never does."""
    for at in range(1, MOST_CALLS):
        for after in (False, True):
            await room.valkey.flushall()
            yield Fate(at, after)
    raise AssertionError("the operation did not end")


async def until_it_ends(
    room: Room, monkeypatch: pytest.MonkeyPatch, before: Callable[[], Awaitable[None]],
    operation: Callable[[], Awaitable[Any]], after: Callable[[], Awaitable[None]],
) -> int:
    """Die at every call of the operation, each time with a fresh server; ``after`` mends and checks."""
    died = 0
    async for fate in lives(room):
        await before()
        with mortal(monkeypatch, fate):
            try:
                await operation()
            except Died:
                died += 1
            except BaseExceptionGroup as group:
                assert group.subgroup(Died), group
                died += 1
        await after()
        if not fate.dead:
            return died
    raise AssertionError


async def test_a_dispatcher_that_dies_anywhere_loses_and_repeats_nothing(room: Room, monkeypatch):
    await room.point()
    await room.person("ada", phones=["+15005550001", "+15005550002"])
    touches: list[Touch] = []

    async def before() -> None:
        touches[:] = [room.touch("ada", lane="high") for _ in range(3)] + [
            room.touch("nobody"), room.touch("ada", "nobody_knows")]
        await room.touches.queue_many(touches)

    async def after() -> None:
        await room.valkey.delete("touch:send_job:lock")
        await room.dispatcher.run()
        sent = Counter(sms.success_job.kwargs["touch_uid"] for sms in await room.texts("high"))
        assert sent == {touch.uid: 2 for touch in touches[:3]}
        assert await PENDING.size(room.valkey) == 3 and await room.callbacks() == ["shop.missed"] * 2
        assert await room.counted() == {
            "queued": 5, "attempted": 5, "reachable": 3, "unreachable": 1, "improper": 1}
        assert not await TO_SEND.length(room.valkey) and not await room.valkey.exists("touch:send_purgatory")
        assert await TO_LOG.length(room.valkey) == 10

    assert await until_it_ends(room, monkeypatch, before, room.dispatcher.run, after) > 10


async def test_a_log_writer_that_dies_anywhere_writes_each_row_once(room: Room, monkeypatch):
    await room.point(strategy="fixed")
    await room.person("ada", phones=["+15005550001"])
    known: set[str] = set()

    async def before() -> None:
        known.update(row.uid for row in await room.rows_of_log())
        await room.send("ada", lane="high")
        await room.dispatcher.run()

    async def after() -> None:
        await room.valkey.delete("touch:log_job:lock")
        await room.log_job.run()
        assert not await TO_LOG.length(room.valkey) and not await room.valkey.exists("touch:log_purgatory")
        rows = [row for row in await room.rows_of_log() if row.uid not in known]
        assert [row.event["type"] for row in rows] == ["send_attempt", "send_reachable"]
        assert rows[1].event["parent"] == rows[0].uid

    assert await until_it_ends(room, monkeypatch, before, room.log_job.run, after) > 6
    (state,) = await room.states()
    assert state.version > 6, "each turn moved it on by one"


@pytest.mark.parametrize("good", [True, False])
async def test_a_handler_that_dies_anywhere_and_runs_again_ends_its_touch_once(room: Room, monkeypatch, good: bool):
    await room.point()
    await room.person("ada", phones=["+15005550001"])

    async def before() -> None:
        await room.send("ada", lane="high")
        await room.dispatcher.run()

    async def operation() -> None:
        (sms,) = await room.texts("high")
        await (room.succeed(sms) if good else room.fail(sms))

    async def after() -> None:
        await operation()
        assert await room.callbacks() == ["shop.reached" if good else "shop.missed"]
        assert not await PENDING.size(room.valkey)

    assert await until_it_ends(room, monkeypatch, before, operation, after) >= 3

"""Whoever moves links to the database may die between any two steps: nothing is lost, nothing is there twice."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from keystead.jobs import BatchJob, SweepJob
from keystead.messaging.links import ClickOutcome, TrackType
from keystead.messaging.links.delayed_clicks import DelayedClicks
from keystead.messaging.links.keys import DELAYED_LOCK, LEAK_LOCK, PERSIST_LOCK, TO_PERSIST
from keystead.messaging.links.leaks import Leaks
from keystead.messaging.links.persister import Persister
from keystead.messaging.links.stats import LINKS_COUNTED

from ...patterns.crash import Died
from .room import Room, on_sqlite

Job = BatchJob[str] | SweepJob


class Doom:
    """The process dies at its n-th step towards the server or the database: before it, or after it was done."""

    def __init__(self, patch: pytest.MonkeyPatch, room: Room, at: int, *, after: bool) -> None:
        self._left, self._after, self.dead = at, after, False
        for name in ("run", "run_block", "run_script"):
            patch.setattr(room.valkey, name, self._mortal(getattr(room.valkey, name)))
        pipeline, transaction = room.valkey.pipeline, room.database.transaction

        def mortal_pipeline(*args: Any, **named: Any) -> Any:
            made = pipeline(*args, **named)
            made.execute = self._mortal(made.execute)
            return made

        @asynccontextmanager
        async def mortal_transaction() -> AsyncIterator[Any]:
            self._step(after=False)
            async with transaction() as sql:
                yield sql
            self._step(after=True)

        patch.setattr(room.valkey, "pipeline", mortal_pipeline)
        patch.setattr(room.database, "transaction", mortal_transaction)

    def _step(self, *, after: bool) -> None:
        if self.dead:
            raise Died
        if not after:
            self._left -= 1
        if self._left == 0 and after is self._after:
            self.dead = True
            raise Died

    def _mortal(self, real: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            async def go() -> Any:
                self._step(after=False)
                answer = await real(*args, **named)
                self._step(after=True)
                return answer

            return go()

        return call


async def a_full_room(room: Room, number: int) -> tuple[set[str], set[str]]:
    """Links in the buffer with clicks and a login, one whose message never comes, one with clicks that are delayed;
    says which links and clicks must be rows in the end."""
    touch = f"tch_{number}"
    await room.touch(touch)
    links = [await room.link(touch) for _ in range(3)]
    lost = await room.link(f"tch_never_{number}")
    clicks: set[str] = set()

    async def click(code: str, outcome: ClickOutcome) -> None:
        first = await room.links.click(code, limited=False)
        login = await room.links.click(code, track_type=TrackType.POST_LOGIN, parent_uid=first.click_uid)
        assert first.outcome is login.outcome is outcome
        clicks.update((first.click_uid, login.click_uid))

    for link in links[:2]:
        await click(link.code, ClickOutcome.BUFFERED)
    await room.links.persist(links[2].code)
    room.clock.advance(1800)
    await TO_PERSIST.worker().take(room.valkey, 1, now=room.clock.now())
    await click(links[2].code, ClickOutcome.DELAYED)
    for link in (links[0], lost):
        await room.links.persist(link.code)
    return {link.code for link in links}, clicks


async def finish(room: Room) -> None:
    """Later runs, that live."""
    for lock in (PERSIST_LOCK, DELAYED_LOCK, LEAK_LOCK):  # the host that died comes back much later
        await room.valkey.delete(lock.key.at().name(room.valkey.layout))
    for seconds in (0, 1800, 37 * 3600):
        room.clock.advance(seconds)
        for job in (Persister, DelayedClicks, Leaks):
            assert await job(room.valkey, room.clock, room.database).run() is not None


async def check_counts(room: Room) -> None:
    today = LINKS_COUNTED.day_of(room.clock.now())
    for day in await LINKS_COUNTED.read_range(room.valkey, today - 5, today):
        for identity in LINKS_COUNTED.identities:
            assert identity.check(day.counts) is None, day


@on_sqlite
@pytest.mark.parametrize(("job", "waits"), [(Persister, 1800), (DelayedClicks, 1800), (Leaks, 37 * 3600)])
async def test_nothing_is_lost_or_doubled_wherever_a_job_dies(
    room: Room, job: Callable[..., Job], waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, points = 0, 0
    for at in range(1, 100):
        for after in (False, True):
            number += 1
            await room.valkey.flushall()
            links, clicks = await a_full_room(room, number)
            if job is DelayedClicks:
                await Persister(room.valkey, room.clock, room.database).run()
            room.clock.advance(waits)
            with monkeypatch.context() as patch:
                doom = Doom(patch, room, at, after=after)
                try:
                    await job(room.valkey, room.clock, room.database).run()
                except Died:
                    points += 1
            await finish(room)
            stored = await room.stored_clicks()
            assert links <= set(await room.stored_links())
            assert clicks <= set(stored), f"died at step {at}, after it: {after}"
            await check_counts(room)
            left = {key for key in await room.valkey.keys("touch_links:*") if b"poison" not in key}
            assert left == set()
        if not doom.dead:
            assert points >= 10, "it must have died at every step"
            return
    raise AssertionError("the job does not end")

"""The smart lock against its table of answers, and against a plain model of it."""

import asyncio
import json
import math
from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.errors import Invalid, Unavailable
from keystead.keys import Layout
from keystead.patterns import lock_smart
from keystead.patterns.lock import LockHeld, LockLost
from keystead.patterns.lock_smart import LockFlavour, SmartAttempt, SmartRelease, new_lock_id

from .crash import Died, Mortal
from .lock_room import REGISTRY, SMART, WEB, patched
from .machines import ServerMachine, on_both, play

NOW = 1_700_000_000.0
HOUR = 3600


async def state(server: Valkey, lock=None) -> tuple[object, float]:
    key = (lock or SMART.at("send")).reference.name(server.layout)
    raw, left = await server.get(key), await server.ttl(key)
    return (None if raw is None else raw.decode()), left


def about(seconds: int) -> object:
    """An expiry that a slow machine looks at late; that there is none, or no key, is told exactly."""
    return seconds if seconds < 0 else pytest.approx(seconds, abs=8)


def value(hostname: str, acquired_at: float, lock_id: str) -> str:
    return json.dumps({"hostname": hostname, "acquired_at": int(acquired_at), "lock_id": lock_id},
                      separators=(",", ":"))


async def test_free_lock_is_taken_without_an_expiry(server: Valkey) -> None:
    attempt = await SMART.at("send").try_acquire(server, hostname="jobs-a", lock_id="1", now=NOW + 0.7)

    assert attempt is SmartAttempt.ACQUIRED
    assert await state(server) == (value("jobs-a", NOW, "1"), -1)


@pytest.mark.parametrize(("found", "left", "answer", "left_after"), [
    ("no lock", -1, SmartAttempt.MALFORMED, 300),
    ("no lock", 5000, SmartAttempt.MALFORMED, 5000),
    ('{"hostname": 3, "acquired_at": 1, "lock_id": "x"}', -1, SmartAttempt.MALFORMED, 300),
    ('{"hostname": "a", "lock_id": "x"}', -1, SmartAttempt.MALFORMED, 300),
    ("[[]]", -1, SmartAttempt.MALFORMED, 300),
    (value("jobs-a", NOW - 5, "mine"), -1, SmartAttempt.ALREADY_HELD, -1),
    (value("jobs-a", NOW - 5, "mine"), 40, SmartAttempt.ALREADY_HELD, 40),
    (value("jobs-a", NOW - 5, "other"), -1, SmartAttempt.SAME_PLACE, 300),
    (value("jobs-a", NOW - 5, "other"), 20, SmartAttempt.SAME_PLACE, 20),
    (value("jobs-a", NOW - 5, "other"), 2000, SmartAttempt.SAME_PLACE, 300),
    (value("jobs-a", NOW - 9 * HOUR, "other"), -1, SmartAttempt.SAME_PLACE, 300),
    (value("jobs-b", NOW - 6 * HOUR - 1, "other"), -1, SmartAttempt.STALE, 3600),
    (value("jobs-b", NOW - 6 * HOUR - 1, "other"), 100, SmartAttempt.STALE, 100),
    (value("jobs-b", NOW - 6 * HOUR - 1, "other"), 9000, SmartAttempt.STALE, 3600),
    (value("jobs-b", NOW - 6 * HOUR, "other"), -1, SmartAttempt.HELD, -1),
    (value("jobs-b", NOW - 5, "mine"), -1, SmartAttempt.HELD, -1),
])
async def test_jobs_flavour_answers_by_the_table(
    server: Valkey, found: str, left: int, answer: SmartAttempt, left_after: int
) -> None:
    lock = SMART.at("send")
    await server.set(lock.reference.name(server.layout), found, ex=None if left < 0 else left)

    assert await lock.try_acquire(server, hostname="jobs-a", lock_id="mine", now=NOW) is answer

    assert await state(server) == (found, about(left_after))


@pytest.mark.parametrize(("found", "left", "answer", "left_after"), [
    ("no lock", -1, SmartAttempt.MALFORMED, 300),
    (value("web-a", NOW - 120, "other"), -1, SmartAttempt.HELD, -1),
    (value("web-a", NOW - 121, "other"), -1, SmartAttempt.STALE, 300),
    (value("web-b", NOW - 121, "other"), 10, SmartAttempt.STALE, 10),
    (value("web-b", NOW - 121, "other"), 5000, SmartAttempt.STALE, 300),
    (value("web-a", NOW - 5, "mine"), -1, SmartAttempt.HELD, -1),
])
async def test_web_flavour_answers_by_the_table(
    server: Valkey, found: str, left: int, answer: SmartAttempt, left_after: int
) -> None:
    lock = WEB.at("front")
    await server.set(lock.reference.name(server.layout), found, ex=None if left < 0 else left)

    assert await lock.try_acquire(server, hostname="web-a", lock_id="mine", now=NOW) is answer

    assert await state(server, lock) == (found, about(left_after))


@pytest.mark.parametrize(("found", "expire", "answer", "after"), [
    (None, False, SmartRelease.NOT_SET, (None, -2)),
    ("no lock", False, SmartRelease.MALFORMED, ("no lock", -1)),
    (value("jobs-a", NOW, "other"), False, SmartRelease.STOLEN, (value("jobs-a", NOW, "other"), -1)),
    (value("jobs-a", NOW, "mine"), False, SmartRelease.FREED, (None, -2)),
    (value("jobs-a", NOW, "mine"), True, SmartRelease.FREED, (value("jobs-a", NOW, "mine"), 60)),
    (value("jobs-a", NOW, "other"), True, SmartRelease.STOLEN, (value("jobs-a", NOW, "other"), -1)),
])
async def test_release_answers_by_the_table(
    server: Valkey, found: str | None, expire: bool, answer: SmartRelease, after: tuple[str | None, int]
) -> None:
    lock = SMART.at("send")
    if found is not None:
        await server.set(lock.reference.name(server.layout), found)

    assert await lock.release(server, "mine", expire=expire) is answer

    assert await state(server) == (after[0], about(after[1]))


async def test_ending_never_lengthens_what_runs(server: Valkey) -> None:
    lock = SMART.at("send")
    await lock.try_acquire(server, hostname="a", lock_id="1", now=NOW)
    await server.expire(lock.reference.name(server.layout), 20)

    await lock.release(server, "1", expire=True)

    assert (await state(server))[1] == about(20)


async def test_block_holds_and_frees(server: Valkey, no_undeclared_keys) -> None:
    if server.layout is Layout.PLAIN:
        no_undeclared_keys(REGISTRY)
    clock = SystemClock()
    lock = SMART.at("send")

    async with lock.hold(server, clock, hostname="jobs-a") as held:
        assert held.has_lock and held.is_held
        with pytest.raises(LockHeld, match="job:send:lock"):
            async with lock.hold(server, clock, hostname="jobs-b"):
                raise AssertionError("two holders")

    assert await state(server) == (None, -2)


async def test_spinning_gets_the_lock_when_it_is_freed(server: Valkey) -> None:
    clock, lock, order = SystemClock(), WEB.at("front"), []

    async def second() -> None:
        async with lock.hold(server, clock, hostname="web-b", spin=True):
            order.append("second")

    async with asyncio.TaskGroup() as group, lock.hold(server, clock, hostname="web-a"):
        group.create_task(second())
        await asyncio.sleep(0.25)
        order.append("first")
    assert order == ["first", "second"]


async def test_impatient_spinner_goes_on_without_the_lock_and_does_not_free_it(server: Valkey) -> None:
    clock, lock = SystemClock(), WEB.at("front")
    async with lock.hold(server, clock, hostname="web-a"):
        async with lock.hold(server, clock, hostname="web-b", spin=True, patience_seconds=0.15) as held:
            assert not held.has_lock and not held.is_held and held.remaining_seconds == 0
            with pytest.raises(LockLost):
                held.check()
        assert (await state(server, lock))[0] is not None


async def test_place_must_be_named(valkey: Valkey) -> None:
    with pytest.raises(Invalid, match="give it a hostname"):
        await SMART.at("send").try_acquire(valkey, hostname="", lock_id="1", now=NOW)


async def test_stop_signal_ends_a_spinner(server: Valkey) -> None:
    clock, lock = SystemClock(), SMART.at("send")
    stopped = False
    async with lock.hold(server, clock, hostname="jobs-a"):
        asyncio.get_running_loop().call_later(0.15, lambda: stopping.append(True))
        stopping: list[bool] = []
        with pytest.raises(LockHeld):
            async with lock.hold(server, clock, hostname="jobs-b", spin=True, stopping=lambda: bool(stopping)):
                stopped = True
    assert not stopped


async def test_stop_signal_lets_a_held_lock_end_within_a_minute(server: Valkey) -> None:
    clock, lock, stopping = SystemClock(), SMART.at("send"), []
    async with lock.hold(server, clock, hostname="jobs-a", stopping=lambda: bool(stopping)):
        assert (await state(server))[1] == -1
        stopping.append(True)
        async with asyncio.timeout(20):
            while (await state(server))[1] == -1:
                await asyncio.sleep(0.02)
        assert (await state(server))[1] == about(60)
    assert await state(server) == (None, -2)


async def test_stop_signal_reaches_the_lock_even_when_the_server_is_away_at_first(server: Valkey) -> None:
    """A holder that cannot shorten its lock has not lost it, and goes on trying."""
    clock, lock, failures = SystemClock(), SMART.at("send"), [Unavailable("away")] * 2

    class Away(lock_smart.SmartLockAt):
        async def release_surely(self, on, lock_id: str, *, expire: bool = False) -> SmartRelease:
            if expire and failures:
                raise failures.pop()
            return await super().release_surely(on, lock_id, expire=expire)

    async with Away(SMART, lock.reference).hold(server, clock, hostname="jobs-a", stopping=lambda: True) as held:
        async with asyncio.timeout(20):
            while (await state(server))[1] == -1:
                await asyncio.sleep(0.02)
        assert held.is_held and not failures


async def test_lock_that_cannot_be_looked_at_counts_as_held_for_less_than_others_wait(server: Valkey) -> None:
    for lock, seconds in ((SMART.at("send"), 3600), (WEB.at("front"), 300)):
        async with lock.hold(server, SystemClock(), hostname="a") as held:
            assert seconds * 0.8 < held.remaining_seconds <= seconds * 0.9


async def test_lost_lock_cancels_the_block(server: Valkey) -> None:
    clock, lock = SystemClock(), SMART.at("send")
    with patched(lock_smart, LOOK_SECONDS=0.05), pytest.raises(LockLost, match="job:send:lock"):
        async with lock.hold(server, clock, hostname="jobs-a"):
            await server.delete(lock.reference.name(server.layout))
            await asyncio.sleep(60)
            raise AssertionError("the block went on")


async def test_lock_that_is_anothers_when_the_block_ends_is_told_and_left_alone(server: Valkey) -> None:
    clock, lock = SystemClock(), SMART.at("send")
    with pytest.raises(LockLost, match="someone else has it: job:send:lock"):
        async with lock.hold(server, clock, hostname="jobs-a"):
            await server.set(lock.reference.name(server.layout), value("jobs-b", clock.now(), "other"))
    assert (await state(server))[0] is not None


async def test_contested_lock_cancels_the_block_before_it_ends(server: Valkey) -> None:
    # The first look finds about four seconds left and counts on a fifth of them, which end before a second look: so
    # the block is cancelled about three seconds before the lock ends, and a slow machine can still see it.
    clock, lock = SystemClock(), SMART.at("send")
    with patched(lock_smart, LOOK_SECONDS=1.0, MARGIN=0.8), pytest.raises(LockLost):
        async with lock.hold(server, clock, hostname="jobs-a"):
            await server.pexpire(lock.reference.name(server.layout), 5000)
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                assert (await state(server))[0] is not None
                raise


async def test_a_crash_at_any_point_leaves_a_lock_that_the_same_place_lets_run_out(server: Valkey) -> None:
    clock = SystemClock()
    for at in range(1, 4):
        for after in (False, True):
            await server.flushall()
            mortal = Mortal(server, at, after=after)
            lock, ran = SMART.at("send"), False
            try:
                async with lock.hold(mortal, clock, hostname="jobs-a"):
                    ran = True
            except Died:
                pass
            raw, _ = await state(server)
            again = await lock.try_acquire(server, hostname="jobs-a", lock_id=new_lock_id(), now=clock.now())
            assert again is (SmartAttempt.ACQUIRED if raw is None else SmartAttempt.SAME_PLACE)
            assert (await state(server))[1] == about(-1 if raw is None else 300)
            assert ran or at == 1


@dataclass
class Model:
    """What a smart lock is, in plain words."""

    hostname: str = ""
    lock_id: str = ""
    acquired_at: int = 0
    ends_at: float = math.inf

    def pass_time(self, now: float) -> None:
        if now >= self.ends_at:
            self.hostname, self.lock_id, self.ends_at = "", "", math.inf

    def shorten(self, now: float, seconds: float) -> None:
        self.ends_at = min(self.ends_at, now + seconds)

    def acquire(self, flavour: LockFlavour, hostname: str, lock_id: str, now: float) -> SmartAttempt:
        if not self.lock_id:
            self.hostname, self.lock_id, self.acquired_at, self.ends_at = hostname, lock_id, int(now), math.inf
            return SmartAttempt.ACQUIRED
        if flavour is LockFlavour.JOBS and hostname == self.hostname:
            if lock_id == self.lock_id:
                return SmartAttempt.ALREADY_HELD
            self.shorten(now, 300)
            return SmartAttempt.SAME_PLACE
        if now - self.acquired_at > (6 * HOUR if flavour is LockFlavour.JOBS else 120):
            self.shorten(now, 3600 if flavour is LockFlavour.JOBS else 300)
            return SmartAttempt.STALE
        return SmartAttempt.HELD

    def release(self, lock_id: str, expire: bool, now: float) -> SmartRelease:
        if not self.lock_id:
            return SmartRelease.NOT_SET
        if lock_id != self.lock_id:
            return SmartRelease.STOLEN
        if expire:
            self.shorten(now, 60)
        else:
            self.pass_time(math.inf)
            self.lock_id = ""
        return SmartRelease.FREED


@on_both
@pytest.mark.parametrize("flavour", list(LockFlavour))
def test_lock_behaves_as_its_model(request: pytest.FixtureRequest, place: str, flavour: LockFlavour) -> None:
    """The lock beside its model, under random calls by three holders in two places, repeats and moves of the clock."""
    lock = (SMART if flavour is LockFlavour.JOBS else WEB).at("send")
    who = st.sampled_from([("jobs-a", "1"), ("jobs-a", "2"), ("jobs-b", "3")])

    class Machine(ServerMachine):
        def __init__(self, url: str, servers: list) -> None:
            super().__init__(url, servers)
            self.model = Model()

        @rule(who=who, times=st.integers(1, 2))
        def acquire(self, who: tuple[str, str], times: int) -> None:
            for _ in range(times):
                attempt = self.run(lambda: lock.try_acquire(
                    self.client, hostname=who[0], lock_id=who[1], now=self.clock.now()))
                assert attempt is self.model.acquire(flavour, *who, self.clock.now())

        @rule(who=who, expire=st.booleans(), times=st.integers(1, 2))
        def release(self, who: tuple[str, str], expire: bool, times: int) -> None:
            for _ in range(times):
                outcome = self.run(lambda: lock.release(self.client, who[1], expire=expire))
                assert outcome is self.model.release(who[1], expire, self.clock.now())

        # Steps of ten: an end is then reached or ten seconds away, while the server's own clock runs as the test does.
        @rule(seconds=st.sampled_from([10, 30, 60, 110, 130, 290, 310, 3590, 3610, 6 * HOUR + 10]))
        def time_passes(self, seconds: int) -> None:
            self.clock.advance(seconds)
            self.model.pass_time(self.clock.now())

    play(request, place, Machine)

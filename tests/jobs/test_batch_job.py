"""The batch-job frame: order of checks, budget, pauses, failures, deaths at every call, signals at every call."""

import asyncio
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

import keystead.jobs.batch_job as frame
from keystead.clock import Clock, SystemClock
from keystead.engine import Valkey, connect
from keystead.errors import DeclarationError, Unavailable
from keystead.jobs.batch_job import BatchJob
from keystead.jobs.batch_job_run import BatchRun, LastRunFacts, RunFacts, Step, StopReason
from keystead.jobs.retry import GiveUp, RetryLater
from keystead.keys import Keyspace, RecordKey, Registry
from keystead.patterns import SmartLock, WorkList, lock_smart
from keystead.telemetry import counts
from keystead.testing.checks import check_no_undeclared_keys
from keystead.testing.clock import MovableClock
from keystead.testing.server import LocalServer

from .batch_room import (
    DUE,
    KINDS,
    LOCK,
    RUNS,
    SHOP,
    TO_SEND,
    Died,
    Send,
    SendDue,
    SendHeld,
    SendHeldDue,
    SendRun,
    SendSlices,
    at_call,
    each_call,
    fill,
    in_purgatory,
    sent,
    waiting,
)

every_kind = pytest.mark.parametrize("kind", KINDS)
NOW = 1_000_000.0


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock(now=NOW)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made; each moves the clock instead of taking time."""
    pauses: list[float] = []

    async def sleep(seconds: float, *, stopping: Callable[[], bool], clock: Clock) -> bool:
        assert isinstance(clock, MovableClock)
        pauses.append(seconds)
        clock.advance(seconds)
        return True

    monkeypatch.setattr(frame, "graceful_sleep", sleep)
    return pauses


async def ended(job: BatchJob[int]) -> BatchRun:
    run = await job.run()
    assert run is not None
    return run


# -- an ordinary run ---------------------------------------------------------------------------------------------------


@every_kind
async def test_everything_is_worked_off_in_order(server: Valkey, kind: type[Send], clock: MovableClock) -> None:
    await fill(server, kind, range(10))
    run = await ended(kind(server, clock))
    assert run == BatchRun(StopReason.LIST_EXHAUSTED, 0.0, {"attempted": 10, "succeeded": 10}, done=10)
    assert await sent(server) == list(range(10))
    assert await waiting(server, kind) == await in_purgatory(server, kind) == []
    assert not await LOCK.at().reference.exists(server)


@every_kind
async def test_hash_of_the_run_says_what_happened(server: Valkey, kind: type[Send], clock: MovableClock) -> None:
    await fill(server, kind, range(3))
    job = kind(server, clock)
    job.before = lambda value, step: clock.advance(1.5)
    await job.run()
    raw = await server.run(("HGETALL", RUNS.at().name(server.layout)), dict)
    assert raw == {
        b"started_at": b"1000000.0", b"finished_at": b"1000004.5", b"running_time": b"4.5",
        b"stop_reason": b"list_exhausted", b"attempted": b"3", b"succeeded": b"3",
    }


@every_kind
async def test_run_without_work_writes_zeros(server: Valkey, kind: type[Send], clock: MovableClock) -> None:
    await RUNS.at().set(server, SendRun(attempted=7, succeeded=7, stop_reason="signal"))
    await kind(server, clock).run()
    assert await RUNS.at().get(server) == SendRun(
        started_at=NOW, finished_at=NOW, running_time=0.0, stop_reason="list_exhausted"
    )


@every_kind
async def test_run_ends_quietly_while_another_has_the_lock(
    server: Valkey, kind: type[Send], clock: MovableClock
) -> None:
    await fill(server, kind, range(3))
    async with LOCK.at().hold(server, clock, hostname="jobs-elsewhere"):
        assert await kind(server, clock).run() is None
        assert await LOCK.at().reference.remaining_seconds(server) is None
    assert await waiting(server, kind) == [0, 1, 2] and not await RUNS.at().exists(server)


async def test_members_that_were_not_due_at_the_start_wait(server: Valkey, clock: MovableClock) -> None:
    await DUE.schedule_many(server, {1: NOW, 2: NOW + 1})
    job = SendDue(server, clock)
    job.before = lambda value, step: clock.advance(10)
    assert (await ended(job)).done == 1
    assert await waiting(server, SendDue) == [2]


async def test_hash_may_have_the_older_names(valkey: Valkey, clock: MovableClock) -> None:
    space = Keyspace("push", tag="push")

    class PushRun(LastRunFacts, frozen=True):
        num_messages_attempted: int = 0

    class Push(BatchJob[int]):
        source = WorkList(space, "push:to_send", int, purpose="a test")
        lock = SmartLock(space, "push:send_job:lock", purpose="a test")
        runs = RecordKey(space, "stats:push:send", PushRun, purpose="a test")

        async def process(self, value: int, step: Step) -> None:
            step.counts["num_messages_attempted"] = -1

    await Push.source.push(valkey, 1)
    await Push(valkey, clock).run()
    assert await valkey.hgetall("stats:push:send") == {  # type: ignore[misc]
        b"last_started_at": b"1000000.0", b"last_finished_at": b"1000000.0", b"last_running_time": b"0.0",
        b"last_stop_reason": b"list_exhausted", b"last_num_messages_attempted": b"-1",
    }


async def test_nothing_undeclared_is_left(valkey: Valkey, valkey_server: LocalServer, clock: MovableClock) -> None:
    for kind in KINDS:
        await fill(valkey, kind, range(9))
        job = kind(valkey, clock)
        job.before = fails_for({3: GiveUp("no")})
        await job.run()
    check_no_undeclared_keys(Registry([SHOP]), valkey_server)


# -- reasons to stop ---------------------------------------------------------------------------------------------------

HOLDING = ["list_exhausted", "signal", "time_exhausted", "backpressure", "credentials"]
TAKING = ["signal", "time_exhausted", "backpressure", "credentials", "list_exhausted"]
STATE_OF = {"list_exhausted": "list", "time_exhausted": "time"}


@pytest.mark.parametrize(("kind", "order"), [(SendHeld, HOLDING), (SendHeldDue, HOLDING), (Send, TAKING),
                                             (SendSlices, TAKING), (SendDue, TAKING)])
async def test_reasons_are_looked_for_in_their_order(
    valkey: Valkey, kind: type[Send], order: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every reason holds at once; then the first that is found is taken away, and so on until none is left."""
    holding = {STATE_OF.get(reason, reason) for reason in order}
    found = []
    for _ in order:
        clock = MovableClock(now=NOW)
        if "list" not in holding:
            await fill(valkey, kind, range(3))
        monkeypatch.setattr(kind, "budget_seconds", 0.0 if "time" in holding else 50.0)
        job = kind(valkey, clock, stopping=lambda: "signal" in holding)
        job.congested, job.credentials = "backpressure" in holding, "credentials" not in holding
        reason = (await ended(job)).stop_reason.value
        found.append(reason)
        holding.discard(STATE_OF.get(reason, reason))
        assert await in_purgatory(valkey, kind) == []
        await valkey.flushall()
    assert found == order


@every_kind
async def test_run_ends_with_its_time_and_the_rest_waits_in_order(
    server: Valkey, kind: type[Send], clock: MovableClock
) -> None:
    await fill(server, kind, range(10))
    job = kind(server, clock)
    job.before = lambda value, step: clock.advance(10.0)
    run = await ended(job)
    assert run.stop_reason is StopReason.TIME_EXHAUSTED and run.running_seconds >= 50.0
    done = await sent(server)
    assert done == list(range(len(done))) and len(done) == (7 if kind is SendSlices else 5)
    assert await waiting(server, kind) == list(range(len(done), 10)) and await in_purgatory(server, kind) == []


@every_kind
async def test_signal_is_seen_between_two_items(server: Valkey, kind: type[Send], clock: MovableClock) -> None:
    await fill(server, kind, range(10))
    asked: list[int] = []
    job = kind(server, clock, stopping=lambda: bool(asked))
    job.before = lambda value, step: asked.append(value) if value == 2 else None
    assert (await ended(job)).stop_reason is StopReason.SIGNAL
    assert await sent(server) == [0, 1, 2]
    assert await waiting(server, kind) == list(range(3, 10)) and await in_purgatory(server, kind) == []


@every_kind
async def test_congestion_in_the_middle_ends_the_run(server: Valkey, kind: type[Send], clock: MovableClock) -> None:
    await fill(server, kind, range(10))
    job = kind(server, clock)
    job.before = lambda value, step: setattr(job, "congested", True)
    assert (await ended(job)).stop_reason is StopReason.BACKPRESSURE
    first = 1 if kind.holds_next else kind.batch_items
    assert await sent(server) == list(range(first)) and await waiting(server, kind) == list(range(first, 10))


# -- failures ----------------------------------------------------------------------------------------------------------


def fails_for(errors: dict[int, Exception], times: int = 1000) -> Callable[[int, Step], None]:
    left = Counter(dict.fromkeys(errors, times))

    def before(value: int, step: Step) -> None:
        if left[value] > 0:
            left[value] -= 1
            raise errors[value]

    return before


@every_kind
async def test_pauses_double_and_one_that_is_too_long_ends_the_run(
    server: Valkey, kind: type[Send], clock: MovableClock, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, "slice_items", 1)
    await fill(server, kind, range(10))
    job = kind(server, clock)
    job.before = lambda value, step: step.slow_down()
    run = await ended(job)
    assert slept == [2.0, 4.0, 8.0, 16.0] and run.stop_reason is StopReason.TIME_EXHAUSTED
    assert run.running_seconds == 30.0, "the pause of 32 s was not begun"
    assert await sent(server) == [0, 1, 2, 3, 4] and await waiting(server, kind) == [5, 6, 7, 8, 9]


async def test_pauses_grow_no_longer_than_32_seconds(
    valkey: Valkey, clock: MovableClock, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Send, "budget_seconds", 1000.0)
    await fill(valkey, Send, range(8))
    job = Send(valkey, clock)
    job.before = lambda value, step: step.slow_down()
    assert (await ended(job)).stop_reason is StopReason.LIST_EXHAUSTED
    assert slept == [2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0], "none after the last item"


def pauses_for_16_seconds(value: int, step: Step) -> None:
    for _ in range(4):
        step.slow_down()


async def test_signal_ends_a_pause(valkey: Valkey) -> None:
    await fill(valkey, SendHeld, range(3))
    asked = asyncio.Event()
    job = SendHeld(valkey, SystemClock(), stopping=asked.is_set)
    job.before = pauses_for_16_seconds
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(job.run())
        while await sent(valkey) != [0]:
            await asyncio.sleep(0.01)
        asked.set()
    run = running.result()
    assert run is not None and run.stop_reason is StopReason.SIGNAL
    assert await sent(valkey) == [0] and await waiting(valkey, SendHeld) == [1, 2]


@every_kind
async def test_something_out_of_reach_counts_against_no_item(
    server: Valkey, kind: type[Send], clock: MovableClock, slept: list[float]
) -> None:
    await fill(server, kind, range(5))
    job = kind(server, clock)
    job.before = fails_for({2: Unavailable("the database is away")}, times=4)
    run = await ended(job)
    assert (run.done, run.failed, run.dead) == (5, 0, 0) and slept == [2.0, 4.0, 8.0, 16.0]
    assert await sent(server) == [0, 1, 2, 3, 4]


@every_kind
async def test_something_out_of_reach_for_long_leaves_everything_in_its_place(
    server: Valkey, kind: type[Send], clock: MovableClock, slept: list[float]
) -> None:
    await fill(server, kind, range(5))
    for _ in range(4):  # more runs than an item has tries
        job = kind(server, clock)
        job.before = fails_for({0: Unavailable("the database is away")})
        assert (await ended(job)).stop_reason is StopReason.TIME_EXHAUSTED
    assert await waiting(server, kind) == [0, 1, 2, 3, 4] and await in_purgatory(server, kind) == []


@every_kind
async def test_item_that_asks_to_be_given_up_is_a_dead_letter(
    server: Valkey, kind: type[Send], clock: MovableClock, slept: list[float]
) -> None:
    await fill(server, kind, range(6))
    job = kind(server, clock)
    job.before = fails_for({0: GiveUp("no such number"), 4: GiveUp("no such number")})
    run = await ended(job)
    assert (run.done, run.failed, run.dead, slept) == (4, 0, 2, [])
    assert await sent(server) == [1, 2, 3, 5]
    letters = await kind.source.dead.range(server)
    assert [(letter.raw, letter.error) for letter in letters] == [(b"0", "no such number"), (b"4", "no such number")]


@pytest.mark.parametrize("kind", [Send, SendHeld, SendSlices])
async def test_item_of_a_list_that_always_fails_is_a_dead_letter_after_its_tries(
    server: Valkey, kind: type[Send], clock: MovableClock, slept: list[float]
) -> None:
    await fill(server, kind, range(6))
    job = kind(server, clock)
    job.before = fails_for({1: ValueError("bad")})
    run = await ended(job)
    assert (run.done, run.failed, run.dead) == (5, 3, 1) and slept == [2.0, 4.0]
    assert sorted(await sent(server)) == [0, 2, 3, 4, 5]
    [letter] = await TO_SEND.dead_letters(server)
    assert (letter.raw, letter.error, letter.attempts) == (b"1", "ValueError: bad", 3)


@pytest.mark.parametrize("kind", [SendDue, SendHeldDue])
async def test_member_that_failed_is_due_again_later(
    server: Valkey, kind: type[Send], clock: MovableClock, slept: list[float]
) -> None:
    await fill(server, kind, range(3))
    job = kind(server, clock)
    job.before = fails_for({0: ValueError("bad"), 1: RetryLater(60)})
    run = await ended(job)
    assert (run.done, run.failed, run.dead) == (1, 2, 0) and slept == [2.0]
    assert dict(await DUE.due.range(server)) == {0: NOW + 900, 1: NOW + 2 + 60}


@pytest.mark.parametrize("kind", [Send, SendHeld])
async def test_item_that_asks_for_later_goes_behind_the_others_and_the_run_waits_for_it(
    server: Valkey, kind: type[Send], clock: MovableClock, slept: list[float]
) -> None:
    await fill(server, kind, range(4))
    job = kind(server, clock)
    job.before = fails_for({0: RetryLater(0.5, counts=False)}, times=5)
    run = await ended(job)
    assert (run.done, run.failed, run.dead) == (4, 5, 0) and slept == [0.5] * 5
    assert await sent(server) == [1, 2, 3, 0]


async def test_later_that_counts_uses_up_tries(valkey: Valkey, clock: MovableClock, slept: list[float]) -> None:
    await fill(valkey, Send, range(1))
    job = Send(valkey, clock)
    job.before = fails_for({0: RetryLater(1)})
    assert (await ended(job)).dead == 1 and slept == [1.0, 1.0]


@every_kind
async def test_what_does_not_decode_is_a_dead_letter_and_stops_nobody(
    server: Valkey, kind: type[Send], clock: MovableClock
) -> None:
    for number in range(12):
        raw = str(number).encode() if number % 4 == 3 else b"garbage %d" % number
        if kind.source is DUE:
            await server.run(("ZADD", DUE.due.name(server.layout), number, raw), int)
        else:
            await TO_SEND.push_raw(server, raw)
    run = await ended(kind(server, clock))
    assert (run.stop_reason, run.done, run.dead) == (StopReason.LIST_EXHAUSTED, 3, 9)
    assert await sent(server) == [3, 7, 11] and await in_purgatory(server, kind) == []
    letters = await kind.source.dead.range(server)
    assert sorted(letter.raw for letter in letters) == sorted(b"garbage %d" % n for n in range(12) if n % 4 != 3)


async def test_one_bad_item_of_a_slice_is_found_and_the_others_are_done(
    server: Valkey, clock: MovableClock, slept: list[float]
) -> None:
    await fill(server, SendSlices, range(6))
    job = SendSlices(server, clock)
    job.before = fails_for({1: GiveUp("bad")})
    assert (await ended(job)).done == 5
    assert await sent(server) == [0, 2, 3, 4, 5], "what the broken slice had queued did not happen"


async def test_failed_item_leaves_no_effect(server: Valkey, clock: MovableClock) -> None:
    class Late(Send):
        async def process(self, value: int, step: Step) -> None:
            await super().process(value, step)
            raise GiveUp("after the effects were queued")

    await fill(server, Send, range(2))
    await Late(server, clock).run()
    assert await sent(server) == [] and await TO_SEND.dead.length(server) == 2


# -- deaths ------------------------------------------------------------------------------------------------------------


async def dies() -> None:
    raise Died


async def after_the_dead(valkey: Valkey, clock: MovableClock) -> None:
    """The lock of a dead process is freed by time alone: the next in the same place lets it run out."""
    await LOCK.at().try_acquire(valkey, hostname="jobs-here", lock_id="next", now=clock.now())
    left = await LOCK.at().reference.remaining_seconds(valkey)
    assert left is None or left <= 300
    await LOCK.at().reference.delete(valkey)


@every_kind
async def test_death_at_any_call_loses_nothing_and_doubles_nothing(
    valkey: Valkey, kind: type[Send], valkey_server: LocalServer
) -> None:
    """What was queued on the step happens with the removal from purgatory, so even the effects come once."""
    deaths = 0
    async for number, after in each_call():
        await valkey.flushall()
        clock = MovableClock(now=NOW)
        await fill(valkey, kind, range(5))
        mortal = await connect(valkey_server.url)
        try:
            at_call(mortal, number, dies, after=after)
            await kind(mortal, clock, hostname="jobs-here").run()
            survived = True
        except Died:
            survived = False
        finally:
            await mortal.aclose()
        everywhere = [*await waiting(valkey, kind), *await in_purgatory(valkey, kind), *await sent(valkey)]
        assert Counter(everywhere) == Counter(range(5)), (number, after)
        if survived:
            break
        deaths += 1
        left = len(await in_purgatory(valkey, kind))
        await after_the_dead(valkey, clock)
        run = await ended(kind(valkey, clock, hostname="jobs-here"))
        assert run.stop_reason is StopReason.LIST_EXHAUSTED and run.recovered == left
        assert await sent(valkey) == [0, 1, 2, 3, 4], "the item that the dead run had comes first"
        assert await in_purgatory(valkey, kind) == []
    assert deaths >= 12


async def test_dead_run_is_seen_by_its_hash(valkey: Valkey, valkey_server: LocalServer, clock: MovableClock) -> None:
    await fill(valkey, Send, range(2))
    await Send(valkey, clock).run()
    clock.advance(60)
    await fill(valkey, Send, range(2))
    job = Send(valkey, clock, hostname="jobs-here")

    def die(value: int, step: Step) -> None:
        raise Died

    job.before = die
    with pytest.raises(Died):
        await job.run()
    facts = await RUNS.at().get(valkey)
    assert facts is not None and facts.started_at == NOW + 60 and facts.finished_at == NOW
    assert await in_purgatory(valkey, Send) == [0, 1]


@every_kind
async def test_item_that_kills_every_run_is_a_dead_letter_and_the_others_are_done(
    server: Valkey, kind: type[Send], clock: MovableClock
) -> None:
    await fill(server, kind, range(6))
    deaths = 0

    def deadly(value: int, step: Step) -> None:
        if value == 2:
            raise Died

    for _ in range(10):
        job = kind(server, clock)
        job.before = deadly
        try:
            run = await ended(job)
            break
        except Died:
            deaths += 1
    assert deaths == 3 and run.dead == 1 and sorted(await sent(server)) == [0, 1, 3, 4, 5]
    [letter] = await kind.source.dead.range(server)
    assert (letter.raw, letter.attempts) == (b"2", 3)


# -- signals -----------------------------------------------------------------------------------------------------------


async def lock_is_ending(valkey: Valkey) -> None:
    """Until the lock has a minute at most."""
    async with asyncio.timeout(30):
        while (left := await LOCK.at().reference.remaining_seconds(valkey)) is None:
            await asyncio.sleep(0.02)
    assert left <= 60


async def calls_of_a_run(kind: type[Send], url: str) -> int:
    valkey = await connect(url)
    calls = at_call(valkey, 0, dies)
    await kind(valkey, MovableClock(now=NOW)).run()
    await valkey.aclose()
    return len(calls)


@pytest.mark.parametrize("killed", [False, True], ids=["goes on", "is killed"])
@every_kind
async def test_signal_at_any_call_leaves_the_lock_a_minute_at_most(
    valkey: Valkey, kind: type[Send], killed: bool, valkey_server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the call after the lock was taken up to that which gives it back."""
    monkeypatch.setattr(lock_smart, "STOP_POLL_SECONDS", 0.01)  # only so that the test is short
    for _ in range(2):  # the first run also brings scripts to the server, which takes calls of its own
        await fill(valkey, kind, range(3))
        total = await calls_of_a_run(kind, valkey_server.url)
    assert total >= 6
    for number in range(2, total):
        await valkey.flushall()
        await fill(valkey, kind, range(3))
        asked = asyncio.Event()

        async def signalled(asked: asyncio.Event = asked) -> None:
            asked.set()
            await lock_is_ending(valkey)
            if killed:
                raise Died

        far = await connect(valkey_server.url)
        try:
            at_call(far, number, signalled)
            run = await kind(far, MovableClock(now=NOW), stopping=asked.is_set, hostname="jobs-here").run()
            assert not killed and run is not None
        except Died:
            assert killed
        finally:
            await far.aclose()
        if killed:
            await lock_is_ending(valkey)
        else:
            assert not await LOCK.at().reference.exists(valkey) and await in_purgatory(valkey, kind) == []
        everywhere = [*await waiting(valkey, kind), *await in_purgatory(valkey, kind), *await sent(valkey)]
        assert Counter(everywhere) == Counter(range(3)), number


# -- declarations ------------------------------------------------------------------------------------------------------


async def test_counter_that_is_not_declared_is_refused(valkey: Valkey, clock: MovableClock) -> None:
    await fill(valkey, Send, range(1))
    job = Send(valkey, clock)
    refused = []

    def before(value: int, step: Step) -> None:
        with pytest.raises(DeclarationError, match="attempted, succeeded") as error:
            step.count("sent")
        refused.append(error)

    job.before = before
    await job.run()
    assert len(refused) == 1


async def test_wrong_declarations_are_refused_when_the_job_is_made(valkey: Valkey, clock: MovableClock) -> None:
    space = Keyspace("bad", tag="bad")

    class Wrong(RunFacts, frozen=True):
        name: str = ""

    class HoldsSlices(SendHeld):
        slice_items = 2

    class Other(msgspec.Struct):
        attempted: int = 0

    class NoFacts(Send):
        runs = RecordKey(space, "stats:bad:a", Other, purpose="a test")

    class WrongCounter(Send):
        runs = RecordKey(space, "stats:bad:b", Wrong, purpose="a test")

    for kind, said in ((HoldsSlices, "one at a time"), (NoFacts, "RunFacts"), (WrongCounter, "counters are integers")):
        with pytest.raises(DeclarationError, match=said):
            kind(valkey, clock)


async def test_runs_and_items_are_counted(valkey: Valkey, clock: MovableClock) -> None:
    name = RUNS.pattern
    runs = counts.value("batch_job_runs", job=name, stop_reason="list_exhausted")
    done = counts.value("batch_job_items", job=name, outcome="done")
    await fill(valkey, Send, range(3))
    await Send(valkey, clock).run()
    assert counts.value("batch_job_runs", job=name, stop_reason="list_exhausted") == runs + 1
    assert counts.value("batch_job_items", job=name, outcome="done") == done + 3

"""Couriers: nothing is lost, nothing settled twice, the provider is not asked more than allowed."""

import asyncio
import time

import pytest

from keystead.clock import Pace, SystemClock, real
from keystead.jobs import StopReason
from keystead.messaging.sending import CredentialsMissing, Health, Lane, Verdict, standing, traced
from keystead.messaging.sending.courier_hands import Hands
from keystead.patterns import Writes

from .post import DELIVERED, LETTERS, RUNS, Letter, Postman, Working, courier, delivered, fill, until

CLOCK = SystemClock()


def letters(count: int, **facts) -> list[Letter]:
    return [Letter(f"l{number}", **facts) for number in range(count)]


async def delivered_all(server, count: int) -> None:
    async def there() -> bool:
        return await DELIVERED.at().length(server) >= count

    await until(there)


async def test_everything_is_delivered_once_and_nothing_is_left(server):
    postman = Postman(server, seconds=0.005)
    await fill(server, *letters(100))
    async with Working(courier(server, CLOCK, postman, concurrent_requests=16)):
        await delivered_all(server, 100)
    assert sorted(await delivered(server)) == sorted(letter.uid for letter in letters(100))
    assert sorted(postman.calls) == sorted(await delivered(server))
    assert 1 < postman.most_at_once <= 16
    assert await LETTERS.intent("l1").get(server) is None
    assert [entry.what for entry in await traced(server, "l1")] == ["taken up", "asked the provider"]
    record = await RUNS.at().get(server)
    assert record is not None and record.delivered == 100 and record.finished_at >= record.started_at


async def test_a_waiting_courier_is_woken_by_each_lane(server):
    postman = Postman(server)
    async with Working(courier(server, CLOCK, postman)):
        await until(lambda: server.run(("EXISTS", LETTERS.work.workers_key.at().name(server.layout)), bool))
        for place, lane in enumerate(("high", "normal", "low")):
            await fill(server, Letter(f"in {lane}", lane=lane))
            await delivered_all(server, place + 1)
    assert await delivered(server) == ["in high", "in normal", "in low"]


async def test_a_single_run_ends_when_the_lists_are_empty(server):
    postman = Postman(server)
    await fill(server, *letters(5), Letter("urgent", lane="high"), Letter("later", lane="low"))
    run = await courier(server, CLOCK, postman).run()
    assert run is not None and run.stop_reason is StopReason.LIST_EXHAUSTED
    assert run.counts == {"delivered": 7}
    assert len(await delivered(server)) == 7
    record = await RUNS.at().get(server)
    assert record.delivered == 7 and record.stop_reason == "list_exhausted" and record.finished_at >= record.started_at


async def test_a_single_run_recovers_what_an_earlier_one_left(valkey):
    postman = Postman(valkey)
    await fill(valkey, *letters(2))
    await LETTERS.work.worker().take(valkey, 2, now=CLOCK.now())
    run = await courier(valkey, CLOCK, postman).run()
    assert run is not None and run.recovered == 2
    assert sorted(await delivered(valkey)) == ["l0", "l1"]


async def test_a_slow_answer_holds_up_nobody_else(valkey):
    postman = Postman(valkey)
    postman.seconds = lambda letter: 3600.0 if letter.uid == "slow" else 0.0
    await fill(valkey, Letter("slow"), *letters(50))
    async with Working(courier(valkey, CLOCK, postman, concurrent_requests=4)) as working:
        await delivered_all(valkey, 50)
        assert postman.at_once == 1
        for task in working.tasks:
            task.cancel()
        await asyncio.gather(*working.tasks, return_exceptions=True)
        working.tasks = []
    assert "slow" not in await delivered(valkey)


async def test_the_lanes_are_served_by_weight(valkey):
    postman = Postman(valkey)
    for lane in ("low", "normal", "high"):
        await fill(valkey, *(Letter(f"{lane} {number}", lane=lane) for number in range(240)))
    async with Working(courier(valkey, CLOCK, postman, concurrent_requests=12)):
        await delivered_all(valkey, 720)
    first = [uid.split()[0] for uid in postman.calls[:240]]
    assert 140 <= first.count("high") <= 180
    assert 45 <= first.count("normal") <= 75
    assert 10 <= first.count("low") <= 30


async def test_the_rate_holds_over_all_couriers(valkey):
    postman = Postman(valkey)
    await fill(valkey, *letters(40))
    started = time.monotonic()
    couriers = [courier(valkey, CLOCK, postman, concurrent_requests=8, rate_per_second=20) for _ in range(2)]
    async with Working(*couriers):
        await delivered_all(valkey, 40)
    assert time.monotonic() - started >= 39 / 20 - 0.1
    assert sorted(postman.calls) == sorted(letter.uid for letter in letters(40))


async def test_two_couriers_share_the_work(valkey):
    postmen = [Postman(valkey, seconds=0.01), Postman(valkey, seconds=0.01)]
    await fill(valkey, *letters(200))
    async with Working(*(courier(valkey, CLOCK, postman, concurrent_requests=4) for postman in postmen)):
        await delivered_all(valkey, 200)
    assert all(postman.calls for postman in postmen)
    assert sorted(postmen[0].calls + postmen[1].calls) == sorted(letter.uid for letter in letters(200))


async def test_failures_open_the_breaker_and_the_queue_waits(valkey):
    postman = Postman(valkey)
    postman.health = lambda letter: Health.FAILED
    await fill(valkey, *letters(200))
    async with Working(courier(valkey, CLOCK, postman, concurrent_requests=4)):
        await delivered_all(valkey, 20)
        await asyncio.sleep(1.0)
        called = len(postman.calls)
        assert called < 60
        assert await LETTERS.waiting().length(valkey) > 100
    # What was taken and not asked for is back in its place, without an intent.
    assert await LETTERS.waiting().length(valkey) == 200 - called
    assert await LETTERS.intent(f"l{called}").get(valkey) is None


async def test_a_provider_is_judged_by_the_real_clock_however_fast_ours_runs(valkey):
    """By a clock on which five minutes pass in a moment every failure would be forgotten before the next."""
    clock = SystemClock(pace=Pace(100_000.0, time.time(), time.time()))
    postman = Postman(valkey)
    postman.health = lambda letter: Health.FAILED
    await fill(valkey, *letters(200))
    async with Working(courier(valkey, clock, postman, concurrent_requests=1)):
        await delivered_all(valkey, 20)
        deadline = time.monotonic() + 20
        while (await standing(valkey, LETTERS, real(clock).now())).breaker == "closed":
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
    assert await LETTERS.waiting().length(valkey) > 100


async def test_a_probe_that_goes_well_opens_the_gate_for_all(valkey):
    postman = Postman(valkey)
    postman.health = lambda letter: Health.FAILED
    await fill(valkey, *letters(200))
    async with Working(courier(valkey, CLOCK, postman, concurrent_requests=4)):
        await delivered_all(valkey, 20)
        postman.health = lambda letter: Health.FINE
    await LETTERS.breaker.probe.at().delete(valkey)  # as if it had rested
    async with Working(courier(valkey, CLOCK, postman, concurrent_requests=4)):
        await delivered_all(valkey, 200)
    assert sorted(postman.calls) == sorted(letter.uid for letter in letters(200))


async def test_a_message_that_asks_no_provider_does_not_use_up_the_probe(valkey):
    """Each would hold up the others for half a minute."""
    postman = Postman(valkey)
    postman.health = lambda letter: Health.FAILED
    await fill(valkey, *letters(20))
    async with Working(courier(valkey, CLOCK, postman, concurrent_requests=4)):
        await delivered_all(valkey, 20)
    postman.health = lambda letter: Health.NOT_CALLED if letter.uid.startswith("no") else Health.FINE
    postman.says = lambda letter: Verdict.WAIT
    await LETTERS.intent("unsure").set(valkey, "0 courier_who_died")
    await fill(valkey, Letter("no 1"), Letter("unsure"), Letter("no 2"), Letter("yes"), *letters(10))
    await LETTERS.breaker.probe.at().delete(valkey)  # as if it had rested
    started = time.monotonic()
    async with Working(courier(valkey, CLOCK, postman, concurrent_requests=4)):
        await delivered_all(valkey, 33)
    assert time.monotonic() - started < LETTERS.breaker.probe_seconds


async def test_what_is_held_waits_as_well_while_a_provider_asks_for_a_pause(valkey):
    postman = Postman(valkey)
    postman.health = lambda letter: Health.THROTTLED if letter.uid == "l0" else Health.FINE
    postman.retry_after_seconds = 3600.0
    await fill(valkey, *letters(30))
    async with Working(courier(valkey, CLOCK, postman, concurrent_requests=4)):
        await delivered_all(valkey, 1)
        await asyncio.sleep(1.5)
        assert len(postman.calls) <= 4, "those under way, and no more"
        postman.health = lambda letter: Health.FINE
        await LETTERS.resume(valkey)
        await delivered_all(valkey, 30)


async def test_a_single_run_without_credentials_says_so_and_everything_waits(valkey):
    postman = Postman(valkey)

    def refuse(letter: Letter) -> None:
        raise CredentialsMissing("nobody knows who we are")

    postman.before = refuse
    await fill(valkey, *letters(30))
    run = await courier(valkey, CLOCK, postman, concurrent_requests=4).run()
    assert run is not None and run.stop_reason is StopReason.CREDENTIALS and run.running_seconds < 20
    assert run.counts == {"delivered": 0} and run.failed == 0
    waiting = [letter.uid for letter in await LETTERS.waiting().range(valkey)]
    assert sorted(waiting) == sorted(letter.uid for letter in letters(30))
    assert not [uid for uid in waiting if await LETTERS.intent(uid).exists(valkey)]
    postman.before = lambda letter: None
    run = await courier(valkey, CLOCK, postman, concurrent_requests=4).run()
    assert run is not None and run.counts == {"delivered": 30}


async def test_a_provider_that_asks_for_a_pause_gets_one(valkey):
    postman = Postman(valkey)
    postman.health = lambda letter: Health.THROTTLED if letter.uid == "l0" else Health.FINE
    await fill(valkey, *letters(30))
    started = time.monotonic()
    async with Working(courier(valkey, CLOCK, postman, concurrent_requests=1)):
        await delivered_all(valkey, 30)
    assert time.monotonic() - started >= 0.9
    assert await LETTERS.paused_key.at().is_raised(valkey) is False


async def test_nothing_is_taken_while_the_channel_is_paused(valkey):
    postman = Postman(valkey)
    await LETTERS.pause(valkey)
    async with Working(courier(valkey, CLOCK, postman)):
        await fill(valkey, *letters(3))
        await asyncio.sleep(1.5)
        assert postman.calls == []
        await LETTERS.resume(valkey)
        await delivered_all(valkey, 3)


async def test_what_cannot_be_read_is_a_dead_letter(valkey):
    postman = Postman(valkey)
    await valkey.run(("RPUSH", LETTERS.waiting("high").name(valkey.layout), b"not a letter"), int)
    await fill(valkey, *letters(2))
    async with Working(courier(valkey, CLOCK, postman)):
        await delivered_all(valkey, 2)
        await until(lambda: LETTERS.work.dead.length(valkey))
    (letter,) = await LETTERS.work.dead_letters(valkey)
    assert letter.raw == b"not a letter"


async def test_a_message_that_its_carrier_fails_on_is_given_up_and_others_go_on(valkey):
    postman = Postman(valkey, batch_items=10)

    def fails(letter: Letter) -> None:
        if letter.uid == "bad":
            raise RuntimeError("a mistake")

    postman.before = fails
    postman.says = lambda letter: Verdict.NOT_SENT
    await fill(valkey, *letters(12), Letter("bad"))
    async with Working(courier(valkey, CLOCK, postman, concurrent_requests=2)):
        await delivered_all(valkey, 12)
        await until(lambda: LETTERS.work.dead.length(valkey))
    (letter,) = await LETTERS.work.dead_letters(valkey)
    assert b'"bad"' in letter.raw and "a mistake" in letter.error
    assert sorted(await delivered(valkey)) == sorted(["bad dropped", *(letter.uid for letter in letters(12))])
    assert await LETTERS.given_up.length(valkey) == 0 and await LETTERS.intent("bad").get(valkey) is None


async def test_a_result_that_cannot_be_written_down_keeps_no_other_waiting(valkey):
    """Results are told together; whoever waited for the one that failed would wait for ever."""

    postman = Postman(valkey, seconds=0.2)
    deliver = postman.delivered

    def deliver_badly(letter: Letter, word: str = ""):
        carried = deliver(letter, word)
        if letter.uid == "bad" and not word:
            carried.writes = Writes(valkey.layout)
            carried.writes.run(("SET", LETTERS.intent("bad").name(valkey.layout), "ada@example.com \ud800"), str)
        return carried

    postman.delivered = deliver_badly
    await fill(valkey, *letters(4), Letter("bad"), *(Letter(f"m{number}") for number in range(4)))
    async with Working(courier(valkey, CLOCK, postman, concurrent_requests=9, on_ambiguous="resend")):
        await delivered_all(valkey, 9)
    assert sorted(uid for uid in await delivered(valkey) if uid != "bad dropped") == sorted(
        [*(letter.uid for letter in letters(4)), *(f"m{number}" for number in range(4))])
    said = [entry.facts for entry in await traced(valkey, "bad") if entry.what == "given up"]
    assert said == [{"error": "UnicodeEncodeError", "attempts": 3}], "no address, and no words of a message"


async def test_due_retries_return_to_their_lane(server):
    postman = Postman(server)
    now = CLOCK.now()
    async with server.pipeline(transaction=False) as pipeline:
        LETTERS.retry_later(pipeline, Letter("again", retry=1, lane="high"), now - 1)
        LETTERS.retry_later(pipeline, Letter("later"), now + 3600)
        await pipeline.execute()
    async with Working(courier(server, CLOCK, postman)):
        await delivered_all(server, 1)
    assert postman.calls == ["again"]


async def test_a_single_run_carries_everything_that_is_due(valkey):
    postman = Postman(valkey)
    async with valkey.pipeline(transaction=False) as pipeline:
        for letter in letters(350):
            LETTERS.retry_later(pipeline, letter, CLOCK.now() - 1)
        LETTERS.retry_later(pipeline, Letter("later"), CLOCK.now() + 3600)
        await pipeline.execute()
    run = await courier(valkey, CLOCK, postman, concurrent_requests=64).run()
    assert run is not None and run.counts == {"delivered": 350}


@pytest.mark.parametrize(
    ("on_ambiguous", "says", "expected", "calls"),
    [
        ("verify", None, ["l0 found"], []),
        ("verify", Verdict.NOT_SENT, ["l0"], ["l0"]),
        ("resend", None, ["l0"], ["l0"]),
        ("drop", None, ["l0 dropped"], []),
    ],
)
async def test_a_message_that_may_have_been_sent(valkey, on_ambiguous, says, expected, calls):
    postman = Postman(valkey)
    postman.says = lambda letter: says
    await fill(valkey, *letters(1))
    await LETTERS.intent("l0").set(valkey, "0 courier_who_died")
    async with Working(courier(valkey, CLOCK, postman, on_ambiguous=on_ambiguous)):
        await delivered_all(valkey, 1)
    assert await delivered(valkey) == expected and postman.calls == calls
    assert await LETTERS.intent("l0").get(valkey) is None


async def test_a_message_of_which_nobody_can_say_yet_is_asked_for_later(valkey):
    postman = Postman(valkey)
    postman.says = lambda letter: Verdict.WAIT if len(postman.verified) < 2 else None
    await fill(valkey, *letters(1))
    await LETTERS.intent("l0").set(valkey, "0 courier_who_died")
    async with Working(courier(valkey, CLOCK, postman, wait_seconds=0.2)):
        await delivered_all(valkey, 1)
    assert postman.verified == ["l0", "l0"] and await delivered(valkey) == ["l0 found"]


async def test_stopping_ends_requests_and_puts_the_rest_back(valkey):
    postman = Postman(valkey, seconds=0.3)
    await fill(valkey, *letters(40))
    async with Working(courier(valkey, CLOCK, postman, concurrent_requests=4, rate_per_second=10)):
        await until(lambda: _true(len(postman.calls) >= 3))
    done = await delivered(valkey)
    assert sorted(done) == sorted(postman.calls)
    assert await LETTERS.waiting().length(valkey) == 40 - len(done)
    assert not [letter.uid for letter in letters(40) if await LETTERS.intent(letter.uid).exists(valkey)]


async def test_a_letter_that_comes_as_a_waiting_courier_stops_goes_back_to_its_lane(valkey, valkey_server, monkeypatch):
    lane, stop_waiting = LETTERS.waiting(), Hands.stop_waiting

    def pushed_and_stopped(hands: Hands[Letter]) -> None:
        # Without a turn of the loop between: the server has moved it, and nobody reads that.
        valkey_server.call("RPUSH", lane.name(valkey.layout), lane.codec.encode(Letter("late")))
        stop_waiting(hands)

    async def waits() -> bool:
        return f"blocked_clients:{len(Lane)}\r" in valkey_server.call("INFO", "clients").decode()

    monkeypatch.setattr(Hands, "stop_waiting", pushed_and_stopped)
    monkeypatch.setattr("keystead.messaging.sending.courier_hands.WAIT_SECONDS", 300.0)
    postman = Postman(valkey)
    async with Working(courier(valkey, CLOCK, postman)):
        await until(waits)
    assert [letter.uid for letter in await lane.range(valkey)] == ["late"] and postman.calls == []
    assert [key async for key in valkey.scan_iter("post:purgatory:*") if not key.endswith(b":alive")] == []


async def _true(value: bool) -> bool:
    return value


async def test_a_single_run_ends_at_once_while_nothing_may_be_sent(valkey):
    postman = Postman(valkey)
    await fill(valkey, *letters(3))
    await LETTERS.pause(valkey)
    run = await courier(valkey, CLOCK, postman).run()
    assert run is not None and run.stop_reason is StopReason.BACKPRESSURE and postman.calls == []
    await LETTERS.resume(valkey)
    postman.health = lambda letter: Health.FAILED
    await fill(valkey, *(Letter(f"m{number}") for number in range(60)))
    run = await courier(valkey, CLOCK, postman).run()
    assert run is not None and run.stop_reason is StopReason.BACKPRESSURE and 20 <= len(postman.calls) < 60
    assert await LETTERS.waiting().length(valkey) == 63 - len(postman.calls)


async def test_one_run_at_a_time(valkey):
    async with LETTERS.lock.at().hold(valkey, CLOCK, hostname="jobs-elsewhere"):
        assert await courier(valkey, CLOCK, Postman(valkey)).run() is None

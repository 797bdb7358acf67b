"""Batch jobs that go on all the time: woken, several at once, and nothing lost or done twice whoever dies."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from keystead.clock import SystemClock
from keystead.engine import Valkey, connect
from keystead.errors import DeclarationError, Unavailable
from keystead.jobs import batch_job as frame
from keystead.jobs.batch_job_run import Step
from keystead.jobs.batch_job_source import DueSource
from keystead.jobs.crew import Crew
from keystead.jobs.retry import GiveUp
from keystead.keys import Registry
from keystead.patterns import Item, Writes
from keystead.testing.checks import check_no_undeclared_keys
from keystead.testing.server import LocalServer

from .batch_room import DUE, RUNS, SENT, SHOP, TO_SEND, Died, Send, SendRun, fill, sent


class Settles(Send):
    """Settles each number with its receipt."""

    async def process(self, value: int, step: Step) -> None:
        step.count("attempted")
        if self.before is not None and (waits := self.before(value, step)) is not None:
            await waits
        writes = Writes(self.valkey.layout)
        SENT.at().push_right(writes, value)
        step.settle(value, writes)
        step.count("succeeded")


class SettlesHeld(Settles):
    holds_next = True


class SettlesSlices(Settles):
    slice_items = 3


class SettlesDue(Settles):
    source = DUE


KINDS = [Settles, SettlesHeld, SettlesSlices, SettlesDue]
every_kind = pytest.mark.parametrize("kind", KINDS)


@asynccontextmanager
async def working(*jobs: Send) -> Any:
    stop = asyncio.Event()
    async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
        tasks.create_task(Crew(*jobs).work(stop))
        try:
            yield stop
        finally:
            stop.set()


async def until(check: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await check():
            await asyncio.sleep(0.005)


async def until_sent(valkey: Valkey, number: int) -> None:
    async def enough() -> bool:
        return await SENT.at().length(valkey) >= number

    await until(enough)


async def left_behind(valkey: Valkey) -> list[bytes]:
    """Purgatories that hold something."""
    found = []
    for node in await valkey.nodes():
        found += [key for key in await node.call(("KEYS", "*purgatory*")) if not key.endswith(b":alive")]
    return found


@every_kind
async def test_what_waits_and_what_comes_is_worked_off(server: Valkey, kind: type[Send]) -> None:
    await fill(server, kind, range(10))
    async with working(kind(server, SystemClock())):
        await until_sent(server, 10)
        await fill(server, kind, range(10, 15))
        await until_sent(server, 15)
    assert await sent(server) == list(range(15))
    assert await left_behind(server) == []
    facts = await RUNS.at().get(server)
    assert facts is not None and facts.started_at is not None and facts.finished_at is not None


@every_kind
async def test_several_at_once_share_the_work(server: Valkey, kind: type[Send]) -> None:
    async with working(*(kind(server, SystemClock()) for _ in range(4))):
        await fill(server, kind, range(200))
        await until_sent(server, 200)
    assert Counter(await sent(server)) == Counter(range(200))
    assert await left_behind(server) == []


async def test_a_run_beside_it_does_no_harm(server: Valkey) -> None:
    async with working(Settles(server, SystemClock())):
        await fill(server, Settles, range(100))
        while await TO_SEND.length(server):
            await Settles(server, SystemClock()).run()
        await until_sent(server, 100)
    assert Counter(await sent(server)) == Counter(range(100))


async def test_what_a_dead_worker_held_is_adopted(server: Valkey) -> None:
    await fill(server, Settles, range(6))
    await TO_SEND.worker("gone").take(server, 4, now=1.0)
    await TO_SEND.alive_key.at(worker="gone").delete(server)
    async with working(Settles(server, SystemClock())):
        await until_sent(server, 6)
    assert await sent(server) == list(range(6))
    facts = await RUNS.at().get(server)
    assert facts is not None and facts.succeeded == 6


async def test_who_was_taken_for_dead_has_no_effect(server: Valkey) -> None:
    held, go = asyncio.Event(), asyncio.Event()

    async def slow(value: int, step: Step) -> None:
        held.set()
        await go.wait()

    slowly, quickly = Settles(server, SystemClock()), Settles(server, SystemClock())
    slowly.before = slow
    await fill(server, Settles, range(3))
    async with working(slowly):
        await held.wait()
        [name] = await TO_SEND.workers_key.at().members(server)
        await TO_SEND.alive_key.at(worker=name).delete(server)
        async with working(quickly):
            await until_sent(server, 3)
            go.set()
            await asyncio.sleep(0)
            await fill(server, Settles, range(3, 6))
            await until_sent(server, 6)
    assert Counter(await sent(server)) == Counter(range(6))


async def test_stopping_gives_back_what_was_not_done(server: Valkey) -> None:
    held = asyncio.Event()
    job = Settles(server, SystemClock())
    await fill(server, Settles, range(4))
    async with working(job) as stop:

        async def wait(value: int, step: Step) -> None:
            held.set()
            await stop.wait()

        job.before = wait
        await held.wait()
    assert [*await sent(server), *await TO_SEND.queue.range(server)] == list(range(4))
    assert await sent(server) == [0]
    assert await left_behind(server) == []
    assert await TO_SEND.poison_key.at().all(server) == {}
    facts = await RUNS.at().get(server)
    assert facts is not None and (facts.stop_reason, facts.succeeded) == ("signal", 1)


async def test_work_ends_when_the_process_is_asked_to(server: Valkey) -> None:
    asked: list[bool] = []
    job = Settles(server, SystemClock(), stopping=lambda: bool(asked))
    job.before = lambda value, step: asked.append(True)
    await fill(server, Settles, range(3))
    async with asyncio.timeout(60):
        await job.work(asyncio.Event())
    assert await sent(server) == [0] and await TO_SEND.queue.range(server) == [1, 2]


async def test_idle_workers_stop_at_once(server: Valkey) -> None:
    jobs = [kind(server, SystemClock()) for kind in KINDS]
    async with asyncio.timeout(60), working(*jobs):
        await asyncio.sleep(0.05)
    assert await left_behind(server) == []


async def test_a_bad_item_ends_among_the_dead_and_the_others_go_on(
    server: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keystead.jobs.batch_job_run.LONGEST_SLEEP_EXPONENT", -5)
    job = SettlesSlices(server, SystemClock())

    def before(value: int, step: Step) -> None:
        if value == 4:
            raise GiveUp("four")
        if value == 7:
            raise ValueError("seven")

    job.before = before
    await fill(server, Settles, range(10))
    async with working(job):
        await until_sent(server, 8)

        async def both_dead() -> bool:
            return await TO_SEND.dead.length(server) == 2

        await until(both_dead)
    assert Counter(await sent(server)) == Counter({*range(10)} - {4, 7})
    assert sorted(letter.raw for letter in await TO_SEND.dead_letters(server)) == [b"4", b"7"]


async def test_something_else_that_is_away_is_waited_for(server: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keystead.jobs.batch_job_run.LONGEST_SLEEP_EXPONENT", -5)
    job, failures = Settles(server, SystemClock()), iter([True, True, False, False, False])

    def before(value: int, step: Step) -> None:
        if next(failures):
            raise Unavailable("the provider is away")

    job.before = before
    await fill(server, Settles, range(3))
    async with working(job):
        await until_sent(server, 3)
    assert await sent(server) == [0, 1, 2]


async def test_nothing_is_taken_while_those_behind_have_too_much(
    server: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "AWAY_SECONDS", 0.01)
    job, asked = Settles(server, SystemClock()), asyncio.Event()

    async def is_congested() -> bool:
        asked.set()
        return job.congested

    job.congested = True
    monkeypatch.setattr(job, "is_congested", is_congested)
    await fill(server, Settles, range(3))
    async with working(job):
        await asked.wait()
        assert await TO_SEND.length(server) == 3
        job.congested = False
        await until_sent(server, 3)


async def test_the_hash_adds_up_what_was_done_since_it_was_written(server: Valkey) -> None:
    async with working(Settles(server, SystemClock())):
        await fill(server, Settles, range(5))
        await until_sent(server, 5)

        async def written() -> bool:
            return await RUNS.at().exists(server)

        await until(written)
        facts = await RUNS.at().get(server)
        assert facts is not None and facts.stop_reason == "list_exhausted"
        first = facts.succeeded
        await fill(server, Settles, range(5, 10))
        await until_sent(server, 10)
    facts = await RUNS.at().get(server)
    assert isinstance(facts, SendRun) and first + facts.succeeded == 10


async def test_processing_knows_when_a_member_was_due(server: Valkey) -> None:
    seen: dict[int, float] = {}
    job = SettlesDue(server, SystemClock())
    job.before = lambda value, step: seen.update({value: step.due_at(value)})
    await DUE.schedule_many(server, {1: 10.5, 2: 20.25})
    async with working(job):
        await until_sent(server, 2)
    assert seen == {1: 10.5, 2: 20.25}
    with pytest.raises(DeclarationError, match="being processed"):
        Step(server, None).due_at(1)  # type: ignore[arg-type]


async def test_only_what_is_processed_can_be_settled(server: Valkey) -> None:
    step = Step(server, None, [Item(1, b"1")])  # type: ignore[arg-type]
    step.settle(1, Writes(server.layout))
    assert [item for item, _ in step.settlements()[0]] == [Item(1, b"1")] and step.settlements()[1] == []
    step.settle(1, Writes(server.layout))
    with pytest.raises(DeclarationError, match="each once"):
        step.settlements()


async def test_the_server_may_go_away_and_come_back(valkey_server: LocalServer) -> None:
    valkey_server.ensure_running()
    valkey_server.call("FLUSHALL")
    valkey = await connect(valkey_server.url)
    try:
        async with working(*(Settles(valkey, SystemClock()) for _ in range(2))):
            await fill(valkey, Settles, range(3))
            await until_sent(valkey, 3)
            for number in range(3, 9, 3):
                valkey_server.call("CLIENT", "KILL", "TYPE", "normal")
                async with asyncio.timeout(60):
                    while True:
                        try:
                            await fill(valkey, Settles, range(number, number + 3))
                            break
                        except Unavailable:
                            await asyncio.sleep(0.05)
                await until_sent(valkey, number + 3)
        assert set(await sent(valkey)) == set(range(9))
    finally:
        await valkey.aclose()


def mortal(valkey: Valkey, number: int, *, after: bool) -> list[int]:
    """Let the process die at a call of any of its tasks, before it is sent or after it was applied."""
    calls: list[int] = []
    dead: list[bool] = []

    def hooked(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def wrapped(*args: Any, **options: Any) -> Any:
            if dead:
                raise Died
            calls.append(len(calls) + 1)
            ours = len(calls) == number
            if ours and not after:
                dead.append(True)
                raise Died
            reply = await call(*args, **options)
            if ours:
                dead.append(True)
            if dead:
                raise Died
            return reply

        return wrapped

    for name in ("call", "call_block", "call_block_alone", "_run_script"):
        setattr(valkey, name, hooked(getattr(valkey, name)))
    return calls


@every_kind
async def test_dying_at_any_call_loses_nothing_and_does_nothing_twice(
    valkey: Valkey, valkey_server: LocalServer, kind: type[Send]
) -> None:
    number, survived = 0, False
    while not survived:
        number += 1
        for after in (False, True):
            await valkey.flushall()
            await fill(valkey, kind, range(4))
            doomed = await connect(valkey_server.url)
            mortal(doomed, number, after=after)
            try:
                async with working(kind(doomed, SystemClock())):
                    await until_sent(valkey, 4)
                survived = True
            except BaseExceptionGroup as error:
                assert error.split(Died)[1] is None, "it died of nothing else"
                survived = False
            finally:
                await doomed.aclose()
            workers = kind.source.workers_key.at()
            for name in await workers.members(valkey):
                await kind.source.alive_key.at(worker=name).delete(valkey)
            async with working(kind(valkey, SystemClock())):
                await until_sent(valkey, 4)
            assert Counter(await sent(valkey)) == Counter(range(4)), f"died at call {number}, after={after}"
            assert await left_behind(valkey) == []
        assert number < 40
    check_no_undeclared_keys(Registry([SHOP], layout=valkey.layout), valkey_server)


async def test_while_nothing_is_due_it_is_only_looked_when_the_next_one_is(valkey, monkeypatch) -> None:
    source, taken = DueSource(DUE), 0
    take = source.take

    async def counted(*arguments: Any) -> Any:
        nonlocal taken
        taken += 1
        return await take(*arguments)

    monkeypatch.setattr(source, "take", counted)
    for _ in range(3):
        assert (await source.wait(valkey, 10, 1000.0, 0.01)).items == []
    assert taken == 1
    await DUE.schedule_many(valkey, {7: 1005.0})
    assert (await source.wait(valkey, 10, 1004.0, 0.01)).items == []
    assert taken == 1
    found = await source.wait(valkey, 10, 1005.0, 0.01)
    assert [item.value for item in found.items] == [7]
    await source.finish(valkey, None, found.items)
    assert (await source.wait(valkey, 10, 1006.0, 0.01)).items == []
    assert taken == 3

"""Telling of a job and watching it: order, the last fifty, late comers, interruptions."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import msgspec
import pytest

from keystead.engine import Valkey, connect
from keystead.errors import NotFound, Unavailable
from keystead.jobs.keys import JOBS, PROGRESS, PROGRESS_COUNT, PROGRESS_EVENTS, Queue
from keystead.jobs.models import Indicator, JobRecord, ProgressEvent, Spawned
from keystead.jobs.progress import KEPT_EVENTS, LONGEST_MESSAGE, Bounce, Progress, Told, telling
from keystead.jobs.progress_watch import ProgressBatch, watch
from keystead.jobs.retry import RetryLater
from keystead.keys import Registry
from keystead.settings import ValkeySettings
from keystead.telemetry import counts
from keystead.testing.checks import check_no_undeclared_keys
from keystead.testing.clock import MovableClock
from keystead.testing.proxy import FaultProxy
from keystead.testing.server import LocalServer

CLOCK = MovableClock(now=1000.0)
UID = "jp_1"
MakeProxy = Callable[[], Awaitable[FaultProxy]]


async def kept(server: Valkey, uid: str = UID) -> list[ProgressEvent]:
    return await PROGRESS_EVENTS.at(uid).range(server)


def shapes(events: list[ProgressEvent]) -> list[tuple[str, str]]:
    return [(event.type, event.message) for event in events]


# -- telling -----------------------------------------------------------------------------------------------------------


async def test_every_kind_of_event_lies_in_the_list_as_documented(server: Valkey) -> None:
    progress = Progress(UID, CLOCK)
    assert await progress.queued(server) == Told(1, 0)
    await progress.started(server, "begins")
    await progress.progress(server, "mails", 3, 10)
    await progress.progress(server, "a line")
    await progress.spinner(server, "thinking")
    await progress.spawned(server, "resizes", "jp_2", "runners.resize")
    await progress.bounce(server)
    await progress.failed(server)
    assert await progress.succeeded(server) == Told(9, 0)
    raws = await server.run(("LRANGE", PROGRESS_EVENTS.at(UID).name(server.layout), 0, -1), list)
    spinner = {"type": "spinner"}
    assert [msgspec.json.decode(raw) for raw in raws] == [
        {"ordinal": ordinal, "occurred_at": 1000.0, **rest}
        for ordinal, rest in enumerate((
            {"type": "queued", "message": "waiting for its turn", "indicator": spinner},
            {"type": "started", "message": "begins", "indicator": spinner},
            {"type": "progress", "message": "mails", "indicator": {"type": "bar", "at": 3, "of": 10}},
            {"type": "progress", "message": "a line", "indicator": None},
            {"type": "progress", "message": "thinking", "indicator": spinner},
            {"type": "spawned", "message": "resizes", "indicator": None,
             "spawned": {"uid": "jp_2", "name": "runners.resize"}},
            {"type": "bounce", "message": "will go on later", "indicator": spinner},
            {"type": "failed", "message": "failed", "indicator": {"type": "final"}},
            {"type": "succeeded", "message": "done", "indicator": {"type": "final"}},
        ), 1)
    ]
    events = await kept(server)
    assert events[2].indicator == Indicator("bar", 3, 10) and events[5].spawned == Spawned("jp_2", "runners.resize")
    assert not events[0].spawned


async def test_last_fifty_are_kept_and_all_are_counted(server: Valkey) -> None:
    progress = Progress(UID, CLOCK)
    for number in range(73):
        told = await progress.progress(server, str(number))
    assert told.count == 73 and await PROGRESS_COUNT.at(UID).get(server) == 73
    events = await kept(server)
    assert [event.message for event in events] == [str(number) for number in range(23, 73)]
    assert [event.ordinal for event in events] == list(range(24, 74)) and len(events) == KEPT_EVENTS


async def test_both_keys_live_half_an_hour_from_the_last_event(server: Valkey) -> None:
    progress = Progress(UID, CLOCK)
    await progress.queued(server)
    for reference in (PROGRESS_EVENTS.at(UID), PROGRESS_COUNT.at(UID)):
        await server.run(("PEXPIRE", reference.name(server.layout), 60_000), int)
    await progress.started(server)
    for reference in (PROGRESS_EVENTS.at(UID), PROGRESS_COUNT.at(UID)):
        left = await reference.remaining_seconds(server)
        assert left is not None and 1700 < left <= 1800


async def test_long_message_is_cut(server: Valkey) -> None:
    await Progress(UID, CLOCK).progress(server, "ä" * 100_000)
    [event] = await kept(server)
    assert event.message == "ä" * LONGEST_MESSAGE


async def test_channel_gets_an_array_with_the_one_event_and_the_subscribers_are_counted(server: Valkey) -> None:
    async with server.hub().subscribe(PROGRESS.at(UID)) as listener:
        told = await Progress(UID, CLOCK).started(server)
        message = await listener.get(20)
    assert told == Told(1, 1) and message is not None
    assert msgspec.json.decode(message.payload) == [
        {"ordinal": 1, "type": "started", "message": "started", "occurred_at": 1000.0, "indicator": {"type": "spinner"}}
    ]


async def test_job_and_its_first_event_are_one_transaction(server: Valkey) -> None:
    progress = Progress(UID, CLOCK)
    async with server.pipeline(transaction=True) as pipeline:
        told = progress.queued(pipeline)
        Queue().work.push(pipeline, JobRecord("runners.x", {}, 1000.0, UID))
        assert await server.run(("EXISTS", PROGRESS_COUNT.at(UID).name(server.layout)), int) == 0
        await pipeline.execute()
    assert await told == Told(1, 0)
    assert shapes(await kept(server)) == [("queued", "waiting for its turn")]
    assert await Queue().work.length(server) == 1


async def test_wrong_type_is_refused_before_anything_is_counted(valkey: Valkey) -> None:
    await valkey.set(PROGRESS_EVENTS.at(UID).name(valkey.layout), "no list")
    with pytest.raises(Exception, match="WRONGTYPE"):
        await Progress(UID, CLOCK).queued(valkey)
    assert not await PROGRESS_COUNT.at(UID).exists(valkey)


async def test_nothing_undeclared_is_left(valkey: Valkey, valkey_server: LocalServer) -> None:
    await Progress(UID, CLOCK).queued(valkey)
    check_no_undeclared_keys(Registry([JOBS]), valkey_server)


# -- around the work ---------------------------------------------------------------------------------------------------


async def test_clean_exit_is_told_as_success(server: Valkey) -> None:
    async with telling(server, UID, CLOCK) as progress:
        await progress.progress(server, "half", 1, 2)
    assert shapes(await kept(server)) == [("started", "started"), ("progress", "half"), ("succeeded", "done")]


async def test_bounce_is_told_and_goes_no_further(valkey: Valkey) -> None:
    async with telling(valkey, UID, CLOCK):
        raise Bounce("the host goes down")
    async with telling(valkey, UID, CLOCK):
        raise Bounce
    assert shapes(await kept(valkey)) == [
        ("started", "started"), ("bounce", "the host goes down"), ("started", "started"), ("bounce", "will go on later")
    ]


async def test_failure_is_told_by_its_type_alone_and_raised(valkey: Valkey) -> None:
    with pytest.raises(ValueError, match="ada@example"):
        async with telling(valkey, UID, CLOCK):
            raise ValueError("ada@example.org is no number")
    assert shapes(await kept(valkey)) == [("started", "started"), ("failed", "failed: ValueError")]


async def test_failure_that_will_be_tried_again_is_no_end(valkey: Valkey) -> None:
    with pytest.raises(OSError):
        async with telling(valkey, UID, CLOCK, will_retry=lambda error: isinstance(error, OSError)):
            raise OSError
    with pytest.raises(RetryLater):
        async with telling(valkey, UID, CLOCK):
            raise RetryLater(5)
    assert [event.type for event in await kept(valkey)] == ["started", "bounce", "started", "bounce"]


async def test_work_that_is_cancelled_is_not_told_as_ended(valkey: Valkey) -> None:
    with pytest.raises(asyncio.CancelledError):
        async with telling(valkey, UID, CLOCK):
            raise asyncio.CancelledError
    assert [event.type for event in await kept(valkey)] == ["started"]


async def test_server_that_is_away_does_not_change_how_the_work_ends(fault_proxy: MakeProxy) -> None:
    proxy = await fault_proxy()
    far = await connect(proxy.url, settings=ValkeySettings(outage_seconds=0.2))
    ended = False
    try:
        async with telling(far, UID, CLOCK):
            await proxy.refuse()
            proxy.cut()
            with pytest.raises(Unavailable):
                await far.get("x")
        ended = True
    finally:
        await far.aclose()
    assert ended


# -- watching ----------------------------------------------------------------------------------------------------------


async def gathered(batches: AsyncIterator[ProgressBatch]) -> tuple[list[str], int]:
    """Messages and the number of missed events until the watching ends."""
    messages: list[str] = []
    missed = 0
    async with asyncio.timeout(60):
        async for batch in batches:
            messages += [event.message for event in batch.events]
            missed += batch.missed
    return messages, missed


async def test_watcher_sees_the_past_and_then_what_comes(server: Valkey) -> None:
    progress = Progress(UID, CLOCK)
    await progress.queued(server, "a")
    seen: list[str] = []
    async with asyncio.timeout(60):
        async for batch in watch(server, UID, linger_seconds=0.1):
            seen += [event.message for event in batch.events]
            assert batch.missed == 0
            if seen == ["a"]:
                await progress.started(server, "b")
                await progress.progress(server, "c", 1, 2)
            elif len(seen) == 3:
                await progress.succeeded(server, "d")
    assert seen == ["a", "b", "c", "d"]


async def test_late_watcher_learns_how_many_fell_off(server: Valkey) -> None:
    progress = Progress(UID, CLOCK)
    for number in range(60):
        await progress.progress(server, str(number))
    await progress.failed(server, "end")
    messages, missed = await gathered(watch(server, UID, linger_seconds=0.1))
    assert missed == 11 and messages == [*(str(number) for number in range(11, 60)), "end"]


async def test_watcher_of_nothing_is_told_so(server: Valkey) -> None:
    with pytest.raises(NotFound):
        await gathered(watch(server, "nobody"))


async def test_events_told_while_the_list_is_read_come_once(server: Valkey) -> None:
    """Many watchers begin at any moment of a job's life; each sees every event once and in order."""
    progress = Progress(UID, CLOCK)
    total = 40
    await progress.queued(server, "0")

    async def tell() -> None:
        for number in range(1, total):
            await progress.progress(server, str(number))
            await asyncio.sleep(0.002)
        await progress.succeeded(server, str(total))

    async def look(after: float) -> tuple[list[str], int]:
        await asyncio.sleep(after)
        return await gathered(watch(server, UID, linger_seconds=0.1, batch_seconds=0.01))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(tell())
        looks = [tasks.create_task(look(number * 0.005)) for number in range(20)]
    for each in looks:
        assert each.result() == ([str(number) for number in range(total + 1)], 0)


async def test_what_comes_together_is_handed_out_together(valkey: Valkey) -> None:
    progress = Progress(UID, CLOCK)
    await progress.queued(valkey)
    sizes = []
    async with asyncio.timeout(60):
        async for batch in watch(valkey, UID, linger_seconds=0.1, batch_seconds=2.0):
            sizes.append(len(batch.events))
            if len(sizes) == 1:
                async with valkey.pipeline(transaction=True) as pipeline:
                    for number in range(9):
                        progress.progress(pipeline, str(number))
                    progress.succeeded(pipeline)
                    await pipeline.execute()
    assert sizes == [1, 10]


async def test_watching_ends_some_time_after_the_end_and_hears_what_comes_till_then(valkey: Valkey) -> None:
    progress = Progress(UID, CLOCK)
    await progress.succeeded(valkey, "end")
    seen = []
    started = asyncio.get_running_loop().time()
    async with asyncio.timeout(60):
        async for batch in watch(valkey, UID, linger_seconds=3.0, batch_seconds=0.01):
            seen += [event.message for event in batch.events]
            if len(seen) == 1:
                await progress.progress(valkey, "afterwards")
    assert seen == ["end", "afterwards"] and asyncio.get_running_loop().time() - started >= 3.0


async def test_watching_ends_when_nothing_is_told_for_long(valkey: Valkey) -> None:
    await Progress(UID, CLOCK).started(valkey)
    assert await gathered(watch(valkey, UID, idle_seconds=0.3)) == (["started"], 0)


async def test_events_of_another_program_without_numbers_are_seen(server: Valkey) -> None:
    raw = b'{"type":"progress","message":"%s","occurred_at":1.0,"indicator":null}'
    layout = server.layout
    await server.run(("RPUSH", PROGRESS_EVENTS.at(UID).name(layout), raw % b"a"), int)
    seen: list[str] = []
    async with asyncio.timeout(60):
        async for batch in watch(server, UID, linger_seconds=0.1):
            seen += [event.message for event in batch.events]
            if seen == ["a"]:
                event = ProgressEvent("succeeded", "b", 2.0)
                await PROGRESS.at(UID).publish(server, [event])
    assert seen == ["a", "b"]


async def test_event_that_does_not_decode_hides_no_other(valkey: Valkey) -> None:
    progress = Progress(UID, CLOCK)
    await progress.queued(valkey, "a")
    await valkey.run(("RPUSH", PROGRESS_EVENTS.at(UID).name(valkey.layout), b"garbage"), int)
    await valkey.run(("INCR", PROGRESS_COUNT.at(UID).name(valkey.layout)), int)
    await progress.succeeded(valkey, "b")
    assert await gathered(watch(valkey, UID, linger_seconds=0.1)) == (["a", "b"], 1)


async def test_what_was_told_while_the_subscription_was_cut_is_seen_too(
    valkey: Valkey, fault_proxy: MakeProxy
) -> None:
    proxy = await fault_proxy()
    far = await connect(proxy.url)
    progress = Progress(UID, CLOCK)
    await progress.queued(valkey, "0")
    seen: list[str] = []
    try:
        async with asyncio.timeout(60), aclosing(watch(far, UID, linger_seconds=0.1)) as batches:
            async for batch in batches:
                seen += [event.message for event in batch.events]
                if seen == ["0"]:
                    proxy.cut()
                    for number in range(1, 5):
                        await progress.progress(valkey, str(number))
                    await progress.succeeded(valkey, "5")
    finally:
        await far.aclose()
    assert seen == ["0", "1", "2", "3", "4", "5"]


async def test_watcher_that_is_too_slow_for_the_channel_reads_the_list_instead(valkey: Valkey) -> None:
    progress = Progress(UID, CLOCK)
    await progress.queued(valkey, "first")
    messages: list[str] = []
    missed, cut_off = 0, counts.value("hub_listeners_cut_off")
    async with asyncio.timeout(60):
        async for batch in watch(valkey, UID, linger_seconds=0.1):
            messages += [event.message for event in batch.events]
            missed += batch.missed
            if messages == ["first"]:
                for _ in range(11):  # more than the listener holds, while this watcher does not read
                    async with valkey.pipeline(transaction=False) as pipeline:
                        for number in range(100):
                            progress.progress(pipeline, str(number))
                        await pipeline.execute()
                await progress.succeeded(valkey, "last")
                while counts.value("hub_listeners_cut_off") == cut_off:
                    await asyncio.sleep(0.01)
    assert messages[-1] == "last" and len(messages) + missed == 1 + 1100 + 1 and missed >= 1000

"""The jobs of push messages: registered, run now and then, at work all the time; and what happens when they die."""

import asyncio

from keystead.clock import SystemClock
from keystead.jobs import ROOMS_QUEUE, Crew
from keystead.messaging.push.jobs import CHECK_JOB, COLD_TO_HOT_JOB, SEND_JOB, PushWorkers, crew, recurring
from keystead.messaging.push.models import FailureInfo, Identifier
from keystead.messaging.push.push import FAILED, SUCCEEDED
from keystead.messaging.push.receipts import ColdToHotJob
from keystead.messaging.push.stats import RECEIPTS, TICKETS
from keystead.settings import MessagingSettings, PushSettings

from ..sending.mortal import has_died, lives
from ..sending.post import until
from .room import NOON, TOKEN, Room


async def test_every_recurring_job_can_be_run(valkey):
    room = Room(valkey)
    assert {entry.name for entry in recurring()} == {SEND_JOB, COLD_TO_HOT_JOB, CHECK_JOB}
    await room.queue()
    await room.book.jobs[SEND_JOB]()
    room.clock.advance(901)
    await room.book.jobs[COLD_TO_HOT_JOB]()
    await room.book.jobs[CHECK_JOB]()
    await room.run_jobs()
    assert len(room.succeeded) == 1
    await room.check_all()


async def test_messages_without_jobs_of_their_own_are_retried_and_confirmed(valkey):
    room = Room(valkey)
    assert SUCCEEDED.queue == FAILED.queue == ROOMS_QUEUE
    await room.queue(success=None, failure=None)
    room.provider.answers.append(FailureInfo("send", Identifier.NETWORK, True))
    await room.send()
    await room.run_jobs(times=2)
    assert await room.counted(TICKETS) == {"queued": 1, "failed_due_to_network_error": 1, "retried": 1}
    room.clock.advance(60)
    await room.send()
    room.clock.advance(901)
    await room.move()
    await room.check()
    await room.run_jobs()
    assert room.tokens.confirmed == [(TOKEN, NOON + 961)]
    await room.check_all()


async def test_the_crew_brings_a_message_from_the_queue_to_its_callback(server, monkeypatch):
    monkeypatch.setattr(ColdToHotJob, "every_seconds", 0.2)
    room = Room(server)
    room.clock = SystemClock()
    workers = PushWorkers(server, room.clock, room.provider, room.tokens, PushSettings(cold_seconds=0),
                          MessagingSettings())
    stop = asyncio.Event()
    working = asyncio.create_task(Crew(*crew(workers)).work(stop))
    for _ in range(20):
        await room.push.queue(TOKEN, title="T", body="B")

    async def done() -> bool:
        day = await RECEIPTS.read(server, RECEIPTS.day_of(NOON))
        return day.counts["succeeded"] == 20

    await until(done)
    stop.set()
    await working
    assert await room.places() == {}


async def test_whoever_dies_at_any_exchange_every_message_is_told_of_once(valkey):
    """Each step in turn is run by a process that dies; then everything is run by one that does not."""
    for step in ("courier", "cold_to_hot", "check"):
        async for mortal in lives(valkey):
            await valkey.flushall()
            room = Room(valkey)
            for place, token in enumerate((TOKEN, "ExponentPushToken[gone]")):
                await room.queue(token, uid=f"pma_{place}")
            room.provider.fates["ExponentPushToken[gone]"] = "DeviceNotRegistered"
            mortals = room.with_client(mortal)
            for each, after in (("courier", 901), ("cold_to_hot", 0), ("check", 0)):
                if each == step:
                    try:
                        await getattr(mortals, each)().run()
                    except BaseException as error:
                        if not has_died(error):
                            raise
                    for lock in ("push:send_job:lock", "push:ticket_hot_to_cold:lock", "push:check_job:lock"):
                        await valkey.delete(lock)
                await getattr(room.workers, each)().run()
                room.clock.advance(after)
            await room.run_jobs()
            assert [success.attempt.uid for success in room.succeeded] == ["pma_0"]
            assert [failure.attempt.uid for failure, _ in room.failed] == ["pma_1"]
            assert room.tokens.forgotten == [("ExponentPushToken[gone]", "receipt")]
            assert await room.places() == {}
            await room.check_all()
            if not mortal.dead:
                break


async def test_a_failure_job_that_dies_at_any_exchange_decides_once(valkey):
    from keystead.jobs import decode_data_raw
    from keystead.messaging.push import PushFailure

    async for mortal in lives(valkey):
        await valkey.flushall()
        room = Room(valkey)
        await room.queue(uid="pma_1")
        room.provider.answers.append(FailureInfo("send", Identifier.NETWORK, True))
        await room.send()
        (job,) = await room.jobs()
        failure = decode_data_raw(job.kwargs["data_raw"], PushFailure)
        try:
            await room.with_client(mortal).failures().settle(failure)
        except BaseException as error:
            if not has_died(error):
                raise
        await room.failures.settle(failure)
        assert await room.places() == {"retry": ["pma_1"]}
        await room.check_all()
        if not mortal.dead:
            break

"""The whole way over HTTP: queued, sent to a provider that misbehaves, its calls, and the callbacks."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import uvicorn
from fastapi import FastAPI

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.jobs import Crew, RecurringList
from keystead.messaging.sandbox import Account, Faults, Sandbox
from keystead.messaging.sandbox.serving import listening, serving, url_of
from keystead.messaging.sending import callbacks_relay
from keystead.messaging.sms import Inbound, Sms, TwilioGateway
from keystead.messaging.sms.jobs import RECONCILE_JOB, RECOVER_JOB, SEND_JOB, STALE_JOB, crew, recurring
from keystead.messaging.sms.keys import EARLY, NEWS, RECOVERY, SENDING
from keystead.messaging.sms.models import FailureInfo, Identifier
from keystead.messaging.sms.routes import routes
from keystead.messaging.sms.stats import EVENTS, SENDS, WEBHOOKS
from keystead.settings import SmsSettings

from .room import NUMBER, Room

LONG = 120.0  # a breaker that opened by chance probes after half a minute


def test_every_job_is_known_and_runs_now_and_then(valkey: Valkey) -> None:
    book = Room(valkey).book
    assert {entry.name for entry in recurring()} == {SEND_JOB, STALE_JOB, RECOVER_JOB, RECONCILE_JOB} <= set(book.jobs)
    assert {"sms.succeeded", "sms.failed", "sms.unreachable"} <= set(book.jobs)
    RecurringList(recurring())


async def test_single_runs_work_off_what_nobody_works_on(server: Valkey) -> None:
    room = Room(server)
    await room.queue()
    for job in (SEND_JOB, STALE_JOB, RECOVER_JOB, RECONCILE_JOB):
        await room.book.jobs[job]()
    await room.tell("SM0", "delivered")
    await room.book.jobs[RECONCILE_JOB]()
    await room.run_jobs()
    assert len(room.succeeded) == 1


async def test_texts_without_callbacks_are_retried_and_counted(server: Valkey) -> None:
    room = Room(server)
    room.provider.answers.append(FailureInfo("send", Identifier.SERVER, "500", True))
    await room.sms.queue(NUMBER, "Hello")
    await room.send()
    await room.run_jobs(times=2)
    room.clock.advance(3600)
    await room.send()
    await room.tell("SM0", "sent")
    await room.reconcile()
    assert await room.run_jobs(times=2) == 1
    assert (await room.counted(SENDS))["retried"] == 1


# -- over HTTP ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def website(app: FastAPI) -> AsyncIterator[str]:
    made = listening()
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none",
                            timeout_graceful_shutdown=2)
    web = uvicorn.Server(config)
    async with asyncio.TaskGroup() as group:
        serves = group.create_task(web._serve([made]))
        try:
            yield url_of(made)
        finally:
            web.should_exit = True
            await asyncio.wait((serves,))
            made.close()


class World:
    """A room that works, its website, and the sandbox."""

    def __init__(self, room: Room, sandbox: Sandbox) -> None:
        self.room, self.sandbox = room, sandbox
        self.ended: Counter[str] = Counter()

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(LONG):
            while not done():
                await self.room.run_jobs()
                await asyncio.sleep(0.02)

    async def settled(self) -> None:
        """Nothing waits anywhere any more."""
        valkey = self.room.valkey
        async with asyncio.timeout(LONG):
            while True:
                await self.room.run_jobs()
                left = [await NEWS.length(valkey), await RECOVERY.length(valkey), await EARLY.at().size(valkey),
                        await self.room.sms.waiting(), len(await self.room.due())]
                if not any(left):
                    return
                await asyncio.sleep(0.05)


@asynccontextmanager
async def world(valkey: Valkey, faults: Faults, **sms: Any) -> AsyncIterator[World]:
    room = Room(valkey, retry_base_seconds=0.1, retry_cap_seconds=0.3)
    room.clock = SystemClock()  # type: ignore[assignment]
    room.sms = Sms(valkey, room.clock)
    room.failures._clock = room.clock
    settings = SmsSettings(auth_token="secret", rate_per_second=0, **sms)
    app, stop = FastAPI(), asyncio.Event()
    made = listening()
    async with website(app) as url:
        sandbox = Sandbox(valkey, room.clock, url=url_of(made), account=Account(settings.account_sid, "secret"),
                          inbound_url=f"{url}/api/1/sms/inbound_webhook")
        await sandbox.faults.set("sms", faults)
        app.include_router(routes(
            [room.sms], Inbound(room.numbers), auth_token="secret", public_url=lambda: url  # type: ignore[arg-type]
        ), prefix="/api/1")
        async with serving(sandbox, made), TwilioGateway.open(settings, sandbox.sms_url) as gateway:
            workers = replace(room.with_gateway(gateway, url), sms=settings)
            async with asyncio.TaskGroup() as group:
                group.create_task(Crew(*crew(workers), callbacks_relay(valkey, room.clock)).work(stop))
                try:
                    yield World(room, sandbox)
                finally:
                    stop.set()


async def test_texts_are_sent_followed_by_signed_calls_and_called_back(server: Valkey) -> None:
    async with world(server, Faults(receipt_seconds=0.3)) as here:
        uids = {await here.room.queue(f"Hello {n}") for n in range(20)}
        await here.until(lambda: len(here.room.succeeded) >= 20)
        await here.settled()
        assert {success.sms.uid for success in here.room.succeeded} == uids and len(here.room.succeeded) == 20
        assert len([message async for message in here.sandbox.outbox.all()]) == 20
        counted = await here.room.counted(SENDS)
        assert counted == {"queued": 20, "succeeded_pending": {"accepted": 20}}
        webhooks, events = await here.room.counted(WEBHOOKS), await here.room.counted(EVENTS)
        assert webhooks["received"] == webhooks["accepted"] and sum(events["removed"].values()) == 20
        assert await here.room.pending() == {} and await SENDING.work.length(server) == 0


async def test_a_provider_at_its_worst_loses_no_text_and_sends_none_twice(valkey: Valkey) -> None:
    faults = Faults(
        receipt_seconds=0.3, server_error=0.04, cut_before=0.03, cut_after=0.1, throttle=0.03, retry_after_seconds=0.1,
        undelivered=0.1, lost=0.2, duplicated=0.3, reordered=0.3, early=0.3, unknown=0.2, seed=3,
    )
    async with world(valkey, faults, wait_seconds=1) as here:
        uids = {await here.room.queue(f"Hello {n}") for n in range(30)}
        room = here.room

        def over() -> list[str]:
            return [success.sms.uid for success in room.succeeded] + [
                failure.sms.uid for failure, settled in room.failed if settled.is_over
            ]

        await here.until(lambda: len(over()) >= 30)
        await here.settled()
        assert sorted(over()) == sorted(uids), "each text has exactly one end"
        sent = Counter([message.text async for message in here.sandbox.outbox.all()])
        assert max(sent.values()) == 1 and await room.pending() == {}
        await room.check_all()


async def test_who_texts_stop_to_the_provider_is_texted_no_more(valkey: Valkey) -> None:
    async with world(valkey, Faults(receipt_seconds=0.1)) as here:
        await here.sandbox.reply(NUMBER, "STOP")
        await here.until(lambda: NUMBER in here.room.numbers.listed)
        await here.room.queue()
        await here.until(lambda: bool(here.room.failed))
        assert here.room.failed[0][0].failure_info.subidentifier == "suppressed"
        assert here.room.numbers.listed == {NUMBER: ("Stop", None)}

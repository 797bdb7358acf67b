"""The room against the sandbox, over HTTP both ways: requests signed for SES, notifications signed by SNS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import uvicorn
from aiosmtpd.controller import Controller
from fastapi import FastAPI

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.jobs import Crew
from keystead.messaging.email import TemplateTokens, Trust, Verifier, fetching, open_gateway
from keystead.messaging.email.jobs import crew
from keystead.messaging.email.keys import EARLY, SENDING
from keystead.messaging.email.routes import routes
from keystead.messaging.email.stats import EVENTS, SENDS, WEBHOOKS
from keystead.messaging.sandbox import Account, Sandbox
from keystead.messaging.sandbox.serving import listening, serving, url_of
from keystead.messaging.sending import Lane
from keystead.settings import EmailSettings
from keystead.store import Database

from .room import Room, on_sqlite
from .test_gateway_smtp import MailServer

pytestmark = on_sqlite

HOOK = "/api/1/emails/sns-mail"


@asynccontextmanager
async def whole(valkey: Valkey, database: Database, **faults: Any) -> AsyncIterator[tuple[Room, Sandbox]]:
    """Sandbox, our HTTP door and our crew, until the block ends. Email goes out and is heard of."""
    clock, socket, door = SystemClock(), listening(), listening()
    sandbox = Sandbox(valkey, clock, url=url_of(socket), account=Account("AC0", "x"))
    settings = EmailSettings(rate_per_second=0)
    async with (
        serving(sandbox, socket), aiohttp.ClientSession() as session,
        open_gateway(settings, sandbox_url=sandbox.email_url) as gateway,
    ):
        room = Room(valkey, database, gateway=gateway, clock=clock, retry_base_seconds=0.2, retry_cap_seconds=0.5)
        trust = Trust(frozenset((sandbox.topic_arn,)), sandbox.certificate_url)
        app = FastAPI()
        app.include_router(routes([room.news], Verifier(trust, clock, fetching(session)), room.unsubscribing,
                                  TemplateTokens(b"k" * 32, clock)), prefix="/api/1")
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=2))
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            serves = group.create_task(server._serve([door]))
            await sandbox.subscribe(url_of(door) + HOOK)
            await sandbox.faults.change("email", {"receipt_seconds": 0.1, **faults})
            group.create_task(Crew(*crew(room.workers)).work(stop))
            try:
                yield room, sandbox
            finally:
                stop.set()
                server.should_exit = True
                await asyncio.wait((serves,))
                door.close()


async def until_settled(room: Room, count: int, seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while True:
            await room.run_jobs()
            over = [failure for failure, after in room.failed if after.name != "RETRY"]
            if len(room.succeeded) + len(over) >= count:
                return
            await asyncio.sleep(0.02)


async def test_email_goes_out_and_its_end_is_heard_of(server: Valkey, database: Database) -> None:
    async with whole(server, database) as (room, sandbox):
        uids = [await room.queue(to) for to in (
            "ada@example.com", "bounce@simulator.amazonses.com", "softbounce@simulator.amazonses.com")]
        await until_settled(room, 3)
        assert [told.email.uid for told in room.succeeded] == [uids[0]]
        assert {failure.email.uid: failure.info.extra for failure, _ in room.failed} == {
            uids[1]: "Permanent/General", uids[2]: "Transient/General"}
        (shown,) = await sandbox.outbox.messages("email", "ada@example.com")
        assert "123456" in shown.html and "123456" in shown.text and shown.tags["uid"] == uids[0]
        assert dict(shown.headers)["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        assert await room.suppression.emails(["bounce@simulator.amazonses.com"])
        assert not await room.suppression.emails(["softbounce@simulator.amazonses.com"])
        assert await room.pending() == {}
        assert (await room.counted(EVENTS))["attempted"] == {"found": 3}
        assert (await room.counted(WEBHOOKS))["accepted"] == 3


async def test_a_provider_that_misbehaves_in_every_way_loses_and_doubles_nothing(
    server: Valkey, database: Database
) -> None:
    faults = {"throttle": 0.15, "retry_after_seconds": 0.1, "server_error": 0.15, "duplicated": 0.5, "early": 0.5,
              "reordered": 0.3, "seed": 11}
    async with whole(server, database, **faults) as (room, sandbox):
        uids = [await room.queue(f"person{number}@example.com") for number in range(30)]
        await until_settled(room, 30)
        given_up = {failure.email.uid for failure, after in room.failed if after.name == "ABANDON"}
        delivered = [told.email.uid for told in room.succeeded]
        assert sorted([*delivered, *given_up]) == sorted(uids), "each ends once"
        for number in range(30):
            assert len(await sandbox.outbox.messages("email", f"person{number}@example.com")) <= 1
        counted = await room.counted(SENDS)
        assert sum(counted["accepted"].values()) == len(delivered)
        assert await EARLY.size(room.valkey) == 0


async def test_an_email_whose_answer_was_lost_is_not_sent_twice(valkey: Valkey, database: Database) -> None:
    async with whole(valkey, database, cut_after=1.0) as (room, sandbox):
        uid = await room.queue()
        async with asyncio.timeout(40):
            while not await EARLY.size(valkey):
                await asyncio.sleep(0.02)
        await sandbox.faults.clear()
        # What the sender would look at again in half a minute is looked at now.
        ((item, _),) = await SENDING.retrying(Lane.NORMAL).range(valkey)
        carried = await room.workers.sender().carry([item])
        assert carried[0].counts == {"attempted": 1, "templated": 1, "accepted": 1}
        assert len(await sandbox.outbox.messages("email", "ada@example.com")) == 1
        assert item.uid == uid and room.failed == []


async def test_email_goes_through_a_real_mail_server(
    valkey: Valkey, database: Database, unused_tcp_port: int
) -> None:
    mail_server = MailServer()
    controller = Controller(mail_server, hostname="127.0.0.1", port=unused_tcp_port)
    controller.start()
    try:
        settings = EmailSettings(provider="smtp", url=f"smtp://127.0.0.1:{unused_tcp_port}")
        async with open_gateway(settings) as gateway:
            room = Room(valkey, database, gateway=gateway)
            uid = await room.queue()
            await room.queue("nobody@example.com")
            counts = await room.send()
            assert (counts["accepted"], counts["failed_permanently"]) == (1, 1)
            assert await room.reconcile() == {"attempted": 1, "succeeded_and_found": 1}
            await room.run_jobs()
    finally:
        controller.stop()
    assert [told.email.uid for told in room.succeeded] == [uid]
    assert [failure.info.error_identifier for failure, _ in room.failed] == ["SESClientError"]
    (mail,) = mail_server.taken
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click" and "123456" in mail.as_string()

"""A whole installation writes log lines about people's messages, and no line says whose they are or what they say."""

import asyncio
import inspect
import io
import logging
import re
import sys
import time

import httpx
import pytest
import structlog

from keystead.edge import user_token
from keystead.jobs import ROOMS_QUEUE, Jobs
from keystead.members import Users
from keystead.messaging.email import Email
from keystead.messaging.sandbox import Outbox
from keystead.messaging.sms import TwilioGateway
from keystead.telemetry import configure_logging, log_lines
from keystead.web.links import program_token
from tests.web.test_serving import installation, serving

PATIENCE_SECONDS = 180.0
PHONE, OTHER_PHONE = "+14155550123", "+442071838750"
MAIL, BAD_MAIL = "grace.hopper@mail.example.com", "nobody.knows@mail.example.com"
DEVICE = "ExponentPushToken[planted-device-0001]"
NAME, FAMILY = "Gracewell", "Hopperton"
WORDS = "plantedwordsofthemessage"
PLANTED = (
    PHONE, PHONE[1:], "415-555-0123", OTHER_PHONE, OTHER_PHONE[1:], MAIL, "grace.hopper", BAD_MAIL, "nobody.knows",
    DEVICE, "planted-device-0001", NAME, FAMILY, WORDS,
)


@pytest.fixture
def written(monkeypatch):
    """Everything that is logged, at every level, by us and by others."""
    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    monkeypatch.setattr(sys, "stderr", stream)
    configure_logging("debug", "json")
    log_lines.clear()
    plain = logging.StreamHandler(stream)
    library = logging.getLogger("keystead")
    library.addHandler(plain)
    yield stream
    library.removeHandler(plain)
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


async def until(what):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if found := await what():
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(f"it did not come true in time: {inspect.getsource(what)}")


async def test_no_line_holds_an_address_a_name_a_token_or_words(tmp_path, written, monkeypatch):
    app = installation(tmp_path, **{
        "messaging.quiet_from_hour": 0, "messaging.quiet_until_hour": 0, "messaging.same_content_seconds": 0,
        "messaging.retry_base_seconds": 0.1,
    })
    tokens: list[str] = []

    async def walk(ready):
        async with app.running(public_url=ready.url) as running, httpx.AsyncClient(
            timeout=60, base_url=ready.url
        ) as client:
            programs = program_token(app, "shop", ("messaging", "users", "jobs"), lasts_seconds=600)
            tokens.append(programs)
            await _walk(running, client, programs, tokens, monkeypatch)

    await serving(app, walk, seconds=900)
    everything = written.getvalue() + "\n".join(f"{line.event} {line.fields}" for line in log_lines.after())
    assert '"room"' in everything and "job failed" in everything and "request failed" in everything
    found = {secret: [line[:300] for line in everything.splitlines() if secret in line][:3]
             for secret in (*PLANTED, *tokens) if secret in everything}
    assert not found


async def _walk(running, client, programs, tokens, monkeypatch):
    person = await running.users.ensure("scenario", "grace", given_name=NAME, family_name=FAMILY)
    member = user_token(running.tickets, person.sub, lasts_seconds=600)
    tokens.append(member)
    as_program = {"authorization": f"Bearer {programs}", "x-user-sub": person.sub}
    as_member = {"authorization": f"Bearer {member}"}
    for path, body in (
        ("phones", {"phone_number": PHONE, "verified": True}), ("emails", {"email": MAIL, "verified": True}),
    ):
        answer = await client.post(f"/api/1/users/me/contacts/{path}", headers=as_program, json=body)
        assert answer.status_code == 201, answer.text
    await client.post("/api/1/notifications/push/tokens/", headers=as_member,
                      json={"push_token": DEVICE, "platform": "ios"})
    outbox = Outbox(running.valkey)

    async def touch(channel):
        answer = await client.post("/api/1/touches", headers=as_program, json={
            "user_sub": person.sub, "event_slug": "daily_reminder", "channel": channel,
            "event_parameters": {"name": f"{NAME} {WORDS}", "url": "https://app.example.com/l/abc"},
        })
        assert answer.status_code == 202, answer.text

    # Sent, delivered and clicked on every channel.
    for channel, address in (("sms", PHONE), ("email", MAIL), ("push", DEVICE)):
        await touch(channel)
        await until(lambda channel=channel, address=address: outbox.messages(channel, address))
    await client.get("/a/planted-code", headers={"accept": "text/html"})

    # A bounce, a provider that fails, and one that drops the line.
    for channel, faults in (("email", {"undelivered": 1.0, "receipt_seconds": 0.0}), ("sms", {"server_error": 1.0}),
                            ("push", {"cut_before": 1.0})):
        answer = await client.put(f"/api/1/sandbox/{channel}/faults", headers=as_program, json=faults)
        assert answer.status_code == 200, answer.text
    for channel in ("email", "sms", "push"):
        await touch(channel)
    await asyncio.sleep(3)
    for channel in ("email", "sms", "push"):
        await client.put(f"/api/1/sandbox/{channel}/faults", headers=as_program, json={})

    # STOP comes in, and from a number that is none.
    sandbox = running.switchboard._sandbox()
    for number in (PHONE, OTHER_PHONE):
        await sandbox.reply(number, "STOP")
        await sandbox.reply(number, f"why do you write, {WORDS}")
    await until(lambda: running.switchboard.suppression.phones([PHONE]))

    # Requests that are wrong, with everything in them.
    for send in (
        client.get(f"/api/1/users/{MAIL}", headers=as_program),
        client.get("/api/1/users", params={"cursor": MAIL, "limit": PHONE}, headers=as_program),
        client.post("/api/1/touches", headers=as_program, content=f'{{"user_sub": "{MAIL}"'.encode()),
        client.post("/api/1/touches", headers=as_program,
                    json={"user_sub": MAIL, "event_slug": PHONE, "channel": NAME}),
        client.post("/api/1/users/me/contacts/emails", headers=as_member, json={"email": f"{BAD_MAIL} {WORDS}"}),
        client.post("/api/1/sms/webhook", data={"From": PHONE, "Body": WORDS, "MessageSid": "SM1"}),
        client.post("/api/1/emails/sns-mail", content=f'{{"Message": "{MAIL} {WORDS}"}}'.encode()),
        client.get(f"/api/1/nowhere/{MAIL}?to={PHONE}", headers={"authorization": f"Bearer {NAME}.{FAMILY}"}),
        client.get("/api/1/users", headers={"x-request-id": MAIL, "user-agent": NAME, **as_program}),
    ):
        await send

    # Exceptions whose words are those of people: in a route, in a job, in a carrier, and in a task of nobody.
    words = f"{NAME} {FAMILY} <{MAIL}> {PHONE} {WORDS}"

    async def broken(*_, **__):
        raise ValueError(words)

    with monkeypatch.context() as patch:
        patch.setattr(Users, "get", broken)
        patch.setattr(Email, "queue", broken)
        patch.setattr(TwilioGateway, "create", broken)
        await Jobs(running.valkey, clock=running.clock).options(queue=ROOMS_QUEUE, tries=1).enqueue(
            "alerts.mail", uid="alert-1", to=MAIL, subject=words, text=words)
        for path in (f"/api/1/users/{person.sub}", f"/api/1/users/{MAIL}"):
            await client.get(path, headers=as_program)
        await running.switchboard.sms.queue("+4930901820", WORDS)
        await until(_dead_job(running))
        await asyncio.sleep(2)
    logging.getLogger("asyncio").error("Task exception was never retrieved\nfuture: <%s>", words)
    logging.getLogger("uvicorn.error").error("ASGI failed for %s", MAIL, exc_info=ValueError(words))


def _dead_job(running):
    from keystead.jobs.keys import Queue

    async def found():
        letters = await Queue(ROOMS_QUEUE).work.dead.range(running.valkey)
        return [letter for letter in letters if re.search("alerts.mail", str(letter.raw))]

    return found

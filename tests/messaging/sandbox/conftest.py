"""A sandbox over the test server, asked without a network or served on loopback, and somebody who listens to it."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import urlencode

import pytest
from aiohttp import web

from keystead.messaging.sandbox.http import Answer, Asked
from keystead.messaging.sandbox.sandbox import Sandbox
from keystead.messaging.sandbox.serving import listening, serving, url_of
from keystead.messaging.sandbox.twilio import Account

ACCOUNT = Account("AC0", "secret")
BASIC = {"authorization": "Basic " + base64.b64encode(b"AC0:secret").decode()}
AWS = {"x-amz-date": "20260101T000000Z", "authorization": (
    "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-west-2/ses/aws4_request, "
    f"SignedHeaders=host;x-amz-date, Signature={'0' * 64}")}
MESSAGES = "/twilio/2010-04-01/Accounts/AC0/Messages.json"
PUSH = "/expo/--/api/v2/push/send"
RECEIPTS = "/expo/--/api/v2/push/getReceipts"
MAIL = "/ses/v2/email/outbound-emails"


class HandClock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.at = 1_800_000_000.0

    def now(self) -> float:
        return self.at


async def until(holds: Callable[[], Awaitable[object]], seconds: float = 20.0) -> None:
    """Wait until something holds; far longer than it should take."""
    async with asyncio.timeout(seconds):
        while not await holds():
            await asyncio.sleep(0.01)


class Asking:
    """Requests to a sandbox in the words of the providers' clients."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    async def json(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, object, Answer]:
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        path, _, query = path.partition("?")
        answer = await self.sandbox.handle(Asked(method, path, query, headers, raw))
        assert answer is not None, "the connection was cut"
        return answer.status, json.loads(answer.body), answer

    async def text(self, to: str = "+15550001", body: str = "hello", **more: str) -> tuple[int, dict]:
        form = {"To": to, "Body": body, "MessagingServiceSid": "MG0", **more}
        answer = await self.sandbox.handle(Asked("POST", MESSAGES, "", BASIC, urlencode(form).encode()))
        assert answer is not None, "the connection was cut"
        return answer.status, json.loads(answer.body)

    async def mail(self, to: str = "ada@example.com", **more: object) -> tuple[int, dict, Answer]:
        body = {
            "FromEmailAddress": "Keystead <hello@example.com>", "Destination": {"ToAddresses": [to]},
            "ReplyToAddresses": ["support@example.com"],
            "Content": {"Simple": {
                "Subject": {"Data": "Good day", "Charset": "UTF-8"},
                "Body": {"Text": {"Data": "plain"}, "Html": {"Data": "<b>rich</b>"}},
                "Headers": [{"Name": "List-Unsubscribe", "Value": "<https://example.com/u>"}],
            }},
            "EmailTags": [{"Name": "uid", "Value": "em_1"}], **more,
        }
        status, found, answer = await self.json("POST", MAIL, body, **AWS)
        assert isinstance(found, dict)
        return status, found, answer

    async def push(self, *tokens: str, **more: object) -> list[dict]:
        messages = [{"to": token, "title": "T", "body": "B", "channelId": "default", **more} for token in tokens]
        status, found, _ = await self.json("POST", PUSH, messages)
        assert status == 200, found
        return found["data"]


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def sandbox(valkey, clock) -> Sandbox:
    return Sandbox(valkey, clock, url="http://127.0.0.1:1", account=ACCOUNT, key_bits=1024)


@pytest.fixture
def asking(sandbox) -> Asking:
    return Asking(sandbox)


class Listener:
    """Takes webhooks, and answers them as told."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[web.Response] = []
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        self.got.append((str(request.url), {k.lower(): v for k, v in request.headers.items()}, await request.read()))
        return self.answers.pop(0) if self.answers else web.Response(status=200)


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    found = Listener()
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", found.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield found
    finally:
        await runner.cleanup()


@pytest.fixture
async def served(valkey, listener) -> AsyncIterator[Sandbox]:
    """A sandbox that answers on loopback and works; receipts come after a moment."""
    from keystead.clock import SystemClock

    made = listening()
    sandbox = Sandbox(valkey, SystemClock(), url=url_of(made), account=ACCOUNT, key_bits=1024,
                      inbound_url=listener.url + "/inbound?x=1")
    await sandbox.faults.change(None, {"receipt_seconds": 0.05})
    async with serving(sandbox, made):
        yield sandbox

"""Expo's API: real HTTP against the sandbox, and answers that no provider should give."""

import gzip
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from keystead.clock import SystemClock
from keystead.messaging.push import ExpoGateway, Push
from keystead.messaging.push.gateway import NOT_CONNECTED, Answer, _Receipts, _Tickets, read_answer
from keystead.messaging.push.models import FailureInfo, Identifier, PushReceipt
from keystead.messaging.push.receipts import failure_of
from keystead.messaging.sandbox.sandbox import Sandbox
from keystead.messaging.sandbox.serving import listening, serving, url_of
from keystead.messaging.sandbox.twilio import Account
from keystead.settings import PushSettings

from ..sending.post import until
from .room import TOKEN


def message(valkey, token: str = TOKEN):
    return Push(valkey, SystemClock()).outgoing(token, title="Hello", body="Wörld", channel_id="daily")


@pytest.fixture
async def sandbox(valkey) -> AsyncIterator[Sandbox]:
    made = listening()
    served = Sandbox(valkey, SystemClock(), url=url_of(made), account=Account("AC0", "secret"), key_bits=1024)
    await served.faults.change(None, {"receipt_seconds": 0.05})
    async with serving(served, made):
        yield served


@pytest.fixture
async def expo(sandbox) -> AsyncIterator[ExpoGateway]:
    async with ExpoGateway.open(PushSettings(access_token="secret"), f"{sandbox.base_url}/expo") as gateway:
        yield gateway


async def test_tickets_come_in_the_order_of_the_messages_and_receipts_by_their_ids(valkey, expo):
    gone = "ExponentPushToken[unregistered-1]"
    first, second, third = await expo.send([message(valkey), message(valkey, gone), message(valkey)])
    assert first.status == third.status == "ok" and first.id and third.id and first.id != third.id
    assert second.status == "error" and (second.details or {})["error"] == "DeviceNotRegistered"

    async def there() -> bool:
        return len(await expo.receipts([first.id, third.id])) == 2

    await until(there)
    assert await expo.receipts([first.id, "unknown"]) == {first.id: PushReceipt("ok")}


@pytest.mark.parametrize(
    ("fault", "identifier"),
    [({"server_error": 1.0}, Identifier.SERVER), ({"throttle": 1.0}, Identifier.CLIENT_429),
     ({"cut_before": 1.0}, Identifier.NETWORK), ({"cut_after": 1.0}, Identifier.NETWORK)],
)
async def test_a_provider_in_trouble_is_an_answer_that_may_pass(valkey, sandbox, expo, fault, identifier):
    await sandbox.faults.change("push", {**fault, "retry_after_seconds": 3.0})
    for answer in (await expo.send([message(valkey)]), await expo.receipts(["x"])):
        assert isinstance(answer, FailureInfo)
        assert answer.identifier is identifier and answer.retryable
        if identifier is Identifier.CLIENT_429:
            assert answer.retry_after_seconds == 3.0


async def test_the_request_is_what_the_provider_documents(valkey):
    got = {}

    async def take(request: web.Request) -> web.Response:
        got.update({name.lower(): value for name, value in request.headers.items()})
        raw = await request.read()
        got["body"] = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        return web.json_response({"data": [{"status": "ok", "id": "t"}]})

    app = web.Application()
    app.router.add_post("/--/api/v2/push/send", take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with ExpoGateway.open(PushSettings(access_token="secret", url=url)) as gateway:
            assert len(await gateway.send([message(valkey)])) == 1
    finally:
        await runner.cleanup()
    assert got["authorization"] == "Bearer secret" and got["content-encoding"] == "gzip"
    assert got["content-type"] == "application/json; charset=utf-8"
    assert got["body"] == [{"to": TOKEN, "title": "Hello", "body": "Wörld", "channelId": "daily"}]


async def test_nobody_there_is_an_answer(valkey):
    async with ExpoGateway.open(PushSettings(url="http://127.0.0.1:9")) as gateway:
        answer = await gateway.send([message(valkey)])
    assert isinstance(answer, FailureInfo) and answer.identifier is Identifier.NETWORK and answer.retryable
    assert answer.extra == NOT_CONNECTED, "so it is known that nothing was sent"


@pytest.mark.parametrize(
    ("status", "identifier", "retryable"),
    [(0, "NetworkError", True), (301, "ClientErrorOther", False), (400, "ClientErrorOther", False),
     (401, "ClientErrorOther", False), (429, "ClientError429", True), (500, "ServerError", True),
     (503, "ServerError", True)],
)
def test_each_status_has_its_failure(status, identifier, retryable):
    found = read_answer("check", Answer(status), _Receipts)
    assert isinstance(found, FailureInfo)
    assert (found.identifier, found.retryable, found.action) == (identifier, retryable, "check")


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"data":{}}', b'{"data":[1]}', b"\xff\xfe",
     b'{"data":[],"errors":[{"code":"X","message":"no"}]}', b"[" * 100_000],
)
def test_an_answer_of_the_wrong_shape_is_our_error_and_final(body):
    found = read_answer("send", Answer(200, body), _Tickets)
    assert isinstance(found, FailureInfo) and found.identifier is Identifier.INTERNAL and not found.retryable


async def test_tickets_that_are_missing_fail_the_whole_request(valkey, monkeypatch):
    async with ExpoGateway.open(PushSettings(url="http://127.0.0.1:9")) as gateway:
        async def answer(path: str, body: object) -> Answer:
            return Answer(200, b'{"data":[{"status":"ok","id":"t"}]}')

        monkeypatch.setattr(gateway, "_post", answer)
        found = await gateway.send([message(valkey), message(valkey)])
    assert isinstance(found, FailureInfo) and found.identifier is Identifier.INTERNAL and not found.retryable


def test_a_word_that_is_new_to_us_fails_one_message_and_not_a_thousand():
    body = b'{"data": {"a": {"status": "ok"}, "b": {"status": "unheard of"}}}'
    found = read_answer("check", Answer(200, body), _Receipts)
    assert not isinstance(found, FailureInfo)
    assert failure_of(found.data["a"]) is None
    failed = failure_of(found.data["b"])
    assert failed is not None and failed.identifier is Identifier.INTERNAL and not failed.retryable

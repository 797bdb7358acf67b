"""The provider's answers: what each means for a text; and what it is asked over HTTP."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from keystead.engine import Valkey
from keystead.messaging.sms.gateway import NOT_CONNECTED, Answer, OneAtATime, Read, TwilioGateway, classified
from keystead.messaging.sms.keys import TWILIO_LOCK
from keystead.messaging.sms.models import FailureInfo, Identifier, MessageResource
from keystead.messaging.sms.statuses import Status
from keystead.settings import SmsSettings
from keystead.testing.clock import MovableClock

DATE = "Thu, 24 Aug 2023 05:01:45 +0000"
AT = 1692853305.0


def resource(**changed: object) -> dict[str, object]:
    return {"sid": "SM1", "status": "accepted", "date_updated": DATE, "date_created": DATE, "error_code": None,
            "error_message": None, "to": "+14155550100", "body": "Hello", **changed}


def meaning(status: int, document: object = None, *, raw: bytes | None = None) -> tuple[str, str | None, bool]:
    found = classified(Answer(status, json.dumps(document).encode() if raw is None else raw))
    assert isinstance(found, FailureInfo) and found.action == "send"
    return found.identifier.value, found.subidentifier, found.retryable


@pytest.mark.parametrize(("status", "body", "expected"), [
    (0, b"", ("NetworkError", None, True)),
    (503, b'{"code": 21610}', ("ServerError", "503", True)),
    (500, b"<html>", ("ServerError", "500", True)),
    (429, b"slow down", ("ClientError429", None, True)),
    (429, b"{}", ("ClientError429", None, True)),
    (404, b"<html>", ("ClientErrorOther", "404", False)),
    (302, b"", ("ClientErrorOther", "302", False)),
    (201, b"<html>", ("InternalError", None, False)),
    (201, b"[1]", ("InternalError", None, False)),
    (429, b'{"code": 20429}', ("ApplicationErrorRatelimit", "20429", True)),
    (400, b'{"code": 14107}', ("ApplicationErrorRatelimit", "14107", True)),
    (400, b'{"code": "63017"}', ("ApplicationErrorRatelimit", "63017", True)),
    (400, b'{"code": 21610, "message": "unsubscribed", "status": 400}', ("ApplicationErrorOther", "21610", False)),
    (403, b'{"code": 20003}', ("ApplicationErrorOther", "20003", False)),
])
def test_a_refusal_has_the_documented_class(status: int, body: bytes, expected: tuple[str, str | None, bool]) -> None:
    assert meaning(status, raw=body) == expected


def test_the_code_of_an_error_body_is_read_on_any_refusal() -> None:
    """Defect 6: only message resources were looked at, so nobody who said STOP was ever suppressed."""
    found = classified(Answer(400, b'{"code": 21610, "message": "Attempt to send to unsubscribed recipient"}', 7.0))
    assert found == FailureInfo("send", Identifier.APPLICATION, "21610", False,
                                "Attempt to send to unsubscribed recipient", 7.0)


def test_a_message_that_failed_at_once_is_a_failure() -> None:
    assert meaning(201, resource(status="failed", error_code=30005)) == ("ApplicationErrorOther", "30005", False)
    assert meaning(201, resource(status="failed")) == (
        "ApplicationErrorOther", "failure_status_without_error_code", False
    )
    assert meaning(201, resource(status="canceled", error_code=30022)) == ("ApplicationErrorRatelimit", "30022", True)


@pytest.mark.parametrize("broken", [
    {"sid": None}, {"sid": "SM1:x"}, {"sid": "x" * 65}, {"status": "dispatched"}, {"status": "lost"}, {"status": 5},
    {"date_updated": None}, {"date_updated": "yesterday"}, {"date_updated": 5},
])
def test_what_is_no_message_is_an_internal_error(broken: dict[str, object]) -> None:
    assert meaning(201, resource(**broken))[0] == "InternalError"


@pytest.mark.parametrize("status", ["accepted", "queued", "sent", "read", "receiving", "partially_delivered"])
def test_a_message_that_was_taken_is_returned(status: str) -> None:
    found = classified(Answer(201, json.dumps(resource(status=status)).encode()))
    assert found == MessageResource("SM1", Status(status), None, AT)


# -- over HTTP ---------------------------------------------------------------------------------------------------------

SETTINGS = SmsSettings(account_sid="AC1", auth_token="secret", service_sid="MG1")


@asynccontextmanager
async def provider(answer: Callable[[web.Request], web.StreamResponse]) -> AsyncIterator[TwilioGateway]:
    async def handle(request: web.Request) -> web.StreamResponse:
        await request.post()
        return answer(request)

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", handle)
    async with TestServer(app) as server, TwilioGateway.open(SETTINGS, str(server.make_url(""))) as gateway:
        yield gateway


async def test_a_text_is_asked_for_as_documented() -> None:
    seen: list[tuple[object, ...]] = []

    def answer(request: web.Request) -> web.Response:
        form = dict(request._post or {})
        seen.append((request.method, request.path, request.headers["Authorization"], form))
        return web.json_response(resource(), status=201)

    async with provider(answer) as gateway:
        taken = await gateway.create("+14155550100", "Hi & bye", "https://x.example/cb?uid=1")
        assert isinstance(taken, MessageResource)
        await gateway.create("+14155550100", "Hi", "")
    path, log_in = "/2010-04-01/Accounts/AC1/Messages.json", f"Basic {b64encode(b'AC1:secret').decode()}"
    form = {"MessagingServiceSid": "MG1", "To": "+14155550100", "Body": "Hi & bye"}
    assert seen[0] == ("POST", path, log_in, {**form, "StatusCallback": "https://x.example/cb?uid=1"})
    assert seen[1] == ("POST", path, log_in, {**form, "Body": "Hi"})


async def test_a_message_is_read_by_its_sid() -> None:
    answers = {
        "SM1": web.json_response, "SM2": lambda _: web.json_response(resource(sid="SM9")),
        "SM3": lambda _: web.json_response({"code": 20404}, status=404),
        "SM4": lambda _: web.Response(status=429, headers={"Retry-After": "3"}),
        "SM5": lambda _: web.Response(text="<"),
    }

    def answer(request: web.Request) -> web.Response:
        sid = request.path.rpartition("/")[2].removesuffix(".json")
        return answers[sid](resource(status="undelivered", error_code=30003, error_message="unreachable"))

    async with provider(answer) as gateway:
        read = await gateway.read("SM1")
        assert read == Read(200, MessageResource("SM1", Status.UNDELIVERED, "30003", AT), "unreachable")
        assert (await gateway.read("SM2")) == Read(200)
        assert (await gateway.read("SM3")).status == 404
        assert (await gateway.read("SM4")) == Read(429, retry_after_seconds=3.0)
        assert (await gateway.read("SM5")) == Read(200)


async def test_messages_to_a_number_are_searched() -> None:
    def answer(request: web.Request) -> web.Response:
        if request.query["To"] != "+14155550100":
            return web.Response(status=500)
        other = resource(to="+14155550199")
        return web.json_response({"messages": [resource(), other, resource(sid="SM2", body=None), "?", {"sid": 1}]})

    async with provider(answer) as gateway:
        found = await gateway.search("+14155550100")
        assert found is not None
        assert [(message.resource.sid, message.body, message.created_at) for message in found] == [
            ("SM1", "Hello", AT), ("SM2", "", AT)
        ]
        assert await gateway.search("+14155550101") is None


async def test_a_provider_that_is_away_is_an_answer() -> None:
    async with TwilioGateway.open(SETTINGS, "http://127.0.0.1:9") as gateway:
        failed = await gateway.create("+14155550100", "Hi", "")
        assert failed == FailureInfo("send", Identifier.NETWORK, None, True, NOT_CONNECTED)
        assert await gateway.read("SM1") == Read(0)
        assert await gateway.search("+14155550100") is None


async def test_single_runs_ask_the_provider_one_at_a_time(valkey: Valkey) -> None:
    busy, most = 0, 0

    class Slow:
        async def read(self, sid: str) -> Read:
            nonlocal busy, most
            busy += 1
            most = max(most, busy)
            await asyncio.sleep(0.02)
            busy -= 1
            return Read(404)

        create = search = None

    gateways = [OneAtATime(Slow(), valkey, MovableClock(now=1000.0)) for _ in range(2)]  # type: ignore[arg-type]
    await asyncio.gather(*(gateways[place % 2].read("SM1") for place in range(4)))
    assert most == 1 and not await TWILIO_LOCK.at().reference.exists(valkey)

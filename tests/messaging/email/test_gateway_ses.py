"""SES: what is sent, and what its answers mean."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from keystead.errors import Invalid
from keystead.messaging.email.gateway import Accepted, Mail, NoCredentials, NotAccepted, allowed_rate, open_gateway
from keystead.messaging.email.gateway_ses import SesGateway
from keystead.settings import EmailSettings

MAIL = Mail("em_1", "ada@example.com", "Grüße", "<p>x</p>", "x", "notice", (("List-Unsubscribe", "<https://x>"),), 3)


class Provider:
    """Answers as it is told, and keeps what it was asked."""

    def __init__(self) -> None:
        self.status, self.body = 200, b'{"MessageId":"m-1"}'
        self.headers: dict[str, str] = {}
        self.in_pieces = False
        self.asked: list[tuple[str, dict[str, Any], dict[str, str]]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else {}
        self.asked.append((request.path, body, dict(request.headers)))
        if self.status == 0:
            assert request.transport is not None
            request.transport.abort()
        if self.in_pieces:
            response = web.StreamResponse(status=self.status)
            response.content_length = len(self.body)
            await response.prepare(request)
            for place in range(len(self.body)):
                await response.write(self.body[place:place + 1])
                await asyncio.sleep(0.005)
            return response
        return web.Response(status=self.status or 200, body=self.body, headers=self.headers)


@asynccontextmanager
async def provider(port: int) -> AsyncIterator[Provider]:
    one = Provider()
    app = web.Application()
    app.router.add_route("*", "/{any:.*}", one.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield one
    finally:
        await runner.cleanup()


def settings(port: int, **changed: Any) -> EmailSettings:
    given = {"provider": "ses", "url": f"http://127.0.0.1:{port}", "access_key": "AKIDEXAMPLE", "secret_key": "secret"}
    return EmailSettings(**{**given, **changed})


async def test_an_email_is_sent_as_the_api_wants_it_and_signed(unused_tcp_port: int) -> None:
    async with provider(unused_tcp_port) as ses, SesGateway.open(
        settings(unused_tcp_port, configuration_set="events")
    ) as gateway:
        assert await gateway.send(MAIL) == Accepted("m-1")
    path, body, headers = ses.asked[0]
    assert path == "/v2/email/outbound-emails"
    assert headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/us-west-2/ses/aws4_request" in headers["Authorization"]
    assert body["FromEmailAddress"] == "Keystead <hello@example.com>"
    assert body["Destination"] == {"ToAddresses": ["ada@example.com"]}
    assert body["ReplyToAddresses"] == ["support@example.com"] and body["ConfigurationSetName"] == "events"
    simple = body["Content"]["Simple"]
    assert simple["Subject"] == {"Data": "Grüße", "Charset": "UTF-8"}
    assert {name: part["Data"] for name, part in simple["Body"].items()} == {"Html": "<p>x</p>", "Text": "x"}
    assert {"Name": "List-Unsubscribe", "Value": "<https://x>"} in simple["Headers"]
    assert {each["Name"]: each["Value"] for each in body["EmailTags"]} == {
        "uid": "em_1", "lane": "3", "template": "notice"}


async def test_a_name_in_other_letters_is_encoded(unused_tcp_port: int) -> None:
    wanted = settings(unused_tcp_port, sender_name="Grüße, GmbH")
    async with provider(unused_tcp_port) as ses, SesGateway.open(wanted) as gateway:
        await gateway.send(MAIL)
    sender = ses.asked[0][1]["FromEmailAddress"]
    assert sender.isascii() and sender.startswith("=?utf-8?") and sender.endswith(" <hello@example.com>")


async def test_only_the_variants_that_exist_are_sent(unused_tcp_port: int) -> None:
    async with provider(unused_tcp_port) as ses, SesGateway.open(settings(unused_tcp_port)) as gateway:
        await gateway.send(Mail("em_1", "a@example.com", "s", None, "only text"))
    assert set(ses.asked[0][1]["Content"]["Simple"]["Body"]) == {"Text"}


@pytest.mark.parametrize(("status", "kind", "body", "wanted"), [
    (400, "MessageRejected:http://internal", b"{}", ("SESClientError", "ses:MessageRejected", False, False)),
    (400, "", b'{"__type":"com.amazonaws.sesv2#BadRequestException"}',
     ("SESClientError", "ses:BadRequestException", False, False)),
    (404, "", b"not json", ("SESClientError", "ses:404", False, False)),
    (301, "", b"", ("SESClientError", "ses:301", False, False)),
    (429, "TooManyRequestsException", b"{}",
     ("SESTooManyRequestsException", "ses:TooManyRequestsException", True, True)),
    (400, "ThrottlingException", b"{}", ("SESTooManyRequestsException", "ses:TooManyRequestsException", True, True)),
    (500, "", b"{}", ("SESServerError", "ses:500", True, False)),
    (503, "", b"<html>", ("SESServerError", "ses:503", True, False)),
    (200, "", b"{}", ("SESInternalError", "ses:NoMessageId", False, False)),
    (200, "", b'{"MessageId":""}', ("SESInternalError", "ses:NoMessageId", False, False)),
    (200, "", b"\xff", ("SESInternalError", "ses:NoMessageId", False, False)),
])
async def test_answers_fall_into_the_documented_classes(
    unused_tcp_port: int, status: int, kind: str, body: bytes, wanted: tuple[str, str, bool, bool]
) -> None:
    async with provider(unused_tcp_port) as ses, SesGateway.open(settings(unused_tcp_port)) as gateway:
        ses.status, ses.body, ses.headers = status, body, {"Retry-After": "7"}
        if kind:
            ses.headers["x-amzn-ErrorType"] = kind
        got = await gateway.send(MAIL)
    assert isinstance(got, NotAccepted)
    assert (got.identifier, got.breakdown, got.retryable, got.throttled) == wanted
    assert got.retry_after_seconds == (7.0 if got.retryable else 0.0) and not got.maybe_sent


async def test_nobody_there_was_not_sent_and_a_lost_answer_may_have_been(unused_tcp_port: int) -> None:
    async with SesGateway.open(settings(unused_tcp_port)) as gateway:
        got = await gateway.send(MAIL)
        assert isinstance(got, NotAccepted) and got.identifier == "SESNetworkError" and not got.maybe_sent
        async with provider(unused_tcp_port) as ses:
            ses.status = 0
            got = await gateway.send(MAIL)
    assert isinstance(got, NotAccepted)
    assert (got.breakdown, got.retryable, got.maybe_sent) == ("ses:ConnectionError", True, True)


async def test_an_answer_that_arrives_in_pieces_is_read_to_its_end(unused_tcp_port: int) -> None:
    """Otherwise an email that was sent counts as failed for good."""
    async with provider(unused_tcp_port) as ses, SesGateway.open(settings(unused_tcp_port)) as gateway:
        ses.in_pieces = True
        assert await gateway.send(MAIL) == Accepted("m-1")


async def test_a_connection_that_nobody_takes_in_time_was_not_sent(
    unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keystead.messaging.email.gateway_ses.TIMEOUT_SECONDS", 1.0)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", unused_tcp_port))
        deaf.listen(0)
        async with SesGateway.open(settings(unused_tcp_port)) as gateway:
            waiting = [asyncio.open_connection("127.0.0.1", unused_tcp_port) for _ in range(4)]
            held = [asyncio.ensure_future(each) for each in waiting]  # until nobody else gets in
            await asyncio.sleep(0.2)
            got = await gateway.send(MAIL)
            for each in held:
                each.cancel()
            await asyncio.gather(*held, return_exceptions=True)
    assert isinstance(got, NotAccepted) and got.identifier == "SESNetworkError" and not got.maybe_sent


async def test_without_credentials_nothing_is_sent(unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": "nowhere",
                        "AWS_CONFIG_FILE": "nowhere"}.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    async with provider(unused_tcp_port) as ses, SesGateway.open(
        settings(unused_tcp_port, access_key="", secret_key="")
    ) as gateway:
        assert isinstance(await gateway.send(MAIL), NoCredentials)
        assert await gateway.rate_per_second() is None
        assert ses.asked == []
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDFROMENVIRONMENT")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
        assert await gateway.send(MAIL) == Accepted("m-1"), "they are looked for again"
        assert ses.asked[0][2]["X-Amz-Security-Token"] == "token"
        for refusal in ("ExpiredTokenException", "UnrecognizedClientException", "InvalidSignatureException"):
            ses.status, ses.headers = 403, {"x-amzn-ErrorType": refusal}
            assert isinstance(await gateway.send(MAIL), NoCredentials), refusal


@pytest.mark.parametrize(("quota", "wished", "allowed"), [(50.0, 14.0, 14.0), (1.0, 14.0, 1.0), (50.0, 0.0, 50.0)])
async def test_the_quota_of_the_account_bounds_the_rate(
    unused_tcp_port: int, quota: float, wished: float, allowed: float
) -> None:
    wanted = settings(unused_tcp_port, rate_per_second=wished)
    async with provider(unused_tcp_port) as ses, SesGateway.open(wanted) as gateway:
        ses.body = b'{"SendQuota":{"MaxSendRate":%f}}' % quota
        assert await allowed_rate(gateway, wanted) == allowed
        ses.status = 500
        assert await allowed_rate(gateway, wanted) == wished
    assert ses.asked[0][0] == "/v2/email/account"


async def test_settings_that_cannot_work_are_refused_in_words() -> None:
    with pytest.raises(Invalid, match="no sandbox runs"):
        async with open_gateway(EmailSettings()):
            pass
    with pytest.raises(Invalid, match=r"email\.sender"):
        async with open_gateway(EmailSettings(sender="not an address"), sandbox_url="http://127.0.0.1:1"):
            pass
    with pytest.raises(Invalid, match=r"smtp://"):
        async with open_gateway(EmailSettings(provider="smtp", url="mail.example.com")):
            pass

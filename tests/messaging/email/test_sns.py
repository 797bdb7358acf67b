"""A call of SNS is believed only when topic, certificate and signature are what they must be."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import ClientSession, web

from keystead.messaging.email.sns import Believed, Disbelieved, Trust, fetching, kept_seconds
from keystead.testing.clock import MovableClock

from .notifications import CERTIFICATE_URL, TOPIC, Fetches, delivery, headers_of, notification, verifier


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock(now=1_760_000_000.0)


async def judged(clock: MovableClock, words: dict[str, Any], **given: Any) -> Believed | Disbelieved:
    body = given.get("body", json.dumps(words).encode())
    return await verifier(clock, given.get("fetches") or Fetches()).verify(
        {**headers_of(words), **given.get("headers", {})}, body)


async def test_both_versions_of_the_signature_are_believed(clock: MovableClock) -> None:
    for version in ("1", "2"):
        found = await judged(clock, notification(clock, delivery(), version=version))
        assert isinstance(found, Believed) and found.message_id == "11111111-aaaa", version


async def test_a_message_without_subject_is_signed_without_it(clock: MovableClock) -> None:
    assert isinstance(await judged(clock, notification(clock, delivery(), Subject=None)), Believed)


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("field", ["Message", "MessageId", "Subject", "Timestamp"])
async def test_whatever_is_changed_after_signing_is_refused(clock: MovableClock, version: str, field: str) -> None:
    words = notification(clock, delivery(), version=version)
    words[field] = words[field] + "1"
    found = await judged(clock, words)
    assert isinstance(found, Disbelieved) and (found.status, found.counted) == (403, "signature_invalid")


async def test_a_signature_of_somebody_else_is_refused(clock: MovableClock) -> None:
    found = await judged(clock, notification(clock, delivery(), forged=True))
    assert found == Disbelieved(403, "signature_invalid", "the signature does not fit")


@pytest.mark.parametrize(("headers", "status", "counted"), [
    ({"x-amz-sns-message-type": ""}, 400, "signature_missing"),
    ({"x-amz-sns-message-type": "UnsubscribeConfirmation"}, 400, "signature_missing"),
    ({"x-amz-sns-topic-arn": ""}, 400, "signature_missing"),
    ({"x-amz-sns-message-id": ""}, 400, "signature_missing"),
    ({"x-amz-sns-topic-arn": TOPIC + "-other"}, 403, "signature_invalid"),
    ({"x-amz-sns-message-type": "SubscriptionConfirmation"}, 403, "signature_invalid"),
])
async def test_headers_decide_first(
    clock: MovableClock, headers: dict[str, str], status: int, counted: str
) -> None:
    found = await judged(clock, notification(clock, delivery()), headers=headers)
    assert isinstance(found, Disbelieved) and (found.status, found.counted) == (status, counted)


async def test_a_topic_of_somebody_else_is_refused_however_well_it_is_signed(clock: MovableClock) -> None:
    """Whoever has an AWS account can have SNS sign anything for a topic of their own."""
    foreign = notification(clock, delivery(), TopicArn="arn:aws:sns:us-west-2:999999999999:mine")
    for headers in ({}, {"x-amz-sns-topic-arn": TOPIC}):
        found = await judged(clock, foreign, headers=headers)
        assert isinstance(found, Disbelieved) and (found.status, found.counted) == (403, "signature_invalid")


@pytest.mark.parametrize("url", [
    "http://sns.us-west-2.amazonaws.com/x.pem", "https://bucket.s3.amazonaws.com/x.pem",
    "https://sns.us-west-2.amazonaws.com.evil.example/x.pem", "https://sns.amazonaws.com/x.pem",
    "https://evil.example/sns.us-west-2.amazonaws.com/x.pem", "https://sns.us-west-2.amazonaws.com/x.txt",
    "https://user@sns.us-west-2.amazonaws.com/x.pem", "https://sns.us-west-2.amazonaws.com:8443/x.pem",
    "https://sns.bucket.amazonaws.com/x.pem", "https://xsns.us-west-2.amazonaws.com/x.pem", "", "https://[::1",
    "https://sns.us-west-2.amazonaws.com/x.pem?a=.txt#",
])
async def test_a_certificate_from_anywhere_else_is_not_even_fetched(clock: MovableClock, url: str) -> None:
    fetches = Fetches()
    found = await judged(clock, notification(clock, delivery(), SigningCertURL=url), fetches=fetches)
    assert found == Disbelieved(403, "body_parse_error", "SigningCertURL is not an address of SNS")
    assert fetches.asked == []


def test_hosts_of_every_region_are_known() -> None:
    trust = Trust(frozenset())
    for host in ("sns.us-east-1.amazonaws.com", "sns.us-gov-west-1.amazonaws.com", "sns.cn-north-1.amazonaws.com.cn"):
        assert trust.is_certificate(f"https://{host}/a.pem") and trust.is_confirmation(f"https://{host}/?Action=x")


@pytest.mark.parametrize(("changed", "status"), [
    ({"SignatureVersion": "3"}, 400), ({"SignatureVersion": 1}, 400), ({"Signature": ""}, 401),
    ({"Signature": "***"}, 400), ({"Signature": None}, 401), ({"SigningCertURL": 5}, 403), ({"MessageId": "a b"}, 400),
])
async def test_fields_of_a_signature_that_are_none_are_parse_errors(
    clock: MovableClock, changed: dict[str, Any], status: int
) -> None:
    words = {**notification(clock, delivery()), **changed}
    found = await judged(clock, words)
    assert isinstance(found, Disbelieved) and (found.status, found.counted) == (status, "body_parse_error")


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff\xfe", b'"x"', b"null", b"[" * 100_000])
async def test_a_body_that_is_no_object_is_a_parse_error(clock: MovableClock, body: bytes) -> None:
    found = await judged(clock, notification(clock, delivery()), body=body)
    assert isinstance(found, Disbelieved) and (found.status, found.counted) == (400, "body_parse_error")


async def test_an_oversized_body_is_counted_as_what_it_is(clock: MovableClock) -> None:
    """It used to be counted as one that could not be parsed."""
    found = await judged(clock, notification(clock, delivery()), body=b" " * (1024 * 1024 + 1))
    assert isinstance(found, Disbelieved) and (found.status, found.counted) == (400, "body_max_size_exceeded")


async def test_a_certificate_that_cannot_be_had_means_no(clock: MovableClock) -> None:
    fetches = Fetches()
    fetches.is_away = True
    found = await judged(clock, notification(clock, delivery()), fetches=fetches)
    assert found == Disbelieved(403, "signature_invalid", "the certificate cannot be had")


async def test_what_is_older_than_we_remember_repeats_is_refused(clock: MovableClock) -> None:
    words = notification(clock, delivery())
    clock.advance(86_400)
    found = await judged(clock, words)
    assert isinstance(found, Disbelieved) and found.counted == "signature_invalid"


async def test_a_certificate_is_fetched_once_while_it_may_be_kept(clock: MovableClock) -> None:
    fetches = Fetches()
    checking = verifier(clock, fetches)

    async def check() -> None:
        words = notification(clock, delivery())
        assert isinstance(await checking.verify(headers_of(words), json.dumps(words).encode()), Believed)

    await check()
    await check()
    clock.advance(599)
    await check()
    assert fetches.asked == [CERTIFICATE_URL]
    clock.advance(2)
    fetches.cache_control = "public, max-age=3600"
    await check()
    clock.advance(3599)
    await check()
    assert len(fetches.asked) == 2


async def test_a_certificate_that_is_slow_to_come_holds_up_no_call_whose_certificate_is_known(
    clock: MovableClock,
) -> None:
    """Anybody who knows a topic can name a certificate that does not exist."""
    fetches = Fetches()
    checking = verifier(clock, fetches)

    async def check(url: str = CERTIFICATE_URL) -> Believed | Disbelieved:
        words = notification(clock, delivery(), SigningCertURL=url)
        return await checking.verify(headers_of(words), json.dumps(words).encode())

    assert isinstance(await check(), Believed)
    fetches.gate.clear()
    held = asyncio.ensure_future(check("https://sns.us-west-2.amazonaws.com/another.pem"))
    while len(fetches.asked) < 2:
        await asyncio.sleep(0)
    assert isinstance(await asyncio.wait_for(check(), 20), Believed)
    fetches.gate.set()
    assert isinstance(await held, Believed)


@pytest.mark.parametrize(("said", "seconds"), [
    ("", 600), ("no-store", 600), ("max-age=0", 5), ("public, max-age=60", 60), ("max-age=99999999", 604_800),
    ("x-max-age=7", 600),
])
def test_how_long_a_certificate_is_kept(said: str, seconds: float) -> None:
    assert kept_seconds(said) == seconds


@pytest.mark.parametrize(("url", "confirmed"), [
    ("https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&Token=x", True),
    ("https://evil.example/?Action=ConfirmSubscription", False), ("http://sns.us-west-2.amazonaws.com/", False),
])
async def test_a_subscription_is_confirmed_only_at_sns(clock: MovableClock, url: str, confirmed: bool) -> None:
    fetches = Fetches()
    checking = verifier(clock, fetches)
    words = notification(clock, "please", Type="SubscriptionConfirmation", SubscribeURL=url, Token="t", Subject=None)
    found = await checking.verify(headers_of(words), json.dumps(words).encode())
    assert isinstance(found, Believed) and await checking.confirm(found) is confirmed
    assert (url in fetches.asked) is confirmed


async def test_a_sandbox_is_believed_with_its_own_certificate_and_no_other(clock: MovableClock) -> None:
    trust = Trust(frozenset((TOPIC,)), "http://127.0.0.1:9/sandbox/sns/certificate.pem")
    assert trust.is_certificate("http://127.0.0.1:9/sandbox/sns/certificate.pem")
    assert not trust.is_certificate(CERTIFICATE_URL) and not trust.is_certificate("http://127.0.0.1:9/other.pem")
    assert trust.is_confirmation("http://127.0.0.1:9/sandbox/sns/?x") and not trust.is_confirmation(CERTIFICATE_URL)


async def test_redirects_are_not_followed(unused_tcp_port: int) -> None:
    async def here(request: web.Request) -> web.StreamResponse:
        if request.path == "/away":
            raise web.HTTPFound("/there")
        if request.path == "/slow":
            response = web.StreamResponse()
            await response.prepare(request)
            for piece in (b"got ", b"it ", b"all"):
                await response.write(piece)
                await asyncio.sleep(0.05)
            return response
        return web.Response(text="got it", headers={"Cache-Control": "max-age=7"})

    app = web.Application()
    app.router.add_get("/{any}", here)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    base = f"http://127.0.0.1:{unused_tcp_port}"
    try:
        async with ClientSession() as session:
            fetch = fetching(session)
            got = await fetch(f"{base}/there")
            assert got is not None and (got.raw, got.cache_control) == (b"got it", "max-age=7")
            slow = await fetch(f"{base}/slow")
            assert slow is not None and slow.raw == b"got it all", "a certificate may come in pieces"
            assert await fetch(f"{base}/away") is None
            assert await fetch("http://127.0.0.1:1/nobody") is None
    finally:
        await runner.cleanup()

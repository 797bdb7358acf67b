"""Calls of the provider: only what it signed is believed, and each doubt has its name."""

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import pytest
from starlette.requests import ClientDisconnect

from keystead.edge import TooLarge
from keystead.messaging.signatures import twilio_signature
from keystead.messaging.sms.forms import MOST_BODY_BYTES, Call, Distrust, believed, parsed

TOKEN = "12345"
URL = "https://app.example.com/api/1/sms/webhook?uid=sms_1&lane=0"
FORM = "application/x-www-form-urlencoded"


def judged(
    body: bytes | Exception, signature: str | None = None, *, content_type: str = FORM, url: str = URL,
    token: str = TOKEN,
) -> dict[str, str] | Distrust:
    async def chunks() -> AsyncIterator[bytes]:
        if isinstance(body, Exception):
            raise body
        for at in range(0, len(body), 50_000):
            yield body[at : at + 50_000]

    async def ask() -> dict[str, str] | Distrust:
        return await believed(Call(url, signature, content_type, chunks()), token)

    return asyncio.run(ask())


def signed(fields: dict[str, str], url: str = URL) -> tuple[bytes, str]:
    return urlencode(fields).encode(), twilio_signature(TOKEN, url, fields)


FIELDS = {"MessageSid": "SM1", "MessageStatus": "sent", "Body": "zum Glück & mehr = +1", "ErrorCode": ""}


def test_the_providers_documented_example_is_believed() -> None:
    """The vector of Twilio's documentation."""
    url = "https://mycompany.com/myapp.php?foo=1&bar=2"
    fields = {"CallSid": "CA1234567890ABCDE", "Caller": "+14158675310", "Digits": "1234", "From": "+14158675310",
              "To": "+18005551212"}
    assert judged(urlencode(fields).encode(), "GvWf1cFY/Q7PnoempGyD5oXAezc=", url=url) == fields


def test_blank_values_are_part_of_what_is_signed() -> None:
    """Defect 7: a parser that drops them refuses valid calls."""
    assert judged(*signed(FIELDS)) == FIELDS
    body, signature = signed(FIELDS)
    assert judged(body.replace(b"&ErrorCode=", b""), signature) is Distrust.FORGED


def test_without_a_token_nothing_is_believed() -> None:
    """Anybody can sign with an empty one."""
    assert judged(urlencode(FIELDS).encode(), twilio_signature("", URL, FIELDS), token="") is Distrust.FORGED


@pytest.mark.parametrize("content_type", [
    FORM, f"{FORM}; charset=utf-8", f"{FORM};charset=UTF-8", f'{FORM.upper()}; CHARSET="utf-8"',
])
def test_a_form_may_name_its_characters(content_type: str) -> None:
    assert judged(*signed(FIELDS), content_type=content_type) == FIELDS


def test_each_doubt_has_its_name_in_the_documented_order() -> None:
    body, signature = signed(FIELDS)
    assert judged(body, None, content_type="text/plain") is Distrust.UNSIGNED
    assert judged(body, "") is Distrust.UNSIGNED
    assert judged(body, "not base64!", content_type="application/json") is Distrust.NO_FORM
    assert judged(body, signature, content_type=f"{FORM}; charset=latin-1") is Distrust.NO_FORM
    assert judged(b"x" * (MOST_BODY_BYTES + 1), "not base64!") is Distrust.FORGED
    assert judged(b"a=" + b"x" * (MOST_BODY_BYTES - 1), signature) is Distrust.TOO_LARGE
    assert judged(TooLarge("the server's own limit"), signature) is Distrust.TOO_LARGE
    assert judged(ClientDisconnect(), signature) is Distrust.UNREADABLE
    assert judged(ConnectionResetError(), signature) is Distrust.UNREADABLE
    assert judged(b"", signature) is Distrust.FORGED
    for broken in (b"a=1&a=2", b"a", b"a=%FF", "a=ü".encode(), b"&".join(b"f%d=1" % n for n in range(1001))):
        assert judged(broken, signature) is Distrust.NO_FORM, broken[:20]
    assert judged(body, signature[:-4] + "AAA=") is Distrust.FORGED
    assert judged(body, signature, url=URL.replace("app.", "evil.")) is Distrust.FORGED
    assert judged(body, signature, url=URL.replace("sms_1", "sms_2")) is Distrust.FORGED
    assert judged(body.replace(b"SM1", b"SM2"), signature) is Distrust.FORGED


def test_a_body_of_exactly_the_limit_is_read() -> None:
    fields = {"a": "x" * (MOST_BODY_BYTES - 2)}
    body, signature = signed(fields)
    assert len(body) == MOST_BODY_BYTES and judged(body, signature) == fields


def test_doubts_are_answered_and_counted_as_documented() -> None:
    assert {doubt.counted_as: doubt.http_status for doubt in Distrust} == {
        "signature_missing": 401, "body_parse_error": 400, "signature_invalid": 403, "body_max_size_exceeded": 413,
        "body_read_error": 500,
    }


def test_a_form_is_read_whole() -> None:
    assert parsed(b"a=&b=%2B1+x&c=1%3D2") == {"a": "", "b": "+1 x", "c": "1=2"}

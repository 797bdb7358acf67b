"""Requests to Amazon are signed as the library of Amazon signs them."""

from datetime import UTC, datetime

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from keystead.messaging.email.signing import Keys, Signer

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
URLS = ["https://email.us-west-2.amazonaws.com/v2/email/outbound-emails", "http://127.0.0.1:8123/ses/v2/email/account",
        "https://example.com:443/a b/é~", "http://example.com"]


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("token", ["", "lent"])
@pytest.mark.parametrize("body", [b"", b'{"to": "\xc3\xa9"}'])
def test_signature_is_the_one_that_the_library_of_amazon_makes(
    monkeypatch: pytest.MonkeyPatch, url: str, token: str, body: bytes
) -> None:
    method = "POST" if body else "GET"
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: NOW)
    given = {"Content-Type": "application/json"} if body else {}
    request = AWSRequest(method=method, url=url, data=body, headers=given)
    signer = botocore.auth.SigV4Auth(Credentials("AKID", "secret", token or None), "ses", "us-west-2")
    signer.add_auth(request)

    ours = Signer("ses", "us-west-2").headers(method, url, body, Keys("AKID", "secret", token), NOW)

    assert ours == dict(request.headers.items())


def test_another_day_has_another_key() -> None:
    signer, keys = Signer("ses", "us-west-2"), Keys("AKID", "secret")
    first = signer.headers("GET", URLS[0], b"", keys, NOW)
    second = signer.headers("GET", URLS[0], b"", keys, NOW.replace(day=5))

    assert first["Authorization"] != second["Authorization"]

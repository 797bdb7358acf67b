"""Email as SES does it."""

import base64

import pytest

from .conftest import AWS, MAIL


async def test_a_mail_is_taken_with_all_its_parts(asking, sandbox):
    status, found, answer = await asking.mail()
    assert (status, list(found)) == (200, ["MessageId"])
    assert "x-amzn-requestid" in answer.headers
    (message,) = await sandbox.outbox.messages("email", "ada@example.com")
    assert (message.title, message.text, message.html) == ("Good day", "plain", "<b>rich</b>")
    assert dict(message.headers)["List-Unsubscribe"] == "<https://example.com/u>"
    assert dict(message.headers)["Reply-To"] == "support@example.com"
    assert message.tags == {"uid": "em_1", "ses:message-id": found["MessageId"]}


async def test_a_whole_mail_is_taken_apart(asking, sandbox):
    raw = b"From: a@b.c\r\nTo: ada@example.com\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nX-Uid: 1\r\n\r\nhello"
    status, _, _ = await asking.mail(Content={"Raw": {"Data": base64.b64encode(raw).decode()}})
    assert status == 200
    (message,) = await sandbox.outbox.messages("email", "ada@example.com")
    assert (message.title, message.text.strip(), dict(message.headers)["X-Uid"]) == ("Grüße", "hello", "1")


async def test_every_recipient_has_it_in_their_inbox(asking, sandbox):
    await asking.mail(Destination={"ToAddresses": ["Ada <ada@example.com>"], "CcAddresses": ["bob@example.com"]})
    for address in ("ada@example.com", "bob@example.com"):
        assert len(await sandbox.outbox.messages("email", address)) == 1


@pytest.mark.parametrize("headers", [
    {}, {"authorization": AWS["authorization"]}, {**AWS, "authorization": "Bearer x"},
    {**AWS, "authorization": AWS["authorization"].replace("/ses/", "/s3/")},
])
async def test_a_request_that_is_not_signed_for_ses_is_refused(asking, sandbox, headers):
    status, found, answer = await asking.json("POST", MAIL, {}, **headers)
    assert (status, answer.headers["x-amzn-errortype"]) == (403, "MissingAuthenticationTokenException")
    assert found == {"message": "Missing Authentication Token"}
    assert await sandbox.outbox.counts() == {}


@pytest.mark.parametrize("change", [
    {"Destination": {"ToAddresses": []}}, {"Destination": {"ToAddresses": ["x@y.z"] * 51}},
    {"Destination": {"ToAddresses": ["no address"]}}, {"FromEmailAddress": ""}, {"Content": {}}, {"Content": 7},
    {"Content": {"Simple": {"Subject": {"Data": "x"}, "Body": {}}}}, {"Content": {"Raw": {"Data": "ü"}}},
    {"EmailTags": [{"Name": "a b", "Value": "c"}]},
    {"Content": {"Simple": {"Subject": {"Data": "x"}, "Body": {"Text": {"Data": "x"}},
                            "Headers": [{"Name": "X-A", "Value": "a\r\nBcc: b@c.d"}]}}},
])
async def test_bad_requests_are_refused_as_aws_does(asking, sandbox, change):
    status, found, answer = await asking.mail(**change)
    assert (status, answer.headers["x-amzn-errortype"]) == (400, "BadRequestException")
    assert list(found) == ["message"]
    assert await sandbox.outbox.counts() == {}


async def test_the_quota_follows_the_rate_that_was_set(asking, sandbox):
    status, found, _ = await asking.json("GET", "/ses/v2/email/account", **AWS)
    assert (status, found["SendQuota"]["MaxSendRate"], found["SendingEnabled"]) == (200, 1_000_000.0, True)
    await sandbox.faults.change("email", {"rate_per_second": 14})
    assert (await asking.json("GET", "/ses/v2/email/account", **AWS))[1]["SendQuota"]["MaxSendRate"] == 14
    assert (await asking.json("GET", "/ses/v2/email/else", **AWS))[0] == 404

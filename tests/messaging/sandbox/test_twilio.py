"""Texts as Twilio does them."""

from email.utils import parsedate_to_datetime
from urllib.parse import quote

import pytest

from keystead.messaging.sandbox.http import Asked

from .conftest import BASIC, MESSAGES


async def read(asking, sid):
    return await asking.json("GET", MESSAGES.replace(".json", f"/{sid}.json"), **BASIC)


async def test_a_text_is_taken_and_moves_on_by_itself(asking, clock):
    status, made = await asking.text(body="Grüße", StatusCallback="http://127.0.0.1:1/x")
    assert status == 201
    assert made["sid"].startswith("SM") and len(made["sid"]) == 34
    assert {name: made[name] for name in ("status", "to", "body", "from", "messaging_service_sid", "error_code",
                                          "num_segments", "direction", "account_sid", "api_version")} == {
        "status": "accepted", "to": "+15550001", "body": "Grüße", "from": None, "messaging_service_sid": "MG0",
        "error_code": None, "num_segments": "0", "direction": "outbound-api", "account_sid": "AC0",
        "api_version": "2010-04-01",
    }
    assert parsedate_to_datetime(made["date_updated"]).timestamp() == clock.at
    seen = []
    for _ in range(6):
        seen.append((await read(asking, made["sid"]))[1]["status"])
        clock.at += 0.2
    assert seen == ["accepted", "queued", "sending", "sent", "sent", "delivered"]
    assert (await read(asking, made["sid"]))[1]["date_sent"] is not None


async def test_only_the_account_with_its_token_is_let_in(asking, sandbox):
    for headers in ({}, {"authorization": "Basic " + "A" * 20}, {"authorization": "Bearer x"}):
        status, found, _ = await asking.json("POST", MESSAGES, b"To=1", **headers)
        assert (status, found["code"], found["status"]) == (401, 20003, 401)
    status, found, _ = await asking.json("GET", MESSAGES.replace("AC0", "AC1"), **BASIC)
    assert (status, found["code"]) == (404, 20404)
    assert await sandbox.outbox.counts() == {}


@pytest.mark.parametrize(("form", "code"), [
    ({"to": ""}, 21604), ({"to": "0171"}, 21211), ({"body": ""}, 21602), ({"body": "x" * 1601}, 21617),
    ({"MessagingServiceSid": ""}, 21603), ({"StatusCallback": "ftp://x"}, 21609),
    ({"to": "+15005550001"}, 21211), ({"to": "+15005550002"}, 21612), ({"to": "+15005550003"}, 21408),
    ({"to": "+15005550004"}, 21610), ({"to": "+15005550009"}, 21614),
])
async def test_refusals_say_their_code(asking, sandbox, form, code):
    status, found = await asking.text(**form)
    assert status == 400
    assert found == {"code": code, "message": found["message"], "status": 400,
                     "more_info": f"https://www.twilio.com/docs/errors/{code}"}
    assert await sandbox.outbox.counts() == {}


@pytest.mark.parametrize(("to", "status", "code"), [
    ("+15005553003", "undelivered", 30003), ("+15005553007", "undelivered", 30007), ("+15005553001", "failed", 30001),
])
async def test_numbers_can_ask_to_fail_later(asking, clock, to, status, code):
    _, made = await asking.text(to)
    clock.at += 1.0
    found = (await read(asking, made["sid"]))[1]
    assert (found["status"], found["error_code"]) == (status, code)
    assert found["error_message"]


async def test_texts_to_a_number_are_listed_newest_first_by_pages(asking, clock):
    for number in range(5):
        await asking.text(body=f"text {number}")
        clock.at += 1
    await asking.text("+15550002")
    status, found, _ = await asking.json("GET", f"{MESSAGES}?To={quote('+15550001')}&PageSize=2", **BASIC)
    assert status == 200
    assert [message["body"] for message in found["messages"]] == ["text 4", "text 3"]
    assert (found["page"], found["page_size"], found["start"], found["end"]) == (0, 2, 0, 1)
    assert found["previous_page_uri"] is None
    path = "/twilio" + found["next_page_uri"]
    found = (await asking.json("GET", path, **BASIC))[1]
    assert [message["body"] for message in found["messages"]] == ["text 2", "text 1"]
    found = (await asking.json("GET", "/twilio" + found["next_page_uri"], **BASIC))[1]
    assert [message["body"] for message in found["messages"]] == ["text 0"]
    assert found["next_page_uri"] is None
    assert (await asking.json("GET", f"{MESSAGES}?To=%0A", **BASIC))[1]["messages"] == []


async def test_an_unknown_text_is_not_found(asking):
    await asking.push("ExponentPushToken[ada]")
    for sid in ("SM0", "x" * 600):
        status, found, _ = await read(asking, sid)
        assert (status, found["code"]) == (404, 20404)


async def test_bytes_that_are_no_text_are_refused(sandbox):
    answer = await sandbox.handle(Asked("POST", MESSAGES, "", BASIC, b"To=\xff"))
    assert answer.status == 400

"""The HTTP door: each call is answered and counted as documented."""

from collections.abc import AsyncIterator
from urllib.parse import urlencode

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI

from keystead.engine import Valkey
from keystead.messaging.signatures import twilio_signature
from keystead.messaging.sms import Inbound, Sms
from keystead.messaging.sms.forms import MOST_BODY_BYTES
from keystead.messaging.sms.keys import NEWS, PENDING
from keystead.messaging.sms.models import PendingRecord, Status
from keystead.messaging.sms.routes import routes
from keystead.messaging.sms.sms import FAILED, SUCCEEDED
from keystead.messaging.sms.stats import WEBHOOKS

from .room import NUMBER, Room

TOKEN, PUBLIC = "secret", "https://public.example.com"
STATUS, INBOUND = "/api/1/sms/webhook", "/api/1/sms/inbound_webhook"
FIELDS = {"MessageSid": "SM1", "MessageStatus": "sent", "ErrorCode": "", "To": NUMBER}


class Door:
    def __init__(self, room: Room, client: httpx.AsyncClient) -> None:
        self.room, self.client = room, client

    async def post(
        self, path: str, fields: dict[str, str] | None = None, *, query: str = "", body: bytes | None = None,
        **headers: str,
    ) -> httpx.Response:
        fields = FIELDS if fields is None else fields
        signature = twilio_signature(TOKEN, f"{PUBLIC}{path}{query}", fields)
        given = {"content-type": "application/x-www-form-urlencoded", "x-twilio-signature": signature, **headers}
        content = urlencode(fields).encode() if body is None else body
        return await self.client.post(path + query, content=content, headers={k: v for k, v in given.items() if v})

    async def counted(self) -> dict[str, int]:
        return {event: amount for event, amount in (await self.room.counted(WEBHOOKS)).items() if event != "received"}


class Lifted:
    """Suppression as far as texts of people change it."""

    def __init__(self, room: Room) -> None:
        self._room = room

    async def suppress_phone(self, number: str, reason: str) -> bool:
        return await self._room.numbers.suppress_phone(number, reason)

    async def lift_phone(self, number: str) -> bool:
        return self._room.numbers.listed.pop(number, None) is not None


@pytest_asyncio.fixture
async def door(server: Valkey) -> AsyncIterator[Door]:
    room, app = Room(server), FastAPI()
    other = Sms(server, room.clock)
    inbound = Inbound(Lifted(room), sender_name="A & B")  # type: ignore[arg-type]
    app.include_router(routes([room.sms, other], inbound, auth_token=TOKEN, public_url=lambda: PUBLIC + "/"),
                       prefix="/api/1")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://inside:8400") as client:
        yield Door(room, client)


async def test_news_of_a_text_is_kept(door: Door) -> None:
    answer = await door.post(STATUS, query="?uid=sms_abc-1&lane=0")
    assert (answer.status_code, answer.content) == (200, b"")
    (event,) = await NEWS.queue.range(door.room.valkey)
    assert (event.sid, event.status, event.uid, event.error_code) == ("SM1", "sent", "sms_abc-1", None)
    assert await door.counted() == {"verified": 1, "accepted": 1}


async def test_a_uid_that_is_none_is_left_out(door: Door) -> None:
    assert (await door.post(STATUS, query="?uid=a%20b&lane=7")).status_code == 200
    (event,) = await NEWS.queue.range(door.room.valkey)
    assert event.uid == ""


@pytest.mark.parametrize(("changed", "status", "counted"), [
    ({"x-twilio-signature": ""}, 401, "signature_missing"),
    ({"content-type": "application/json"}, 400, "body_parse_error"),
    ({"content-type": ""}, 400, "body_parse_error"),
    ({"x-twilio-signature": "no base64"}, 403, "signature_invalid"),
    ({"body": b"x=" + b"y" * MOST_BODY_BYTES}, 413, "body_max_size_exceeded"),
    ({"body": b""}, 403, "signature_invalid"),
    ({"body": b"a=1&a=2"}, 400, "body_parse_error"),
    ({"body": b"MessageSid=SM2"}, 403, "signature_invalid"),
])
async def test_each_call_that_is_not_believed_is_answered_and_counted(
    door: Door, changed: dict[str, object], status: int, counted: str
) -> None:
    assert (await door.post(STATUS, **changed)).status_code == status  # type: ignore[arg-type]
    assert await door.room.counted(WEBHOOKS) == {"received": 1, counted: 1}
    assert await NEWS.queue.length(door.room.valkey) == 0
    assert (await door.post(INBOUND, **changed)).status_code == status  # type: ignore[arg-type]
    assert await door.room.counted(WEBHOOKS) == {"received": 1, counted: 1}


async def test_a_call_that_was_signed_for_another_address_is_forged(door: Door) -> None:
    signature = twilio_signature(TOKEN, f"http://inside:8400{STATUS}", FIELDS)
    assert (await door.post(STATUS, **{"x-twilio-signature": signature})).status_code == 403


async def test_a_call_that_cannot_be_understood_is_answered_kindly(door: Door) -> None:
    for fields in ({"MessageStatus": "sent"}, {"MessageSid": "SM1"}, {"MessageSid": "SM1", "MessageStatus": "new"}):
        assert (await door.post(STATUS, fields)).status_code == 200
    assert await door.counted() == {"verified": 3, "unprocessable": 3}


async def test_a_replayed_call_changes_nothing(door: Door) -> None:
    room = door.room
    await room.queue()
    await room.send()
    fields = {"MessageSid": "SM0", "MessageStatus": "delivered"}
    for _ in range(3):
        assert (await door.post(STATUS, fields)).status_code == 200
        room.clock.advance(61)
        await room.reconcile()
    await room.run_jobs()
    assert len(room.succeeded) == 1 and await room.pending() == {}


async def test_stop_and_start_are_answered(door: Door) -> None:
    answer = await door.post(INBOUND, {"From": NUMBER, "To": "+15005550006", "Body": "Stop", "OptOutType": ""})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/xml")
    assert "<Response><Message>A &amp; B: you will get no more texts" in answer.text
    assert door.room.numbers.listed == {NUMBER: ("Stop", None)}
    answer = await door.post(INBOUND, {"From": NUMBER, "Body": "start", "OptOutType": "START"})
    assert (answer.status_code, answer.content) == (204, b"") and door.room.numbers.listed == {}
    assert (await door.post(INBOUND, {"From": NUMBER, "Body": "I can't stop smiling"})).status_code == 204
    assert door.room.numbers.listed == {} and await door.room.counted(WEBHOOKS) == {}


@pytest.mark.cluster
async def test_a_call_finds_the_lane_of_its_text(two_lanes: Valkey) -> None:
    first, second = two_lanes.lanes
    room, app = Room(two_lanes), FastAPI()
    await PENDING.write(second, "SM1", PendingRecord(
        uid="sms_1", send_initially_queued_at=1.0, message_resource_created_at=1.0,
        message_resource_last_updated_at=1.0, message_resource_sid="SM1",
        message_resource_status=Status.QUEUED, phone_number=NUMBER, body="hello",
        failure_job=FAILED, success_job=SUCCEEDED,
    ), 1.0)
    inbound = Inbound(Lifted(room))  # type: ignore[arg-type]
    rooms = [Sms(lane, room.clock) for lane in two_lanes.lanes]
    app.include_router(routes(rooms, inbound, auth_token=TOKEN, public_url=lambda: PUBLIC), prefix="/api/1")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://inside:8400") as client:
        door = Door(room, client)
        for query in ("?uid=sms_1&lane=1", "?uid=sms_1", "?uid=sms_1&lane=7", ""):
            assert (await door.post(STATUS, query=query)).status_code == 200
        await door.post(STATUS, {**FIELDS, "MessageSid": "SM2"})
    assert [event.sid for event in await NEWS.queue.range(second)] == ["SM1"] * 4
    assert [event.sid for event in await NEWS.queue.range(first)] == ["SM2"], "nobody knows it"

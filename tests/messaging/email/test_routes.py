"""The HTTP doors: every step of the webhook has its status and its counter; templates and unsubscribing."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from keystead.edge import ANONYMOUS, Caller, CallerKind, problem_of
from keystead.errors import KeysteadError
from keystead.messaging.email import News, Templates, TemplateTokens
from keystead.messaging.email.keys import NEWS
from keystead.messaging.email.models import Bounce, BounceReason
from keystead.messaging.email.routes import routes, template_routes
from keystead.messaging.email.stats import WEBHOOKS

from .notifications import TOPIC, Fetches, bounce, delivery, headers_of, notification, verifier
from .room import ADA, Room, on_sqlite
from .test_unsubscribe import token_of

pytestmark = on_sqlite

HOOK = "/api/1/emails/sns-mail"
OPERATOR = Caller(CallerKind.OPERATOR)


class Door:
    def __init__(self, room: Room) -> None:
        self.room, self.fetches, self.caller = room, Fetches(), ANONYMOUS
        self.rooms = [room.news, News(room.valkey, room.clock)]
        tokens = TemplateTokens(b"k" * 32, room.clock)
        app = FastAPI()
        app.include_router(routes(self.rooms, verifier(room.clock, self.fetches), room.unsubscribing, tokens),
                           prefix="/api/1")
        app.include_router(template_routes(Templates(), tokens), prefix="/api/3")

        @app.middleware("http")
        async def known(request: Request, go_on: Any) -> Response:
            request.state.caller = self.caller
            answer: Response = await go_on(request)
            return answer

        @app.exception_handler(KeysteadError)
        async def refused(request: Request, error: KeysteadError) -> JSONResponse:
            problem = problem_of(error)
            return JSONResponse(problem.body(), problem.status)

        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")

    async def tell(self, words: dict[str, Any], body: Any = None, **headers: str) -> int:
        content = json.dumps(words).encode() if body is None else body
        answer = await self.client.post(HOOK, content=content, headers={**headers_of(words), **headers})
        return answer.status_code

    async def counted(self) -> dict[str, Any]:
        return await self.room.counted(WEBHOOKS)


@pytest_asyncio.fixture
async def door(room: Room) -> AsyncIterator[Door]:
    opened = Door(room)
    async with opened.client:
        yield opened


async def test_a_believed_notification_is_queued_and_counted(door: Door) -> None:
    room = door.room
    assert await door.tell(notification(room.clock, bounce("m-7", "Transient", "Never heard of", uid="em_1"))) == 202
    (event,) = await NEWS.queue.range(room.valkey)
    assert (event.message_id, event.uid, event.received_at) == ("m-7", "em_1", room.clock.now())
    assert event.notification == Bounce(
        BounceReason("Transient", "Never heard of"), ["a@example.com"], ["a@example.com"])
    assert await door.counted() == {"received": 1, "verified": 1, "accepted": 1}


async def test_a_repeat_within_a_day_changes_nothing(door: Door) -> None:
    words = notification(door.room.clock, delivery())
    assert [await door.tell(words) for _ in range(3)] == [202, 202, 202]
    assert await NEWS.length(door.room.valkey) == 1
    assert await door.counted() == {"received": 1, "verified": 1, "accepted": 1}
    assert await door.tell(notification(door.room.clock, delivery(), message_id="another")) == 202
    assert await NEWS.length(door.room.valkey) == 2


async def test_each_refusal_has_its_status_and_counter(door: Door) -> None:
    """Forged bounces could suppress any address; here none of these reaches the queue."""
    clock = door.room.clock
    good = notification(clock, bounce())
    tries: list[tuple[int, str, int]] = [
        (400, "signature_missing", await door.tell(good, **{"x-amz-sns-message-id": ""})),
        (403, "signature_invalid", await door.tell(good, **{"x-amz-sns-topic-arn": TOPIC + "x"})),
        (400, "body_max_size_exceeded", await door.tell(good, b" " * (1024 * 1024 + 1))),
        (400, "body_parse_error", await door.tell(good, b"\xff")),
        (403, "body_parse_error",
         await door.tell(notification(clock, bounce(), SigningCertURL="https://x.s3.amazonaws.com/a.pem"))),
        (403, "signature_invalid", await door.tell(notification(clock, bounce(), forged=True))),
        (403, "signature_invalid", await door.tell({**good, "Message": good["Message"] + " "})),
    ]
    assert [got for _, _, got in tries] == [wanted for wanted, _, _ in tries]
    assert await door.counted() == {
        "received": 7, "signature_missing": 1, "signature_invalid": 3, "body_max_size_exceeded": 1,
        "body_parse_error": 2}
    assert await NEWS.length(door.room.valkey) == 0


@pytest.mark.parametrize("message", [
    "not json", {"notificationType": "Open", "mail": {"messageId": "m"}}, {"notificationType": "Bounce"},
    {"notificationType": "Bounce", "mail": {"messageId": "m"}}, {"notificationType": "Delivery", "mail": {}},
    {"notificationType": "Delivery", "mail": {"messageId": "a b"}}, [], "",
])
async def test_what_is_believed_and_not_understood_is_asked_for_again(door: Door, message: Any) -> None:
    assert await door.tell(notification(door.room.clock, message)) == 503
    assert await door.counted() == {"received": 1, "verified": 1, "unprocessable": 1}


async def test_events_of_a_configuration_set_are_understood_too(door: Door) -> None:
    told = delivery("m-8", "em_8")
    told["eventType"] = told.pop("notificationType")
    told["mail"]["tags"]["lane"] = ["1"]
    assert await door.tell(notification(door.room.clock, told)) == 202
    assert (await NEWS.queue.range(door.room.valkey))[0].uid == "em_8"


async def test_events_that_nobody_needs_are_counted_and_not_asked_for_again(door: Door) -> None:
    told = {"eventType": "DeliveryDelay", "mail": {"messageId": "m-8"}, "deliveryDelay": {}}
    assert await door.tell(notification(door.room.clock, told)) == 202
    assert await door.counted() == {"received": 1, "verified": 1, "unprocessable": 1}
    assert await NEWS.length(door.room.valkey) == 0


async def test_subscriptions_are_confirmed_at_sns_only_and_not_counted(door: Door) -> None:
    given: dict[str, Any] = {"Type": "SubscriptionConfirmation", "Token": "t", "Subject": None}
    right = "https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription"
    assert await door.tell(notification(door.room.clock, "hi", SubscribeURL=right, **given)) == 200
    assert right in door.fetches.asked
    assert await door.tell(notification(door.room.clock, "hi", SubscribeURL="https://evil.example/", **given)) == 400
    assert "https://evil.example/" not in door.fetches.asked
    assert await door.counted() == {}


# -- unsubscribing -----------------------------------------------------------------------------------------------------


async def test_one_click_unsubscribes_and_looking_at_the_link_does_not(door: Door) -> None:
    token = token_of(door.room)
    page = await door.client.get("/api/1/emails/unsubscribe", params={"token": token})
    assert page.status_code == 200 and ADA in page.text and "<form method=\"post\">" in page.text
    assert await door.room.suppression.emails([ADA]) == set()
    done = await door.client.post("/api/1/emails/unsubscribe", params={"token": token},
                                  data={"List-Unsubscribe": "One-Click"})
    assert done.status_code == 200
    assert await door.room.suppression.emails([ADA]) == {ADA}
    for method in ("GET", "POST"):
        forged = await door.client.request(method, "/api/1/emails/unsubscribe", params={"token": token + "x"})
        assert forged.status_code == 401


# -- templates ---------------------------------------------------------------------------------------------------------


async def test_a_template_is_rendered_for_whoever_has_its_token(door: Door) -> None:
    asked = {"template_slug": "code"}
    assert (await door.client.post("/api/1/emails/authorize_templating", json=asked)).status_code == 401
    door.caller = OPERATOR
    given = (await door.client.post("/api/1/emails/authorize_templating", json=asked)).json()
    assert given["expires_in"] == 1800
    door.caller = ANONYMOUS

    async def render(slug: str, accept: str, parameters: Any = None, token: str = given["token"]) -> httpx.Response:
        return await door.client.post(f"/api/3/templates/{slug}", json=parameters, headers={
            "authorization": f"Bearer {token}", "accept": accept})

    html = await render("code", "text/html; charset=utf-8", {"code": "<1>"})
    assert html.headers["content-type"].startswith("text/html") and "&lt;1&gt;" in html.text
    assert "sandbox" in html.headers["content-security-policy"]
    text = await render("code", "text/plain; charset=utf-8", {"code": "<1>"})
    assert text.headers["content-type"].startswith("text/plain") and "<1>" in text.text
    assert (await render("code", "text/html", {})).status_code == 422
    assert (await render("code", "text/html", [])).status_code == 422
    assert (await render("notice", "text/html", {})).status_code == 401, "the token is for another template"
    assert (await render("code", "text/html", {}, "forged")).status_code == 401
    unknown = TemplateTokens(b"k" * 32, door.room.clock).issue("unknown")
    assert (await render("unknown", "text/html", {}, unknown)).status_code == 404
    assert (await door.client.post("/api/3/templates/code", json={})).status_code == 401
    door.room.later(1801)
    assert (await render("code", "text/html", {"code": 1})).status_code == 401

"""The HTTP doors: notifications of SNS, one-click unsubscribing, and templates."""

from collections.abc import Sequence
from html import escape
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect

from keystead.edge import PROBLEM_MEDIA_TYPE, Caller, NotLoggedIn, Problem
from keystead.messaging.email.news import News, Told, read_notification
from keystead.messaging.email.sns import CONFIRMATION, MOST_BYTES, Believed, Disbelieved, Verifier
from keystead.messaging.email.template_tokens import ADMIN_SECONDS, TemplateTokens
from keystead.messaging.email.templates import Templates, Variant
from keystead.messaging.email.unsubscribe import Unsubscribing
from keystead.telemetry import logger

SCOPE: Final = "messaging"
MOST_PARAMETER_BYTES: Final = 256 * 1024
Token = Annotated[str, Query(max_length=4096, description="from the List-Unsubscribe header")]
_SNS_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    202: {"description": "Taken"},
    **{status: {"description": says, "content": {PROBLEM_MEDIA_TYPE: {}}} for status, says in (
        (400, "It cannot be read"), (401, "It is not signed"), (403, "It is not signed by SNS for one of our topics"),
        (503, "It is signed, and not understood"),
    )},
}
_PAGE: Final = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Unsubscribe</title></head>
<body style="font-family:system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem;line-height:1.6">
{}</body></html>"""

_log = logger("messaging.email")


class TemplateWanted(BaseModel):
    """A template to be rendered over HTTP."""

    template_slug: str = Field(min_length=1, max_length=100, examples=["daily_reminder"])


class TemplateToken(BaseModel):
    """Goes into the header ``Authorization: Bearer``."""

    token: str
    expires_in: int = Field(description="seconds")


def routes(
    rooms: Sequence[News], verifier: Verifier, unsubscribing: Unsubscribing, tokens: TemplateTokens
) -> APIRouter:
    """Under the prefix of the HTTP interface. ``rooms``: one for each lane of a cluster, otherwise one."""
    router = APIRouter(tags=["email"])

    @router.post("/emails/sns-mail", response_class=Response, responses=_SNS_ANSWERS)
    async def notification(request: Request) -> Response:
        """News of email, from Amazon SNS. Signed by it, and only believed from our own topics."""
        message = await _verified(request, verifier)
        if isinstance(message, Disbelieved):
            _log.warning("a call of SNS was refused", counted=message.counted, reason=message.reason)
            await rooms[0].refuse(message.counted)
            return _problem(message.status, message.counted, message.reason)
        if message.kind == CONFIRMATION:
            confirmed = await verifier.confirm(message)
            _log.info("SNS asks to confirm a subscription", confirmed=confirmed)
            return Response(status_code=200) if confirmed else _problem(
                400, "not_confirmed", "SubscribeURL is not an address of SNS, or did not answer")
        told = read_notification(message)
        if told is None:
            _log.error("a notification of SNS is not understood", message_id=message.message_id)
            await rooms[0].puzzle()
            return _problem(503, "unprocessable", "this notification is not understood")
        await (await _room_of(rooms, told)).take(told, message)
        return Response(status_code=202)

    @router.post("/emails/unsubscribe", response_class=HTMLResponse)
    async def unsubscribe(token: Token) -> HTMLResponse:
        """One click on the button of a mail program (RFC 8058), or on that of the page below: no more email."""
        await unsubscribing.unsubscribe(token)
        return HTMLResponse(_PAGE.format("<h1>Done</h1><p>You will get no more of these emails.</p>"))

    @router.get("/emails/unsubscribe", response_class=HTMLResponse)
    async def ask(token: Token) -> HTMLResponse:
        """The same link in a browser. It asks first, since programs that look at links must not unsubscribe anybody."""
        address = escape(unsubscribing.address_of(token))
        return HTMLResponse(_PAGE.format(
            f"<h1>Unsubscribe</h1><p>Shall {address} get no more of these emails?</p>"
            '<form method="post"><button style="font-size:1rem;padding:.6rem 1.2rem">Unsubscribe</button></form>'
        ), headers={"Referrer-Policy": "same-origin"})  # with no-referrer the form's origin is null, and refused

    @router.post("/emails/authorize_templating")
    async def authorize(request: Request, wanted: TemplateWanted) -> TemplateToken:
        """A token that renders one template for half an hour. Needs the scope ``messaging``."""
        caller: Caller = request.state.caller
        caller.require(SCOPE)
        return TemplateToken(token=tokens.issue(wanted.template_slug, lasts_seconds=ADMIN_SECONDS),
                             expires_in=ADMIN_SECONDS)

    return router


def template_routes(templates: Templates, tokens: TemplateTokens) -> APIRouter:
    """Templates over HTTP, for other programs; under ``/api/3``."""
    router = APIRouter(tags=["email"])

    @router.post("/templates/{slug}", response_class=Response, responses={
        200: {"description": "The message", "content": {"text/html": {}, "text/plain": {}}}, 413: {},
        422: {"description": "The parameters are not what the template needs", "content": {PROBLEM_MEDIA_TYPE: {}}},
    }, openapi_extra={"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}})
    async def render(request: Request, slug: Annotated[str, Path(max_length=100)]) -> Response:
        """Render a template with the parameters in the body. ``Accept`` chooses between HTML and plain text."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token:
            raise NotLoggedIn("this needs a token: POST /api/1/emails/authorize_templating gives one")
        tokens.check(slug, token.strip())
        plain = "text/plain" in request.headers.get("accept", "")
        parameters = await _parameters(request)
        if parameters is None:
            return _problem(422, "unprocessable", "the body must be a JSON object of parameters")
        outcome = templates.variant(slug, Variant.PLAIN if plain else Variant.HTML, parameters)
        if outcome.status != 200:
            return _problem(outcome.status, {404: "not_found", 422: "unprocessable"}.get(outcome.status, "internal"),
                            outcome.reason)
        # What a template makes of somebody's parameters is no page of ours: no scripts, no frames, no guessing.
        return Response(outcome.text, media_type="text/plain" if plain else "text/html", headers={
            "Content-Security-Policy": "sandbox; default-src 'none'; img-src https: data:; style-src 'unsafe-inline'",
            "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
        })

    return router


async def _verified(request: Request, verifier: Verifier) -> Believed | Disbelieved:
    refused = verifier.headers_believed(request.headers)
    if refused is not None:
        return refused  # and the body need not be read
    try:
        body = await _body(request, MOST_BYTES)
    except ClientDisconnect:
        return Disbelieved(400, "body_read_error", "the body ended too soon")
    return await verifier.verify(request.headers, body)


async def _body(request: Request, most: int) -> bytes:
    """The body; of one that is too long no more than shows that it is."""
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > most:
            break
    return b"".join(parts)


async def _parameters(request: Request) -> dict[str, Any] | None:
    body = await _body(request, MOST_PARAMETER_BYTES)
    try:
        found = msgspec.json.decode(body or b"{}") if len(body) <= MOST_PARAMETER_BYTES else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    return found if isinstance(found, dict) else None


async def _room_of(rooms: Sequence[News], told: Told) -> News:
    """The lane that the email was sent from: it says so itself, or is known there."""
    if told.lane.isascii() and told.lane.isdigit() and int(told.lane) < len(rooms):
        return rooms[int(told.lane)]
    for room in rooms[1:]:
        if await room.knows(told.message_id):
            return room
    return rooms[0]


def _problem(status: int, kind: str, message: str) -> JSONResponse:
    problem = Problem(status, kind, "Refused" if status < 500 else "Failed", message)
    return JSONResponse(problem.body(), status_code=status, media_type=PROBLEM_MEDIA_TYPE)

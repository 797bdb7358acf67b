"""The HTTP door: calls of the provider with news of texts, and with texts that people sent us."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from keystead.messaging.sms.forms import Call, Distrust, believed
from keystead.messaging.sms.inbound import Inbound, reply_xml
from keystead.messaging.sms.sms import Sms

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_PLAIN: Final = "text/plain"
_REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    400: {"description": "The body is no form"}, 401: {"description": "It is not signed"},
    403: {"description": "The signature is not the provider's"}, 413: {"description": "The body is too long"},
}


def routes(rooms: Sequence[Sms], inbound: Inbound, *, auth_token: str, public_url: Callable[[], str]) -> APIRouter:
    """Under the prefix of the HTTP interface. ``rooms``: one for each lane. ``public_url``: how the world reaches us.

    The provider signs the whole address, so behind a proxy ``public_url`` must be what the provider was given.
    """
    router = APIRouter(tags=["sms"])

    async def checked(request: Request) -> dict[str, str] | Distrust:
        path = request.scope.get("raw_path") or request.url.path.encode()
        query = request.scope.get("query_string", b"")
        spelled = (path + (b"?" + query if query else b"")).decode("latin-1")
        call = Call(
            public_url().rstrip("/") + spelled, request.headers.get("x-twilio-signature"),
            request.headers.get("content-type", ""), request.stream(),
        )
        return await believed(call, auth_token)

    @router.post("/sms/webhook", response_class=Response, responses=_REFUSALS)
    async def status_callback(request: Request) -> Response:
        """News of a text, from the provider."""
        fields = await checked(request)
        lane = request.query_params.get("lane", "")
        if isinstance(fields, Distrust):
            await rooms[0].refuse_call(fields.counted_as)
            return Response(status_code=fields.http_status)
        uid = request.query_params.get("uid", "")
        sid = fields.get("MessageSid", "")
        room = await _room_of(rooms, lane, sid)
        await room.take_call(sid, fields.get("MessageStatus", ""), fields.get("ErrorCode", ""),
                             uid if _NAME.fullmatch(uid) else "")
        return Response(status_code=200, media_type=_PLAIN)

    @router.post("/sms/inbound_webhook", response_class=Response, responses={
        **_REFUSALS, 200: {"description": "What the person is answered", "content": {"application/xml": {}}},
        204: {"description": "Taken; nothing is answered"},
    })
    async def person_texted(request: Request) -> Response:
        """A text that somebody sent us, from the provider."""
        fields = await checked(request)
        if isinstance(fields, Distrust):
            return Response(status_code=fields.http_status)
        words = await inbound.take(fields.get("From", ""), fields.get("Body", ""), fields.get("OptOutType", ""))
        if not words:
            return Response(status_code=204)
        return Response(reply_xml(words), media_type="application/xml")

    return router


async def _room_of(rooms: Sequence[Sms], lane: str, sid: str) -> Sms:
    """The room of the lane that the call names; otherwise the one that knows the message."""
    if lane.isascii() and lane.isdigit() and int(lane) < len(rooms):
        return rooms[int(lane)]
    if len(rooms) > 1:
        for room in rooms:
            if await room.knows(sid):
                return room
    return rooms[0]

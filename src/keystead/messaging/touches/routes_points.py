"""Touch points over HTTP: made, changed over what was read, removed, found, and their messages tried out."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from keystead.edge import PageRequest, PositionText, page_of
from keystead.edge.paged import FIRST_LIMIT, Cursor, Limit, Paged
from keystead.errors import Invalid
from keystead.ids import UserSub
from keystead.messaging.touches.messages import EmailMessage, Messages, PushMessage, SmsMessage
from keystead.messaging.touches.points import TouchPoint, TouchPoints
from keystead.messaging.touches.trials import Trials

M = TypeVar("M", SmsMessage, PushMessage, EmailMessage, Messages)
_Uid = Annotated[str, Path(min_length=1, max_length=200)]


class PointGiven(BaseModel):
    """A touch point to be made."""

    event_slug: str
    event_schema: dict[str, Any] = Field(description="an OpenAPI 3.0 schema of an object, with an example")
    selection_strategy: str
    messages: dict[str, Any] = Field(default={}, description="lists by channel: sms, push and email")


class PointChanged(BaseModel):
    """What is to change of a touch point; the rest stays."""

    event_slug: str | None = None
    event_schema: dict[str, Any] | None = None
    selection_strategy: str | None = None
    messages: dict[str, Any] | None = None
    messages_etag: str | None = Field(default=None, description="of the messages that the new ones replace")


class PointShown(BaseModel):
    """A touch point."""

    uid: str
    event_slug: str
    event_schema: dict[str, Any]
    selection_strategy: str
    messages: dict[str, Any]
    messages_etag: str
    created_at: float


class PointsFound(Paged):
    """Some touch points, by name."""

    items: list[PointShown]


class TrialGiven(BaseModel):
    """A message to be tried out on addresses of one's own."""

    user_sub: str = Field(min_length=1, max_length=200)
    message: dict[str, Any]
    event_parameters: dict[str, Any] = {}


class TrialSent(BaseModel):
    """The messages that were queued."""

    uids: list[str]


def point_routes(points: TouchPoints, trials: Trials, require: Callable[[Request], None]) -> APIRouter:
    """Joined to the routes of touches."""
    router = APIRouter()

    @router.post("/touch_points/", status_code=201)
    async def create(request: Request, given: PointGiven) -> PointShown:
        """Add a touch point."""
        require(request)
        messages = _read(given.messages, Messages)
        return _shown(await points.create(given.event_slug, given.event_schema, given.selection_strategy, messages))

    @router.get("/touch_points/")
    async def search(
        request: Request, slug: Annotated[str, Query(max_length=255)] = "",
        limit: Limit = FIRST_LIMIT, cursor: Cursor = None,
    ) -> PointsFound:
        """Touch points whose names begin like this."""
        require(request)
        asked = PageRequest(limit, cursor)
        found = await points.search(slug=slug, after=asked.position(PositionText) or "", most=limit + 1)
        page = page_of(found, asked, lambda point: point.event_slug)
        return PointsFound(items=[_shown(point) for point in page.items], next_cursor=page.next_cursor)

    @router.get("/touch_points/{uid}")
    async def find(request: Request, uid: _Uid) -> PointShown:
        """One touch point."""
        require(request)
        return _shown(await points.find(uid))

    @router.patch("/touch_points/{uid}")
    async def change(request: Request, uid: _Uid, given: PointChanged) -> PointShown:
        """Change a touch point. New messages need the etag of those they replace."""
        require(request)
        messages = None if given.messages is None else _read(given.messages, Messages)
        return _shown(await points.change(
            uid, slug=given.event_slug, schema=given.event_schema, strategy=given.selection_strategy,
            messages=messages, messages_etag=given.messages_etag,
        ))

    @router.delete("/touch_points/{uid}", status_code=204)
    async def remove(request: Request, uid: _Uid) -> None:
        """Forget a touch point, with what people were told of it."""
        require(request)
        await points.remove(uid)

    @router.post("/touch_points/send_test_sms", status_code=202)
    async def try_sms(request: Request, given: TrialGiven) -> TrialSent:
        """Send a text to at most three numbers of the person."""
        require(request)
        message = _read(given.message, SmsMessage)
        return TrialSent(uids=await trials.send(UserSub(given.user_sub), message, given.event_parameters))

    @router.post("/touch_points/send_test_push", status_code=202)
    async def try_push(request: Request, given: TrialGiven) -> TrialSent:
        """Send a push message to at most three devices of the person."""
        require(request)
        message = _read(given.message, PushMessage)
        return TrialSent(uids=await trials.send(UserSub(given.user_sub), message, given.event_parameters))

    @router.post("/touch_points/send_test_email", status_code=202)
    async def try_email(request: Request, given: TrialGiven) -> TrialSent:
        """Send an email to at most three addresses of the person."""
        require(request)
        message = _read(given.message, EmailMessage)
        return TrialSent(uids=await trials.send(UserSub(given.user_sub), message, given.event_parameters))

    return router


def _read(given: dict[str, Any], of: type[M]) -> M:
    try:
        return msgspec.convert(given, of)
    except msgspec.ValidationError as error:
        raise Invalid(f"the message is not as it must be: {error}") from None


def _shown(point: TouchPoint) -> PointShown:
    return PointShown(
        uid=point.uid, event_slug=point.event_slug, event_schema=dict(point.event_schema),
        selection_strategy=point.selection_strategy, messages=msgspec.to_builtins(point.messages),
        messages_etag=point.messages_etag, created_at=point.created_at,
    )

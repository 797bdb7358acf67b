"""The latest touches over HTTP: what was just sent to anybody, and what became of it."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from keystead.edge import PageRequest, make_cursor
from keystead.edge.paged import FIRST_LIMIT, Cursor, Limit, Paged
from keystead.messaging.touches.history import History
from keystead.messaging.touches.models import Channel

_Position = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


class TouchListed(BaseModel):
    """What became of a touch. What it said and where it went is told with the touches of one person."""

    uid: str = Field(examples=["tch_4yTkW2_sms"])
    user_sub: str = Field(examples=["user_4yTkW2"])
    event: str = Field(examples=["daily_reminder"], description="slug of the touch point")
    channel: str = Field(examples=["sms"])
    status: str = Field(examples=["arrived"], description="queued, on its way, tried again, arrived, unreachable, "
                        "improper, stale, given up or failed: the best that is known of any destination")
    reason: str = Field(examples=[""], description="why it went no further, where that is known")
    at: float = Field(description="when it was planned, or queued while it waits for that; unix seconds")
    changed_at: float = Field(description="its last step, unix seconds")


class TouchList(Paged):
    """Some touches, newest first."""

    items: list[TouchListed]


def latest_routes(history: History, require: Callable[[Request], None]) -> APIRouter:
    """``require`` refuses whoever may not do this."""
    router = APIRouter()

    @router.get("/touches")
    async def list_touches(
        request: Request, response: Response, channel: Annotated[Channel | None, Query()] = None,
        outcome: Annotated[Literal["failed"] | None, Query(
            description="only those that went wrong, the last to do so first; somebody who was spared one is not there",
        )] = None,
        limit: Limit = FIRST_LIMIT, cursor: Cursor = None,
    ) -> TouchList:
        """The latest touches of everybody, newest first. A page may be short although more follow.

        Of those that wait to be planned or logged the first page has the newest; the others are listed once they are
        in the log.
        """
        require(request)
        response.headers["cache-control"] = "no-store"
        before = PageRequest(limit, cursor).position(_Position)
        found = await history.latest(most=limit, before=before, channel=channel, failed=outcome == "failed")
        return TouchList(items=[TouchListed(**asdict(touch)) for touch in found.touches],
                         next_cursor=None if found.before is None else make_cursor(found.before))

    return router

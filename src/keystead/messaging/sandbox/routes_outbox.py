"""The sandbox for programs: what people would have received, and how the providers are to misbehave."""

import re
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from keystead.clock import Clock
from keystead.edge import Caller
from keystead.messaging.sandbox.faults import FaultBoard
from keystead.messaging.sandbox.models import Channel, Faults, Message
from keystead.messaging.sandbox.outbox import Outbox

SCOPE: Final = "messaging"
_LINK: Final = re.compile(r"https?://[^\s\"'<>\\]+")
_MOST_LINKS: Final = 50
Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0, le=1e9)]


class StepShown(BaseModel):
    """From ``at`` on the message has this status, in the provider's own words."""

    status: str
    at: float
    code: int = 0


class MessageShown(BaseModel):
    """One message that somebody would have received."""

    number: int = Field(description="the first message that was taken has 1")
    id: str
    channel: Channel
    to: str
    at: float = Field(description="unix seconds")
    status: str = Field(description="where it stands now, in the provider's own words")
    title: str = ""
    text: str = ""
    html: str = ""
    links: list[str] = Field(description="addresses in the text, in order, each once; at most fifty")
    data: dict[str, object] = Field(default_factory=dict)
    steps: list[StepShown]


class OutboxShown(BaseModel):
    """Some messages in the order in which they were taken."""

    items: list[MessageShown]
    last: int = Field(description="ask again with this as `after`: for what follows, also for what is yet to come")


class FaultsShown(BaseModel):
    """How one provider behaves. Shares go from 0 (never) to 1 (always)."""

    model_config = ConfigDict(extra="forbid")

    latency_ms: Amount = Field(0.0, description="how long each answer takes")
    rate_per_second: Amount = Field(0.0, description="more than this is throttled; 0 for no limit")
    throttle: Share = Field(0.0, description="share of requests refused for being too many")
    retry_after_seconds: Amount = 1.0
    server_error: Share = Field(0.0, description="share of requests answered with a server error")
    cut_before: Share = Field(0.0, description="share cut off before anything was taken")
    cut_after: Share = Field(0.0, description="share cut off after it was taken")
    receipt_seconds: Amount = Field(1.0, description="how long until the last word on a message")
    undelivered: Share = Field(0.0, description="share that reaches nobody")
    complaint: Share = 0.0
    unregistered: Share = 0.0
    unregistered_tokens: list[Annotated[str, Field(max_length=200)]] = Field(default_factory=list, max_length=1000)
    lost: Share = Field(0.0, description="share of receipts that never come")
    duplicated: Share = 0.0
    reordered: Share = 0.0
    early: Share = 0.0
    unknown: Share = 0.0
    final_only: bool = False
    seed: Annotated[int, Field(ge=-2**31, le=2**31)] = 0


def routes(outbox: Outbox, board: FaultBoard, clock: Clock) -> APIRouter:
    """Under the prefix of the HTTP interface; only where a sandbox is served."""
    router = APIRouter(tags=["sandbox"])

    @router.get("/sandbox/outbox")
    async def list_messages(
        request: Request,
        channel: Annotated[Channel | None, Query(description="only this one")] = None,
        to: Annotated[str, Query(max_length=400, description="only this address")] = "",
        after: Annotated[int, Query(ge=0, le=2**53, description="only messages with a greater number")] = 0,
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
    ) -> OutboxShown:
        """What people would have received, in the order in which it was taken. A week is kept, and 10,000 messages.

        Not in pages, since it has no end: whoever follows it asks again and again for what came `after` the `last`.
        """
        _caller(request).require(SCOPE)
        feed = await outbox.feed(after, most=limit, channel=channel, address=to)
        now = clock.now()
        return OutboxShown(items=[_shown(number, each, now) for number, each in feed.messages], last=feed.last)

    @router.get("/sandbox/{channel}/faults")
    async def get_faults(request: Request, channel: Channel) -> FaultsShown:
        """How a provider behaves now."""
        _caller(request).require(SCOPE)
        await board.refresh()
        return FaultsShown.model_validate(msgspec.to_builtins(board.of(channel)))

    @router.put("/sandbox/{channel}/faults")
    async def set_faults(request: Request, channel: Channel, wanted: FaultsShown) -> FaultsShown:
        """Say how a provider behaves from now on; what is left out behaves well. The sequence begins anew."""
        _caller(request).require(SCOPE)
        await board.set(channel, msgspec.convert(wanted.model_dump(), Faults))
        return wanted

    return router


def links_in(message: Message) -> list[str]:
    """Addresses in the text, or else in the markup, and in the data of a push message; in order, each once."""
    places = [message.text, message.html, *(value for value in message.data.values() if isinstance(value, str))]
    found = (match.rstrip(".,;:!?)") for place in places for match in _LINK.findall(place))
    return list(dict.fromkeys(link.replace("&amp;", "&") for link in found))[:_MOST_LINKS]


def _shown(number: int, message: Message, now: float) -> MessageShown:
    return MessageShown(
        number=number, id=message.id, channel=message.channel, to=message.to, at=message.at,
        status=message.step_at(now).status,
        title=message.title, text=message.text, html=message.html, links=links_in(message), data=dict(message.data),
        steps=[StepShown(status=step.status, at=step.at, code=step.code) for step in message.steps],
    )


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller

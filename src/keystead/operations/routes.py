"""The HTTP door of alerts, for operators."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from keystead.edge.callers import Caller
from keystead.operations.alerts import MOST_NAME, Alerts
from keystead.operations.models import Alert, AlertEvent

SCOPE = "alerts"


class AlertShown(BaseModel):
    """Something that somebody should look at. Times are unix seconds."""

    kind: str = Field(examples=["queue_stuck"])
    subject: str = Field(description="of what", examples=["jobs hot"])
    says: str = Field(examples=["12 wait, the oldest for 7 minutes"])
    severity: Literal["warning", "critical"]
    opened_at: float
    seen_at: float = Field(description="when it was last seen to be so, within a minute")
    told: int = Field(description="how often somebody was told since it opened")
    told_at: float | None
    acked_at: float | None = Field(description="when somebody said that they know")
    acked_by: str

    @classmethod
    def of(cls, alert: Alert) -> "AlertShown":
        return cls(
            kind=alert.kind, subject=alert.subject, says=alert.says, severity=alert.severity,
            opened_at=alert.opened_at, seen_at=alert.seen_at, told=alert.told, told_at=alert.told_at or None,
            acked_at=alert.acked_at, acked_by=alert.acked_by,
        )


class AlertEventShown(BaseModel):
    """One change of an alert."""

    uid: str
    event: Literal["opened", "repeated", "worsened", "cleared", "test"]
    kind: str
    subject: str
    says: str
    severity: Literal["warning", "critical"]
    at: float
    opened_at: float

    @classmethod
    def of(cls, event: AlertEvent) -> "AlertEventShown":
        return cls(**{name: getattr(event, name) for name in cls.model_fields})


class AlertList(BaseModel):
    """What is open: critical first, then the oldest; and the last changes, newest first."""

    open: list[AlertShown]
    recent: list[AlertEventShown]


class Acknowledgement(BaseModel):
    """Which alert somebody knows of."""

    kind: str = Field(min_length=1, max_length=MOST_NAME, examples=["queue_stuck"])
    subject: str = Field(min_length=1, max_length=MOST_NAME, examples=["jobs hot"])


def routes(alerts: Alerts) -> APIRouter:
    """``/alerts``: list, acknowledge, test."""
    router = APIRouter(tags=["alerts"])

    @router.get("/alerts")
    async def list_alerts(request: Request, limit: Annotated[int, Query(ge=1, le=200)] = 50) -> AlertList:
        """Open alerts, all of them, and the last changes. Needs the scope ``alerts``.

        Not in pages: no more than two hundred changes are kept.
        """
        _caller(request).require(SCOPE)
        found, recent = await alerts.open(), await alerts.recent(limit)
        return AlertList(open=[AlertShown.of(one) for one in found], recent=[AlertEventShown.of(one) for one in recent])

    @router.post("/alerts/ack", responses={404: {}})
    async def acknowledge(request: Request, which: Acknowledgement) -> AlertShown:
        """Say that you know: nobody is told again until it clears or becomes critical. 404 if it is not open."""
        caller = _caller(request)
        caller.require(SCOPE)
        return AlertShown.of(await alerts.acknowledge(which.kind, which.subject, by=caller.subject))

    @router.post("/alerts/test", status_code=202)
    async def test(request: Request) -> AlertEventShown:
        """Send a test by every way that is set; nothing is opened."""
        _caller(request).require(SCOPE)
        return AlertEventShown.of(await alerts.test())

    return router


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller

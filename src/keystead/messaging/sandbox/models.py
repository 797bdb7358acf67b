"""What the sandbox keeps: messages with the plan of what becomes of them, webhooks to call, and how to misbehave."""

from typing import Annotated, Final, Literal

import msgspec

Channel = Literal["push", "sms", "email"]
CHANNELS: Final[tuple[Channel, ...]] = ("push", "sms", "email")
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Amount = Annotated[float, msgspec.Meta(ge=0)]


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """From ``at`` on the message has this status, in the provider's own words."""

    status: str
    at: float
    code: int = 0


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message. It is written once: its status is whichever step the clock has reached."""

    id: str
    channel: Channel
    to: str
    at: float
    steps: tuple[Step, ...]
    sender: str = ""
    title: str = ""
    text: str = ""
    html: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    tags: dict[str, str] = {}
    data: dict[str, object] = {}
    callback: str = ""
    account: str = ""
    service: str = ""
    direction: str = "outbound-api"

    @property
    def recipient(self) -> str:
        return f"{self.channel}:{self.to}"

    @property
    def ends_at(self) -> float:
        return max(step.at for step in self.steps)

    def step_at(self, now: float) -> Step:
        """Where it stands at a time; the first step if the time is before all of them."""
        reached = [step for step in self.steps if step.at <= now]
        return reached[-1] if reached else self.steps[0]


class Delivery(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call of a webhook. ``copy`` tells a duplicate from the first one; ``due_at`` is when it was to happen.

    ``to``: only this subscriber, who could not be reached when the others were told.
    """

    kind: Literal["status", "event", "inbound", "confirm"]
    of: str
    due_at: float
    step: int = 0
    copy: int = 0
    to: str = ""


class Subscription(msgspec.Struct, frozen=True):
    """Somebody who wants notifications; they get them once they proved that the address is theirs."""

    token: str
    arn: str
    confirmed: bool = False


class KeyPair(msgspec.Struct, frozen=True):
    """PEM texts."""

    private: str
    certificate: str


class Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one provider behaves. Shares go from 0 (never) to 1 (always); the README says what each one does."""

    latency_ms: Amount = 0.0
    rate_per_second: Amount = 0.0
    throttle: Share = 0.0
    retry_after_seconds: Amount = 1.0
    server_error: Share = 0.0
    cut_before: Share = 0.0
    cut_after: Share = 0.0
    receipt_seconds: Amount = 1.0
    undelivered: Share = 0.0
    complaint: Share = 0.0
    unregistered: Share = 0.0
    unregistered_tokens: tuple[str, ...] = ()
    lost: Share = 0.0
    duplicated: Share = 0.0
    reordered: Share = 0.0
    early: Share = 0.0
    unknown: Share = 0.0
    final_only: bool = False
    seed: int = 0

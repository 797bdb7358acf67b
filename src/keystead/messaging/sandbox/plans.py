"""What becomes of a message: which statuses follow, when, and which of them the sandbox tells by a webhook."""

import re
from collections.abc import Sequence
from typing import Final, Literal

from keystead.messaging.sandbox.faults import Fate
from keystead.messaging.sandbox.models import Delivery, Message, Step

# +1 500 555 3ddd is taken and then fails with error 30ddd; +1 500 555 2000 is taken and never heard of again.
_FAILS: Final = re.compile(r"\+15005553(\d{3})")
SILENT_NUMBER: Final = "+15005552000"
_REFUSED_LATE: Final = frozenset((30001, 30002))  # the provider itself gave up: failed, not undelivered
SIMULATOR: Final = "simulator.amazonses.com"
UNREACHABLE_CODE: Final = 30003


def sms_steps(to: str, now: float, fate: Fate, *, first: str) -> tuple[Step, ...]:
    """The life of a text. ``first`` is the status it is answered with."""
    if to == SILENT_NUMBER:
        return (Step(first, now),)
    wait = fate.faults.receipt_seconds
    on_its_way = [Step(first, now)]
    if first == "accepted":
        on_its_way.append(Step("queued", now + 0.2 * wait))
    on_its_way.append(Step("sending", now + 0.4 * wait))
    code = int("30" + found[1]) if (found := _FAILS.fullmatch(to)) else 0
    if not code and fate.meets("undelivered"):
        code = UNREACHABLE_CODE
    if fate.meets("unknown"):
        on_its_way.append(Step("partially_delivered", now + 0.5 * wait))
    if code:
        # Not sent first: who takes sent for good news would never hear the bad.
        return (*on_its_way, Step("failed" if code in _REFUSED_LATE else "undelivered", now + wait, code))
    return (*on_its_way, Step("sent", now + 0.6 * wait), Step("delivered", now + wait))


def email_steps(to: str, now: float, fate: Fate) -> tuple[Step, ...]:
    """The life of an email: it is taken, then events follow. The addresses of the real simulator do what they do."""
    local, _, domain = to.lower().partition("@")
    what = local.partition("+")[0] if domain == SIMULATOR else ""
    wait = fate.faults.receipt_seconds
    taken = Step("Send", now)
    if what == "silent":
        return (taken,)
    late = (Step("DeliveryDelay", now + 0.5 * wait),) if fate.meets("unknown") else ()
    if what in ("bounce", "suppressionlist", "softbounce"):
        return (taken, *late, Step({"softbounce": "Transient"}.get(what, "Permanent"), now + wait))
    if what == "complaint":
        return (taken, *late, Step("Delivery", now + wait), Step("Complaint", now + 2 * wait))
    if not what and fate.meets("undelivered"):
        return (taken, *late, Step("Permanent", now + wait))
    if not what and fate.meets("complaint"):
        return (taken, *late, Step("Delivery", now + wait), Step("Complaint", now + 2 * wait))
    return (taken, *late, Step("Delivery", now + wait))


PUSH_ERRORS: Final = {
    "gone": "DeviceNotRegistered", "big": "MessageTooBig", "rate": "MessageRateExceeded",
    "sender": "MismatchSenderId", "credentials": "InvalidCredentials",
}


def push_steps(token: str, now: float, fate: Fate, *, too_big: bool = False) -> tuple[Step, ...]:
    """The life of a push message: taken, then a receipt. Tokens such as ``ExponentPushToken[gone-1]`` get an error."""
    magic = token.partition("[")[2].partition("-")[0].rstrip("]")
    wait = fate.faults.receipt_seconds
    if magic == "silent" or fate.meets_again(fate.faults.lost):
        return (Step("taken", now),)
    error = "MessageTooBig" if too_big else PUSH_ERRORS.get(magic, "")
    if not error and fate.meets_again(fate.faults.unknown):
        error = "SomethingNew"
    if not error and fate.meets_again(fate.faults.undelivered):
        error = "DeviceNotRegistered"
    early = not error and fate.meets_again(fate.faults.early)
    return (Step("taken", now), Step(error or "ok", now if early else now + wait))


def webhooks(kind: Literal["status", "event"], message: Message, fate: Fate) -> list[Delivery]:
    """Which steps are told, and when: some are lost, come twice, or change places with the step before."""
    told = list(enumerate(message.steps))[1:]
    if fate.faults.final_only:
        told = told[-1:]
    times = [step.at for _, step in told]
    if len(times) > 1 and fate.meets("reordered"):
        times[-1], times[-2] = times[-2], times[-1]
    made: list[Delivery] = []
    for (place, _), at in zip(told, times, strict=True):
        if fate.meets_again(fate.faults.lost):
            continue
        made.append(Delivery(kind, message.id, at, place))
        if fate.meets_again(fate.faults.duplicated):
            made.append(Delivery(kind, message.id, at + 0.25 * fate.faults.receipt_seconds, place, copy=1))
    return made


def early(deliveries: Sequence[Delivery], fate: Fate) -> Delivery | None:
    """The one that is told before the request itself is answered, if it comes to that: the last."""
    return deliveries[-1] if deliveries and fate.meets("early") else None


"""Amazon SES version 2: sending, and the account's quota. Errors as the AWS protocol has them."""

import base64
import re
import secrets
import uuid
from collections.abc import Iterable
from email import message_from_bytes, policy
from email.utils import parseaddr
from typing import Final

import msgspec

from keystead.clock import Clock
from keystead.messaging.sandbox.faults import Fate
from keystead.messaging.sandbox.http import Answer, Asked, json_answer
from keystead.messaging.sandbox.ledger import Ledger
from keystead.messaging.sandbox.models import Message
from keystead.messaging.sandbox.plans import early, email_steps, webhooks
from keystead.messaging.sandbox.twilio import Tell

MOST_RECIPIENTS: Final = 50
UNLIMITED_RATE: Final = 1_000_000.0
_SIGNED: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=[^/,\s]+/\d{8}/[a-z0-9-]+/ses/aws4_request,\s*SignedHeaders=[^,\s]+,\s*"
    r"Signature=[0-9a-f]{64}"
)
_ADDRESS: Final = re.compile(r"[^@\s\x00-\x1f]{1,64}@[^@\s\x00-\x1f]{1,255}")
_TAG: Final = re.compile(r"[A-Za-z0-9_.@-]{1,256}")


class _Refused(Exception):
    """The request is wrong in a way that a type check does not see."""


class _Shape(msgspec.Struct, frozen=True, rename="pascal"):
    """The API writes its names LikeThis."""


class Text(_Shape, frozen=True):
    """A text and how it is written."""

    data: str
    charset: str = "UTF-8"


class MailBody(_Shape, frozen=True):
    """One or both forms of a mail."""

    text: Text | None = None
    html: Text | None = None


class Pair(_Shape, frozen=True):
    """A header or a tag."""

    name: str
    value: str


class Simple(_Shape, frozen=True):
    """A mail in parts."""

    subject: Text
    body: MailBody
    headers: tuple[Pair, ...] = ()


class Raw(_Shape, frozen=True):
    """A whole mail, in base64."""

    data: str


class EmailContent(_Shape, frozen=True):
    """Exactly one form of content."""

    simple: Simple | None = None
    raw: Raw | None = None


class Destination(_Shape, frozen=True):
    """Who gets it."""

    to_addresses: tuple[str, ...] = ()
    cc_addresses: tuple[str, ...] = ()
    bcc_addresses: tuple[str, ...] = ()


class SendEmail(_Shape, frozen=True):
    """The request, as far as the sandbox understands it."""

    content: EmailContent
    from_email_address: str = ""
    destination: Destination = Destination()
    reply_to_addresses: tuple[str, ...] = ()
    email_tags: tuple[Pair, ...] = ()
    configuration_set_name: str = ""


class Ses:
    """What answers under ``/ses``."""

    def __init__(self, ledger: Ledger, clock: Clock, tell: Tell) -> None:
        self._ledger = ledger
        self._clock = clock
        self._tell = tell

    async def handle(self, asked: Asked, fate: Fate) -> Answer:
        if not _SIGNED.fullmatch(asked.headers.get("authorization", "")) or "x-amz-date" not in asked.headers:
            return error(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
        if (asked.method, asked.path) == ("POST", "/v2/email/outbound-emails"):
            return await self._send(asked, fate)
        if (asked.method, asked.path) == ("GET", "/v2/email/account"):
            return _answer(200, self._account(fate))
        return error(404, "NotFoundException", "The resource that was asked for does not exist.")

    def throttled(self, fate: Fate) -> Answer:
        return error(429, "TooManyRequestsException", "Maximum sending rate exceeded.",
                     retry_after=f"{fate.faults.retry_after_seconds:g}")

    def broken(self) -> Answer:
        return error(503, "ServiceUnavailableException", "The service is unavailable; try again later.")

    def _account(self, fate: Fate) -> dict[str, object]:
        return {
            "DedicatedIpAutoWarmupEnabled": False, "EnforcementStatus": "HEALTHY", "ProductionAccessEnabled": True,
            "SendQuota": {
                "Max24HourSend": -1.0, "MaxSendRate": fate.faults.rate_per_second or UNLIMITED_RATE,
                "SentLast24Hours": 0.0,
            },
            "SendingEnabled": True, "SuppressionAttributes": {"SuppressedReasons": []},
        }

    async def _send(self, asked: Asked, fate: Fate) -> Answer:
        try:
            request = msgspec.json.decode(asked.body, type=SendEmail)
            messages = self._messages(request, fate)
        except (msgspec.DecodeError, UnicodeDecodeError, _Refused) as problem:
            return error(400, "BadRequestException", str(problem))
        told = [webhook for message in messages for webhook in webhooks("event", message, fate)]
        first = early(told, fate)
        if first is not None:
            first = msgspec.structs.replace(first, due_at=messages[0].at)
            told = [*told[:-1], first]
        await self._ledger.accept("email", messages, told)
        if first is not None:
            await self._tell(first, messages[-1])
        return _answer(200, {"MessageId": messages[0].tags["ses:message-id"]})

    def _messages(self, request: SendEmail, fate: Fate) -> list[Message]:
        """One for each recipient, all with the same id towards the outside."""
        to = request.destination
        recipients = [*to.to_addresses, *to.cc_addresses, *to.bcc_addresses]
        sender, (title, text, html, headers) = request.from_email_address, _content(request.content)
        if not 1 <= len(recipients) <= MOST_RECIPIENTS:
            raise _Refused(f"Recipient count must be between 1 and {MOST_RECIPIENTS}.")
        for address in (sender, *recipients, *request.reply_to_addresses):
            if not _ADDRESS.fullmatch(parseaddr(address)[1]):
                raise _Refused("Missing or invalid email address.")
        tags = {tag.name: tag.value for tag in request.email_tags}
        if not all(_TAG.fullmatch(name) and _TAG.fullmatch(value) for name, value in tags.items()):
            raise _Refused("A tag holds characters that are not allowed.")
        if request.configuration_set_name:
            tags["ses:configuration-set"] = request.configuration_set_name
        now, id = self._clock.now(), f"0101{secrets.token_hex(6)}-{uuid.uuid4()}-000000"
        named = [("From", sender), ("To", ", ".join(to.to_addresses)), ("Subject", title), *headers]
        if request.reply_to_addresses:
            named.append(("Reply-To", ", ".join(request.reply_to_addresses)))
        return [
            Message(
                id if place == 0 else f"{id}.{place}", "email", address, now, email_steps(address, now, fate),
                sender=sender, title=title, text=text, html=html, headers=tuple(named),
                tags={**tags, "ses:message-id": id},
            )
            for place, address in enumerate(parseaddr(each)[1] for each in recipients)
        ]


def _content(content: EmailContent) -> tuple[str, str, str, list[tuple[str, str]]]:
    """Subject, text, HTML and further headers."""
    if (content.simple is None) == (content.raw is None):
        raise _Refused("Content must hold exactly one of Simple and Raw.")
    if content.simple is not None:
        body = content.simple.body
        if body.text is None and body.html is None:
            raise _Refused("Body must hold Text or Html.")
        return (content.simple.subject.data, body.text.data if body.text else "", body.html.data if body.html else "",
                _clean((header.name, header.value) for header in content.simple.headers))
    assert content.raw is not None
    try:
        mail = message_from_bytes(base64.b64decode(content.raw.data, validate=True), policy=policy.default)
    except ValueError:
        raise _Refused("Raw data must be base64.") from None
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    rest = ((name, str(value)) for name, value in mail.items() if name.lower() not in ("from", "to", "subject"))
    return (str(mail.get("Subject", "")), text.get_content() if text else "", html.get_content() if html else "",
            _clean(rest))


def _clean(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    found = list(headers)
    if any(not re.fullmatch(r"[!-9;-~]+", name) or "\n" in value or "\r" in value for name, value in found):
        raise _Refused("A header holds characters that are not allowed.")
    return found


def _answer(status: int, body: object, **headers: str) -> Answer:
    return json_answer(status, body, x_amzn_requestid=str(uuid.uuid4()), **headers)


def error(status: int, kind: str, says: str, **headers: str) -> Answer:
    return _answer(status, {"message": says}, x_amzn_errortype=kind, **headers)

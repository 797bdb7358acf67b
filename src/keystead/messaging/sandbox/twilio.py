"""Twilio's Message resource: create, read, list; errors with the codes of the real one."""

import base64
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import formatdate
from typing import Final
from urllib.parse import parse_qs, parse_qsl, urlencode

import msgspec

from keystead.clock import Clock
from keystead.messaging.sandbox.faults import Fate, FaultBoard
from keystead.messaging.sandbox.http import Answer, Asked, json_answer
from keystead.messaging.sandbox.ledger import INBOX_MESSAGES, Ledger
from keystead.messaging.sandbox.models import Delivery, Message
from keystead.messaging.sandbox.plans import early, sms_steps, webhooks

API_VERSION: Final = "2010-04-01"
SENDER: Final = "+15005550006"
BODY_CHARACTERS: Final = 1600
_PATH: Final = re.compile(rf"/{API_VERSION}/Accounts/(\w+)/Messages(?:/(\w+))?\.json")
_NUMBER: Final = re.compile(r"\+[1-9]\d{6,14}")
# The numbers of the real test credentials, with the errors that they give.
MAGIC: Final = {
    "+15005550001": (21211, "The 'To' number {to} is not a valid phone number."),
    "+15005550002": (21612, "The 'To' phone number: {to}, is not currently reachable using the 'From' phone number."),
    "+15005550003": (21408, "Permission to send an SMS has not been enabled for the region indicated by the 'To' "
                            "number: {to}."),
    "+15005550004": (21610, "Attempt to send to unsubscribed recipient"),
    "+15005550009": (21614, "'To' number: {to}, is not a valid mobile number"),
}
ERROR_MESSAGES: Final = {
    30001: "Queue overflow", 30002: "Account suspended", 30003: "Unreachable destination handset",
    30004: "Message blocked", 30005: "Unknown destination handset", 30006: "Landline or unreachable carrier",
    30007: "Message filtered", 30008: "Unknown error", 30010: "Message price exceeds max price.",
}

Tell = Callable[[Delivery, Message], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Account:
    """Whose requests are believed, and what webhooks are signed with."""

    sid: str
    auth_token: str


def new_sid() -> str:
    return "SM" + secrets.token_hex(16)


def is_number(text: str) -> bool:
    """Whether it reads as a phone number does that Twilio takes."""
    return _NUMBER.fullmatch(text) is not None


class Twilio:
    """What answers under ``/twilio``."""

    def __init__(self, ledger: Ledger, board: FaultBoard, clock: Clock, account: Account, tell: Tell) -> None:
        self._ledger = ledger
        self._board = board
        self._clock = clock
        self._account = account
        self._tell = tell

    async def handle(self, asked: Asked, fate: Fate) -> Answer:
        found = _PATH.fullmatch(asked.path)
        if not self._is_known(asked.headers.get("authorization", "")):
            return error(401, 20003, "Authenticate", www_authenticate='Basic realm="Twilio API"')
        if found is None or found[1] != self._account.sid:
            return _not_found(asked.path)
        if found[2] is not None:
            return await self._read(asked, found[2]) if asked.method == "GET" else _not_allowed(asked)
        if asked.method == "POST":
            return await self._create(asked, fate)
        return await self._list(asked) if asked.method == "GET" else _not_allowed(asked)

    def throttled(self, fate: Fate) -> Answer:
        return error(429, 20429, "Too Many Requests", retry_after=f"{fate.faults.retry_after_seconds:g}")

    def broken(self) -> Answer:
        return error(500, 20500, "An internal server error has occurred")

    def _is_known(self, header: str) -> bool:
        right = base64.b64encode(f"{self._account.sid}:{self._account.auth_token}".encode()).decode()
        scheme, _, given = header.partition(" ")
        return scheme.lower() == "basic" and hmac.compare_digest(given.strip().encode(), right.encode())

    async def _create(self, asked: Asked, fate: Fate) -> Answer:
        try:
            form = dict(parse_qsl(asked.body.decode(), keep_blank_values=True))
        except UnicodeDecodeError:
            return error(400, 20001, "The body of the request is not valid UTF-8")
        to, body, callback = form.get("To", ""), form.get("Body", ""), form.get("StatusCallback", "")
        service, sender = form.get("MessagingServiceSid", ""), form.get("From", "")
        refusal = self._refusal(to, body, service or sender, callback)
        if refusal is not None:
            return refusal
        now = self._clock.now()
        message = Message(
            new_sid(), "sms", to, now, sms_steps(to, now, fate, first="accepted" if service else "queued"),
            sender=sender, text=body, callback=callback, account=self._account.sid, service=service,
        )
        told = webhooks("status", message, fate) if callback else []
        first = early(told, fate)
        if first is not None:
            first = msgspec.structs.replace(first, due_at=now)
            told = [*told[:-1], first]
        await self._ledger.accept("sms", [message], told)
        if first is not None:
            await self._tell(first, message)
        return json_answer(201, resource(message, now))

    def _refusal(self, to: str, body: str, sender: str, callback: str) -> Answer | None:
        if not to:
            return error(400, 21604, "A 'To' phone number is required.")
        if not is_number(to):
            return error(400, 21211, f"The 'To' number {to[:40]} is not a valid phone number.")
        if not sender:
            return error(400, 21603, "A 'From' phone number is required.")
        if not body:
            return error(400, 21602, "Message body is required.")
        if len(body) > BODY_CHARACTERS:
            return error(400, 21617, f"The concatenated message body exceeds the {BODY_CHARACTERS} character limit")
        if callback and not callback.startswith(("http://", "https://")):
            return error(400, 21609, f"The 'StatusCallback' URL {callback[:200]} is not a valid URL.")
        if to in MAGIC:
            code, says = MAGIC[to]
            return error(400, code, says.format(to=to))
        if to in self._board.stopped:
            return error(400, 21610, "Attempt to send to unsubscribed recipient")
        return None

    async def _read(self, asked: Asked, sid: str) -> Answer:
        (message,) = await self._ledger.find([sid])
        if message is None or message.channel != "sms":
            return _not_found(asked.path)
        return json_answer(200, resource(message, self._clock.now()))

    async def _list(self, asked: Asked) -> Answer:
        """Messages to one number, newest first, by pages. Without a number the sandbox has no list to give."""
        query = {name: values[-1] for name, values in parse_qs(asked.query).items()}
        size, page = _number(query.get("PageSize"), 50, 1, 1000), _number(query.get("Page"), 0, 0, 1000)
        found = await self._ledger.of("sms", query.get("To", ""), INBOX_MESSAGES)
        start = page * size
        shown = found[start:start + size]

        def uri(at: int) -> str:
            return f"{asked.path}?{urlencode({**query, 'PageSize': size, 'Page': at})}"

        return json_answer(200, {
            "first_page_uri": uri(0), "end": max(start + len(shown) - 1, 0),
            "next_page_uri": uri(page + 1) if start + size < len(found) else None,
            "previous_page_uri": uri(page - 1) if page else None, "page": page, "page_size": size, "start": start,
            "uri": uri(page), "messages": [resource(message, self._clock.now()) for message in shown],
        })


def resource(message: Message, now: float) -> dict[str, object]:
    """A Message resource as it reads at a time."""
    step = message.step_at(now)
    began = step.status in ("accepted", "queued")
    base = f"/{API_VERSION}/Accounts/{message.account}/Messages/{message.id}"
    return {
        "account_sid": message.account, "api_version": API_VERSION, "body": message.text,
        "date_created": _date(message.at), "date_sent": None if began else _date(message.at),
        "date_updated": _date(step.at),
        "direction": message.direction, "error_code": step.code or None,
        "error_message": ERROR_MESSAGES.get(step.code, "Unknown error") if step.code else None,
        "from": message.sender or (None if began else SENDER), "messaging_service_sid": message.service or None,
        "num_media": "0", "num_segments": "0" if message.service and began else str(1 + (len(message.text) - 1) // 153),
        "price": None, "price_unit": "USD", "sid": message.id, "status": step.status,
        "subresource_uris": {"media": f"{base}/Media.json"}, "to": message.to, "uri": f"{base}.json",
    }


def error(status: int, code: int, says: str, **headers: str) -> Answer:
    body = {"code": code, "message": says, "more_info": f"https://www.twilio.com/docs/errors/{code}", "status": status}
    return json_answer(status, body, **headers)


def _not_found(path: str) -> Answer:
    return error(404, 20404, f"The requested resource {path[:200]} was not found")


def _not_allowed(asked: Asked) -> Answer:
    return error(405, 20004, f"Method not allowed: {asked.method}")


def _date(at: float) -> str:
    return formatdate(at).replace("-0000", "+0000")


def _number(text: str | None, default: int, least: int, most: int) -> int:
    return min(max(int(text), least), most) if text and text.isdecimal() and len(text) < 10 else default

"""Expo's push service: tickets at once, receipts later."""

import json
import re
import uuid
from typing import Final

from keystead.clock import Clock
from keystead.messaging.sandbox.faults import Fate
from keystead.messaging.sandbox.http import Answer, Asked, json_answer
from keystead.messaging.sandbox.ledger import Ledger
from keystead.messaging.sandbox.models import Message
from keystead.messaging.sandbox.plans import push_steps

MOST_MESSAGES: Final = 100
MOST_RECEIPTS: Final = 1000
PAYLOAD_BYTES: Final = 4096
_TOKEN: Final = re.compile(r"(?:Exponent|Expo)PushToken\[[^\]\x00-\x1f]{1,200}\]")
_JSON: Final = "application/json; charset=utf-8"
_SAYS: Final = {
    "DeviceNotRegistered": "The device cannot receive push notifications anymore.",
    "MessageTooBig": "The total notification payload was too large.",
    "MessageRateExceeded": "Messages are sent too frequently to the given device.",
    "MismatchSenderId": "There is an issue with the FCM push credentials.",
    "InvalidCredentials": "The push notification credentials are invalid.",
}


class Expo:
    """What answers under ``/expo``."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    async def handle(self, asked: Asked, fate: Fate) -> Answer:
        path = asked.path
        if path not in ("/--/api/v2/push/send", "/--/api/v2/push/getReceipts"):
            return _errors(404, "NOT_FOUND", "The requested resource was not found.")
        if asked.method != "POST":
            return _errors(405, "METHOD_NOT_ALLOWED", "Only POST is allowed here.")
        try:
            body = asked.json()
        except ValueError:
            return _errors(400, "VALIDATION_ERROR", "The request body is not JSON.")
        return await (self._send(body, fate) if path.endswith("/send") else self._receipts(body))

    def throttled(self, fate: Fate) -> Answer:
        answer = _errors(429, "TOO_MANY_REQUESTS", "You are sending too many push notifications at once.", True)
        return Answer(429, answer.body, {**answer.headers, "retry-after": f"{fate.faults.retry_after_seconds:g}"})

    def broken(self) -> Answer:
        return _errors(503, "SERVICE_UNAVAILABLE", "The push service is unavailable; try again later.", True)

    async def _send(self, body: object, fate: Fate) -> Answer:
        wanted = body if isinstance(body, list) else [body]
        alone = isinstance(body, dict) and isinstance(body.get("to"), str)
        parts: list[tuple[str, dict[str, object]]] = []
        for place, each in enumerate(wanted):
            to = each.get("to") if isinstance(each, dict) else None
            tokens = [to] if isinstance(to, str) else to
            if not isinstance(each, dict) or not isinstance(tokens, list) or not tokens or not all(
                    isinstance(token, str) and token for token in tokens):
                return _errors(400, "VALIDATION_ERROR", f'"[{place}].to" must be a push token or an array of them.')
            parts += ((token, each) for token in tokens)
        if not parts or len(parts) > MOST_MESSAGES:
            return _errors(400, "PUSH_TOO_MANY_NOTIFICATIONS" if parts else "VALIDATION_ERROR",
                           f"You sent {len(parts)} push notifications; a request may hold 1 to {MOST_MESSAGES}.")
        taken: list[Message] = []
        tickets: list[dict[str, object]] = []
        for token, each in parts:
            if refusal := self._refusal(token, fate):
                tickets.append(refusal)
                continue
            taken.append(self._message(token, each, fate))
            tickets.append({"status": "ok", "id": taken[-1].id})
        if taken:
            await self._ledger.accept("push", taken)
        return json_answer(200, {"data": tickets[0] if alone else tickets}, _JSON)

    def _refusal(self, token: str, fate: Fate) -> dict[str, object] | None:
        details: dict[str, object] = {"error": "DeviceNotRegistered", "expoPushToken": token}
        if not _TOKEN.fullmatch(token):
            return {"status": "error", "message": f'"{token[:200]}" is not a valid Expo push token', "details": details}
        if (token in fate.faults.unregistered_tokens or "[unregistered" in token
                or fate.meets_again(fate.faults.unregistered)):
            return {"status": "error", "message": f'"{token}" is not a registered push notification recipient',
                    "details": details}
        return None

    def _message(self, token: str, each: dict[str, object], fate: Fate) -> Message:
        now = self._clock.now()
        rest = {name: value for name, value in each.items() if name not in ("to", "title", "body")}
        too_big = len(json.dumps({**each, "to": ""}, ensure_ascii=False).encode()) > PAYLOAD_BYTES
        return Message(
            str(uuid.uuid4()), "push", token, now, push_steps(token, now, fate, too_big=too_big),
            title=str(each.get("title") or ""), text=str(each.get("body") or ""), data=rest,
        )

    async def _receipts(self, body: object) -> Answer:
        ids = body.get("ids") if isinstance(body, dict) else None
        if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
            return _errors(400, "VALIDATION_ERROR", '"ids" must be an array of receipt ids.')
        if len(ids) > MOST_RECEIPTS:
            return _errors(400, "PUSH_TOO_MANY_RECEIPTS", f"A request may ask for {MOST_RECEIPTS} receipts at most.")
        now, found = self._clock.now(), await self._ledger.find(ids)
        receipts = {message.id: _receipt(message, message.step_at(now).status) for message in found
                    if message is not None and message.channel == "push" and message.step_at(now).status != "taken"}
        return json_answer(200, {"data": receipts}, _JSON)


def _receipt(message: Message, status: str) -> dict[str, object]:
    if status == "ok":
        return {"status": "ok"}
    details: dict[str, object] = {"error": status}
    if status == "DeviceNotRegistered":
        details["expoPushToken"] = message.to
    return {"status": "error", "message": _SAYS.get(status, "Something went wrong."), "details": details}


def _errors(status: int, code: str, says: str, transient: bool = False) -> Answer:
    return json_answer(status, {"errors": [{"code": code, "message": says, "isTransient": transient}]}, _JSON)

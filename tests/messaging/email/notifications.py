"""Notifications as SNS writes and signs them."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from cryptography.hazmat.primitives.serialization import load_pem_private_key

from keystead.messaging.email.sns import Fetched, Trust, Verifier
from keystead.messaging.sandbox.sns import new_key_pair
from keystead.messaging.signatures import sign_sns
from keystead.testing.clock import MovableClock

TOPIC = "arn:aws:sns:us-west-2:123456789012:ses-mail"
CERTIFICATE_URL = "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-0123.pem"
_PAIR = new_key_pair(1_700_000_000.0, 2048)
_KEY = load_pem_private_key(_PAIR.private.encode(), None)
_OTHER_KEY = load_pem_private_key(new_key_pair(1_700_000_000.0, 2048).private.encode(), None)


class Fetches:
    """In place of the network: what is asked for, and how it is answered."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.cache_control = ""
        self.is_away = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, url: str) -> Fetched | None:
        self.asked.append(url)
        await self.gate.wait()
        if self.is_away:
            return None
        return Fetched(_PAIR.certificate.encode() if url.endswith(".pem") else b"<ok/>", self.cache_control)


def verifier(clock: MovableClock, fetches: Fetches, *topics: str) -> Verifier:
    return Verifier(Trust(frozenset(topics or (TOPIC,))), clock, fetches)


def notification(
    clock: MovableClock, message: object, *, message_id: str = "11111111-aaaa", version: str = "1",
    forged: bool = False, **changed: Any,
) -> dict[str, Any]:
    """A signed message; ``changed`` fields are signed as well, None leaves one out."""
    stamp = datetime.fromtimestamp(clock.now(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    words: dict[str, Any] = {
        "Type": "Notification", "MessageId": message_id, "TopicArn": TOPIC, "Subject": "", "Timestamp": stamp,
        "Message": message if isinstance(message, str) else json.dumps(message), "SignatureVersion": version,
        "SigningCertURL": CERTIFICATE_URL, **changed,
    }
    words = {name: value for name, value in words.items() if value is not None}
    return {**words, "Signature": sign_sns(_OTHER_KEY if forged else _KEY, words)}  # type: ignore[arg-type]


def headers_of(words: Mapping[str, Any]) -> dict[str, str]:
    return {"x-amz-sns-message-type": words["Type"], "x-amz-sns-topic-arn": words["TopicArn"],
            "x-amz-sns-message-id": words["MessageId"]}


def delivery(message_id: str = "m-1", uid: str = "") -> dict[str, Any]:
    return {"notificationType": "Delivery", "mail": _mail(message_id, uid), "delivery": {"recipients": []}}


def bounce(
    message_id: str = "m-1", kind: str = "Permanent", more: str = "General", to: str = "a@example.com", uid: str = ""
) -> dict[str, Any]:
    told = {"bounceType": kind, "bounceSubType": more, "bouncedRecipients": [{"emailAddress": to, "status": "5.1.1"}]}
    return {"notificationType": "Bounce", "mail": _mail(message_id, uid), "bounce": told}


def complaint(message_id: str = "m-1", to: str = "a@example.com", uid: str = "") -> dict[str, Any]:
    told = {"complaintFeedbackType": "abuse", "complainedRecipients": [{"emailAddress": to}]}
    return {"notificationType": "Complaint", "mail": _mail(message_id, uid), "complaint": told}


def _mail(message_id: str, uid: str) -> dict[str, Any]:
    return {"messageId": message_id, "destination": ["a@example.com"], "tags": {"uid": [uid]} if uid else {}}

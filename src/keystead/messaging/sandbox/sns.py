"""Amazon SNS as SES uses it: a topic with subscribers, and notifications that are signed with a local certificate."""

import asyncio
import datetime
import secrets
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import parse_qs, urlencode
from xml.sax.saxutils import escape

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.messaging.sandbox.http import Answer, Asked
from keystead.messaging.sandbox.keys import DUE, KEY_PAIR, SUBSCRIPTIONS
from keystead.messaging.sandbox.models import Delivery, KeyPair, Message, Subscription
from keystead.messaging.signatures import sign_sns

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

TOPIC_ARN: Final = "arn:aws:sns:us-west-2:000000000000:keystead-sandbox"
CERTIFICATE_PATH: Final = "/sns/SimpleNotificationService-sandbox.pem"
KNOWN_SECONDS: Final = 1.0
_CERTIFIED_DAYS: Final = 3650
_IDS: Final = uuid.UUID("6f1d1f1e-52c4-4f0e-9a0a-1d6f7c7b3a55")
_XML: Final = {"content-type": "text/xml"}


class Sns:
    """The topic. ``base_url`` is where the sandbox is reached, prefix included."""

    def __init__(self, valkey: Valkey, clock: Clock, base_url: str, *, key_bits: int = 2048) -> None:
        self._valkey = valkey
        self._clock = clock
        self.base_url = base_url.rstrip("/")
        self._key_bits = key_bits
        self._known: dict[str, Subscription] | None = None
        self._known_at = 0.0
        self._pair: KeyPair | None = None
        self._key: RSAPrivateKey | None = None

    @property
    def certificate_url(self) -> str:
        return self.base_url + CERTIFICATE_PATH

    async def subscribe(self, endpoint: str) -> None:
        """Ask the endpoint to confirm that it wants notifications, unless it did so before."""
        token = secrets.token_hex(64)
        arn = f"{TOPIC_ARN}:{uuid.uuid5(_IDS, endpoint)}"
        known = await SUBSCRIPTIONS.at().get(self._valkey, endpoint)
        if known is not None and known.confirmed:
            return
        async with self._valkey.pipeline(transaction=True) as pipeline:
            SUBSCRIPTIONS.at().set(pipeline, endpoint, Subscription(token, arn))
            now = self._clock.now()
            DUE.schedule(pipeline, Delivery("confirm", endpoint, now), now)
            await pipeline.execute()
        self._known = None

    async def forget(self, endpoint: str) -> None:
        """An endpoint that was not reached for so long is told nothing more."""
        await SUBSCRIPTIONS.at().remove(self._valkey, endpoint)
        self._known = None

    async def subscribers(self) -> dict[str, Subscription]:
        """By endpoint, also those who have not confirmed. Changes made by another process are seen within a second."""
        now = asyncio.get_running_loop().time()
        if self._known is None or now - self._known_at > KNOWN_SECONDS:
            self._known, self._known_at = await SUBSCRIPTIONS.at().all(self._valkey), now
        return self._known

    async def handle(self, asked: Asked) -> Answer:
        """What answers under ``/sns``: the certificate, and the addresses that confirm and end a subscription."""
        if asked.path == CERTIFICATE_PATH:
            pair = await self._own()
            return Answer(200, pair.certificate.encode(),
                          {"content-type": "application/x-pem-file", "cache-control": "max-age=86400"})
        query = {name: values[-1] for name, values in parse_qs(asked.query).items()}
        wanted = query.get("Token") or query.get("SubscriptionArn")
        self._known = None
        for endpoint, known in (await self.subscribers()).items():
            if query.get("Action") == "ConfirmSubscription" and known.token == wanted:
                confirmed = msgspec.structs.replace(known, confirmed=True)
                await SUBSCRIPTIONS.at().set(self._valkey, endpoint, confirmed)
                self._known = None
                return _xml("ConfirmSubscription", f"<SubscriptionArn>{escape(known.arn)}</SubscriptionArn>")
            if query.get("Action") == "Unsubscribe" and known.arn == wanted:
                await SUBSCRIPTIONS.at().remove(self._valkey, endpoint)
                self._known = None
                return _xml("Unsubscribe", "")
        return Answer(400, b"<ErrorResponse><Error><Type>Sender</Type><Code>InvalidParameter</Code>"
                           b"<Message>Invalid parameter: Token</Message></Error></ErrorResponse>", _XML)

    async def notification(self, about: Message, delivery: Delivery, arn: str) -> tuple[bytes, dict[str, str]]:
        """Body and headers that tell a subscriber of one step of an email."""
        words = {
            "Type": "Notification", "MessageId": str(uuid.uuid5(_IDS, f"{about.id}:{delivery.step}:{arn}")),
            "TopicArn": TOPIC_ARN,
            "Message": msgspec.json.encode(event(about, delivery.step)).decode(),
            "Timestamp": _iso(self._clock.now()), "SignatureVersion": "1",
            "UnsubscribeURL": f"{self.base_url}/sns/?{urlencode({'Action': 'Unsubscribe', 'SubscriptionArn': arn})}",
        }
        return await self._signed(words, arn)

    async def confirmation(self, known: Subscription) -> tuple[bytes, dict[str, str]]:
        """Body and headers that ask a subscriber to confirm."""
        query = urlencode({"Action": "ConfirmSubscription", "TopicArn": TOPIC_ARN, "Token": known.token})
        words = {
            "Type": "SubscriptionConfirmation", "MessageId": str(uuid.uuid5(_IDS, known.token)), "Token": known.token,
            "TopicArn": TOPIC_ARN, "Message": f"You have chosen to subscribe to the topic {TOPIC_ARN}.\nTo confirm the "
            "subscription, visit the SubscribeURL included in this message.",
            "SubscribeURL": f"{self.base_url}/sns/?{query}", "Timestamp": _iso(self._clock.now()),
            "SignatureVersion": "1",
        }
        return await self._signed(words, "")

    async def _signed(self, words: Mapping[str, str], arn: str) -> tuple[bytes, dict[str, str]]:
        await self._own()
        assert self._key is not None
        signed = {**words, "Signature": sign_sns(self._key, words), "SigningCertURL": self.certificate_url}
        headers = {
            "x-amz-sns-message-type": words["Type"], "x-amz-sns-message-id": words["MessageId"],
            "x-amz-sns-topic-arn": TOPIC_ARN, "Content-Type": "text/plain; charset=UTF-8",
            "User-Agent": "Amazon Simple Notification Service Agent",
        }
        if arn:
            headers["x-amz-sns-subscription-arn"] = arn
        return msgspec.json.encode(signed), headers

    async def _own(self) -> KeyPair:
        """Our key: made by whoever needs it first, and the same for all processes and after a restart."""
        if self._pair is None:
            from cryptography.hazmat.primitives.serialization import load_pem_private_key

            pair = await KEY_PAIR.at().get(self._valkey)
            if pair is None:
                await KEY_PAIR.at().set_if_absent(self._valkey, new_key_pair(self._clock.now(), self._key_bits))
                pair = await KEY_PAIR.at().get(self._valkey)
                assert pair is not None
            self._key = cast("RSAPrivateKey", load_pem_private_key(pair.private.encode(), None))
            self._pair = pair
        assert self._pair is not None
        return self._pair


def new_key_pair(now: float, bits: int) -> KeyPair:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "keystead sandbox")])
    start = datetime.datetime.fromtimestamp(now, datetime.UTC) - datetime.timedelta(days=1)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=_CERTIFIED_DAYS)).sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(private.decode(), certificate.public_bytes(serialization.Encoding.PEM).decode())


def event(about: Message, place: int) -> dict[str, object]:
    """What SES says of one step. With a configuration set it is an event, otherwise a notification."""
    step = about.steps[place]
    kind = "Bounce" if step.status in ("Permanent", "Transient") else step.status
    set_name = about.tags.get("ses:configuration-set")
    id = about.tags.get("ses:message-id", about.id)
    tags = {name: [value] for name, value in about.tags.items() if name != "ses:message-id"}
    told: dict[str, object] = {
        "eventType" if set_name else "notificationType": kind,
        "mail": {
            "timestamp": _iso(about.at), "messageId": id, "source": about.sender, "sendingAccountId": "000000000000",
            "sourceArn": "arn:aws:ses:us-west-2:000000000000:identity/sandbox", "sourceIp": "127.0.0.1",
            "destination": [about.to], "headersTruncated": False,
            "headers": [{"name": name, "value": value} for name, value in about.headers],
            "commonHeaders": {"from": [about.sender], "to": [about.to], "messageId": id, "subject": about.title},
            "tags": tags,
        },
    }
    when = _iso(step.at)
    feedback = f"{uuid.uuid5(_IDS, f'{about.id}:{place}')}-000000"
    if kind == "Bounce":
        hard = step.status == "Permanent"
        status, says = ("5.1.1", "550 5.1.1 user unknown") if hard else ("4.4.7", "450 4.4.7 try again later")
        told["bounce"] = {
            "feedbackId": feedback, "bounceType": step.status, "bounceSubType": "General", "timestamp": when,
            "bouncedRecipients": [{"emailAddress": about.to, "action": "failed", "status": status,
                                   "diagnosticCode": f"smtp; {says}"}],
            "reportingMTA": "dsn; sandbox.amazonses.com",
        }
    elif kind == "Complaint":
        told["complaint"] = {
            "feedbackId": feedback, "complaintSubType": None, "complaintFeedbackType": "abuse", "timestamp": when,
            "complainedRecipients": [{"emailAddress": about.to}], "userAgent": "Amazon SES Mailbox Simulator",
            "arrivalDate": when,
        }
    elif kind == "Delivery":
        told["delivery"] = {
            "timestamp": when, "processingTimeMillis": int((step.at - about.at) * 1000), "recipients": [about.to],
            "smtpResponse": "250 2.0.0 OK", "remoteMtaIp": "127.0.0.1", "reportingMTA": "sandbox.amazonses.com",
        }
    else:
        told["deliveryDelay"] = {"timestamp": when, "delayType": "TransientCommunicationFailure",
                                 "delayedRecipients": [{"emailAddress": about.to}]}
    return told


def _iso(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _xml(action: str, result: str) -> Answer:
    return Answer(200, (
        f'<{action}Response xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><{action}Result>{result}</{action}Result>'
        f"<ResponseMetadata><RequestId>{uuid.uuid4()}</RequestId></ResponseMetadata></{action}Response>"
    ).encode(), _XML)

"""Amazon SES, version 2 of its API: one signed request for each email.

Who we are is found as every AWS tool finds it, or said in the settings.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.headerregistry import Address
from email.utils import formataddr
from typing import Any, Final

import msgspec
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.session import Session

from keystead.errors import Invalid
from keystead.messaging.email.gateway import (
    LANE_TAG,
    TEMPLATE_TAG,
    TIMEOUT_SECONDS,
    UID_HEADER,
    UID_TAG,
    Accepted,
    Mail,
    NoCredentials,
    NotAccepted,
    network_error,
    on_the_wire,
)
from keystead.messaging.email.signing import Keys, Signer
from keystead.messaging.sending import pause_of
from keystead.messaging.sending.http import AnswerLost, Connections, NotConnected
from keystead.settings import EmailSettings

SEND_PATH: Final = "/v2/email/outbound-emails"
ACCOUNT_PATH: Final = "/v2/email/account"
SERVICE: Final = "ses"
CHARSET: Final = "UTF-8"
MOST_ANSWER_BYTES: Final = 65_536
_THROTTLED: Final = frozenset(("TooManyRequestsException", "ThrottlingException", "Throttling", "RequestLimitExceeded"))
# The proof of who we are has run out or is not believed: it must be found anew, and the email is not to blame.
_NOT_BELIEVED: Final = frozenset((
    "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "InvalidSignatureException",
    "MissingAuthenticationToken", "MissingAuthenticationTokenException", "RequestExpired", "SignatureDoesNotMatch",
    "UnrecognizedClientException",
))


class SesGateway:
    """Sends through one account and region."""

    reports: Final = True

    def __init__(self, connections: Connections, settings: EmailSettings, url: str) -> None:
        self._connections, self._settings = connections, settings
        self._url = url.rstrip("/")
        self._session: Session | None = None
        self._sender = _sender(settings)
        self._signer = Signer(SERVICE, settings.region)

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: EmailSettings, *, sandbox_url: str = "") -> AsyncIterator["SesGateway"]:
        """With connections of its own, closed at the end."""
        end = ".cn" if settings.region.startswith("cn-") else ""
        real = f"https://email.{settings.region}.amazonaws.com{end}"
        url = settings.url or (sandbox_url if settings.provider == "sandbox" else real)
        if not url:
            raise Invalid("email.provider is sandbox, and no sandbox runs: set email.url, or choose ses or smtp")
        async with Connections.open(url, seconds=TIMEOUT_SECONDS, most_bytes=MOST_ANSWER_BYTES) as connections:
            yield cls(connections, settings, url)

    async def send(self, mail: Mail) -> Accepted | NotAccepted | NoCredentials:
        body = msgspec.json.encode(self._request(mail))
        headers = await self._signed("POST", SEND_PATH, body)
        if headers is None:
            return NoCredentials("no credentials for SES were found")
        try:
            got = await self._connections.ask("POST", SEND_PATH, body, headers)
        except NotConnected as error:
            return network_error(error, maybe_sent=False)
        except AnswerLost as error:
            return network_error(error, maybe_sent=True)
        return self._judged(got.status, got.headers.get("x-amzn-errortype", ""), got.body,
                            got.headers.get("retry-after", ""))

    async def rate_per_second(self) -> float | None:
        """What the account's quota allows; None if it cannot be asked now."""
        headers = await self._signed("GET", ACCOUNT_PATH, b"")
        if headers is None:
            return None
        try:
            got = await self._connections.ask("GET", ACCOUNT_PATH, headers=headers)
            if got.status != 200:
                return None
            rate = msgspec.json.decode(got.body)["SendQuota"]["MaxSendRate"]
            return float(rate) if float(rate) > 0 else None
        except (OSError, msgspec.DecodeError, ValueError, LookupError, TypeError):
            return None

    # -- what is sent -----------------------------------------------------------------------------------------------

    def _request(self, mail: Mail) -> dict[str, Any]:
        body = {name: {"Data": text, "Charset": CHARSET}
                for name, text in (("Html", mail.html), ("Text", mail.text)) if text is not None}
        tags = [{"Name": UID_TAG, "Value": mail.uid}, {"Name": LANE_TAG, "Value": str(mail.lane)}]
        if mail.template:
            tags.append({"Name": TEMPLATE_TAG, "Value": mail.template})
        request: dict[str, Any] = {
            "FromEmailAddress": self._sender,
            "Destination": {"ToAddresses": [on_the_wire(mail.to)]},
            "Content": {"Simple": {
                "Subject": {"Data": mail.subject, "Charset": CHARSET}, "Body": body,
                "Headers": [{"Name": name, "Value": value} for name, value in ((UID_HEADER, mail.uid), *mail.headers)],
            }},
            "EmailTags": tags,
        }
        if self._settings.reply_to:
            request["ReplyToAddresses"] = [self._settings.reply_to]
        if self._settings.configuration_set:
            request["ConfigurationSetName"] = self._settings.configuration_set
        return request

    async def _signed(self, method: str, path: str, body: bytes) -> dict[str, str] | None:
        credentials = await self._credentials()
        if credentials is None:
            return None
        who = Keys(credentials.access_key, credentials.secret_key, credentials.token or "")
        return self._signer.headers(method, self._url + path, body, who, datetime.now(UTC))

    async def _credentials(self) -> Any | None:
        settings = self._settings
        if settings.access_key:
            return Credentials(settings.access_key, settings.secret_key)
        if settings.provider == "sandbox":
            return Credentials("sandbox", "sandbox")
        # Files, environment or the metadata service: may block, so not on the event loop.
        return await asyncio.to_thread(self._found_credentials)

    def _found_credentials(self) -> Any | None:
        try:
            if self._session is None:
                self._session = Session()
            found = self._session.get_credentials()
            return None if found is None else found.get_frozen_credentials()
        except BotoCoreError:
            self._session = None
            return None

    # -- what came back ---------------------------------------------------------------------------------------------

    def _judged(
        self, status: int, error_type: str, answer: bytes, retry_after: str
    ) -> Accepted | NotAccepted | NoCredentials:
        code = error_type.split(":")[0].split("#")[-1] or _code_in(answer)
        if status >= 500:
            return NotAccepted("SESServerError", f"ses:{status}", retryable=True, status=status, extra=code,
                               retry_after_seconds=pause_of(retry_after))
        if status == 429 or code in _THROTTLED:
            return NotAccepted("SESTooManyRequestsException", "ses:TooManyRequestsException", retryable=True,
                               status=status, throttled=True, retry_after_seconds=pause_of(retry_after), extra=code)
        if code in _NOT_BELIEVED:
            self._session = None
            return NoCredentials(f"SES says {code}")
        if status >= 300:
            return NotAccepted("SESClientError", f"ses:{code or status}", retryable=False, status=status, extra=code)
        try:
            message_id = msgspec.json.decode(answer)["MessageId"]
        except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
            message_id = None
        if not isinstance(message_id, str) or not message_id:
            return NotAccepted("SESInternalError", "ses:NoMessageId", retryable=False, status=status)
        return Accepted(message_id)


def _sender(settings: EmailSettings) -> str:
    try:
        Address(settings.sender_name, addr_spec=settings.sender)
        # Other letters than ASCII are encoded in the name; SES takes none of them as they are.
        return formataddr((settings.sender_name, settings.sender))
    except Exception as error:  # the parser raises what it likes
        raise Invalid(f"email.sender is no address, or email.sender_name no name: {error}") from None


def _code_in(answer: bytes) -> str:
    try:
        found = msgspec.json.decode(answer)
        code = found.get("__type") or found.get("code") or ""
        return str(code).split("#")[-1][:100]
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError):
        return ""

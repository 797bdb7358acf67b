"""A mail server, by SMTP. No news comes back from it: that it took an email counts as delivered.

Identifiers of failures are those of SES, so that what counts and decides need not know who delivers.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import formatdate
from typing import Final
from urllib.parse import urlsplit

import aiosmtplib

from keystead.clock import Clock, SystemClock
from keystead.errors import Invalid
from keystead.messaging.email.gateway import (
    TIMEOUT_SECONDS,
    UID_HEADER,
    Accepted,
    Mail,
    NoCredentials,
    NotAccepted,
    network_error,
    on_the_wire,
)
from keystead.settings import EmailSettings

CLOSING: Final = 421  # the mail server itself ends, whatever it was asked
DEFAULT_PORTS: Final = {"smtp": 587, "smtps": 465}
# A long link in a header stays in one piece: folding would hide it from mail programs.
_POLICY: Final = SMTP_POLICY.clone(max_line_length=998)
_LOCAL: Final = frozenset(("localhost", "127.0.0.1", "::1"))


class SmtpGateway:
    """Keeps a few connections open. Whatever goes wrong on one closes it."""

    reports: Final = False

    def __init__(self, settings: EmailSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        parts = urlsplit(settings.url)
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
            raise Invalid("email.url must say where the mail server is, such as smtp://mail.example.com:587, or smtps://")
        self._host, self._port = parts.hostname, parts.port or DEFAULT_PORTS[parts.scheme]
        self._tls = parts.scheme == "smtps"
        self._idle: list[aiosmtplib.SMTP] = []
        try:
            self._sender = Address(settings.sender_name, addr_spec=settings.sender)
        except Exception as error:  # the parser raises what it likes
            raise Invalid(f"email.sender is no address: {error}") from None

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: EmailSettings, clock: Clock | None = None) -> AsyncIterator["SmtpGateway"]:
        """Closes its connections at the end."""
        gateway = cls(settings, clock or SystemClock())
        try:
            yield gateway
        finally:
            for connection in gateway._idle:
                connection.close()

    async def send(self, mail: Mail) -> Accepted | NotAccepted | NoCredentials:
        try:
            message = self._message(mail)
        except ValueError as error:  # something in it cannot be written as a header
            return NotAccepted("SESInternalError", f"ses:{type(error).__name__}", retryable=False)
        try:
            connection = await self._connection()
        except aiosmtplib.SMTPAuthenticationError as error:
            return NoCredentials(f"the mail server refuses our name or password ({error.code})")
        except (aiosmtplib.SMTPException, OSError) as error:
            return network_error(error, maybe_sent=False)
        outcome = await self._hand_over(connection, message)
        if isinstance(outcome, Accepted) and len(self._idle) < self._settings.concurrent_requests:
            self._idle.append(connection)
        else:
            connection.close()
        return outcome

    async def rate_per_second(self) -> float | None:
        return None

    async def _hand_over(self, connection: aiosmtplib.SMTP, message: EmailMessage) -> Accepted | NotAccepted:
        try:
            # Written out here: the client would fold long headers in its own way.
            await connection.sendmail(self._settings.sender, [str(message["To"])], message.as_bytes())
        except aiosmtplib.SMTPRecipientsRefused as error:
            code = error.recipients[0].code if error.recipients else 550
            return replace(_refused(code), of_recipient=code != CLOSING)
        except aiosmtplib.SMTPResponseException as error:
            return _refused(error.code)
        except (aiosmtplib.SMTPException, OSError) as error:
            return network_error(error, maybe_sent=True)
        except ValueError as error:
            return NotAccepted("SESInternalError", f"ses:{type(error).__name__}", retryable=False)
        return Accepted(str(message[UID_HEADER]), delivered=True)

    async def _connection(self) -> aiosmtplib.SMTP:
        while self._idle:
            connection = self._idle.pop()
            try:
                await connection.noop(timeout=TIMEOUT_SECONDS)
            except (aiosmtplib.SMTPException, OSError):
                connection.close()  # the server hung up meanwhile
            else:
                return connection
        user = self._settings.access_key or None
        connection = aiosmtplib.SMTP(
            hostname=self._host, port=self._port, use_tls=self._tls, timeout=TIMEOUT_SECONDS, username=user,
            password=self._settings.secret_key or None,
            # A password crosses the network encrypted or not at all; otherwise encryption is used where it is offered.
            start_tls=False if self._tls else True if user and self._host not in _LOCAL else None,
        )
        try:
            await connection.connect()
        except BaseException:
            connection.close()
            raise
        return connection

    def _message(self, mail: Mail) -> EmailMessage:
        message = EmailMessage(policy=_POLICY)
        message["From"] = self._sender
        message["To"] = on_the_wire(mail.to)
        if self._settings.reply_to:
            message["Reply-To"] = self._settings.reply_to
        message["Subject"] = mail.subject
        message["Date"] = formatdate(self._clock.now())
        # The same email keeps its id when it is sent again, so that a mail server can tell.
        message["Message-ID"] = f"<{mail.uid}@{self._settings.sender.rpartition('@')[2]}>"
        message[UID_HEADER] = mail.uid
        for name, value in mail.headers:
            message[name] = value
        if mail.text is not None:
            message.set_content(mail.text)
        if mail.html is not None and mail.text is not None:
            message.add_alternative(mail.html, subtype="html")
        elif mail.html is not None:
            message.set_content(mail.html, subtype="html")
        return message


def _refused(code: int) -> NotAccepted:
    if 400 <= code < 500:
        return NotAccepted("SESServerError", f"ses:{code}", retryable=True, status=code)
    return NotAccepted("SESClientError", f"ses:{code}", retryable=False, status=code)

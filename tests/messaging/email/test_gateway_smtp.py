"""SMTP: a real mail server takes email, refuses it, or hangs up."""

from collections.abc import AsyncIterator, Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from keystead.messaging.email.gateway import Accepted, Mail, NotAccepted
from keystead.messaging.email.gateway_smtp import SmtpGateway
from keystead.settings import EmailSettings

LONG_LINK = "<https://app.example.com/api/1/emails/unsubscribe?token=" + "a" * 400 + ">"
MAIL = Mail("em_1", "ada@example.com", "Grüße an alle", "<p>Ü</p>", "Ü",
            headers=(("List-Unsubscribe", LONG_LINK), ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")))


class MailServer:
    """Keeps what it took. Addresses say how it is to behave."""

    def __init__(self) -> None:
        self.taken: list[EmailMessage] = []
        self.raw = b""
        self.connections: set[int] = set()

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: object
    ) -> str:
        self.connections.add(id(session))
        if address.startswith("nobody"):
            return "550 5.1.1 no such user"
        if address.startswith("busy"):
            return "451 4.7.1 try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        if any(address.startswith("cut") for address in envelope.rcpt_tos):
            assert server.transport is not None
            server.transport.close()
        self.raw = envelope.content
        found = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(found, EmailMessage)
        self.taken.append(found)
        return "250 taken"


@pytest.fixture
def mail_server(unused_tcp_port: int) -> Iterator[tuple[MailServer, int]]:
    handler = MailServer()
    controller = Controller(handler, hostname="127.0.0.1", port=unused_tcp_port)
    controller.start()
    try:
        yield handler, unused_tcp_port
    finally:
        controller.stop()


@pytest.fixture
async def gateway(mail_server: tuple[MailServer, int]) -> AsyncIterator[SmtpGateway]:
    settings = EmailSettings(provider="smtp", url=f"smtp://127.0.0.1:{mail_server[1]}", sender_name="Keystead")
    async with SmtpGateway.open(settings) as opened:
        yield opened


async def test_an_email_that_was_taken_counts_as_delivered(
    gateway: SmtpGateway, mail_server: tuple[MailServer, int]
) -> None:
    assert await gateway.send(MAIL) == Accepted("em_1", delivered=True)
    (mail,) = mail_server[0].taken
    assert mail["From"] == "Keystead <hello@example.com>" and mail["To"] == "ada@example.com"
    assert mail["Subject"] == "Grüße an alle" and mail["Reply-To"] == "support@example.com"
    assert mail["Message-ID"] == "<em_1@example.com>" and mail["X-Keystead-Uid"] == "em_1" and mail["Date"]
    html, text = mail.get_body(("html",)), mail.get_body(("plain",))
    assert html is not None and text is not None
    assert html.get_content().strip() == "<p>Ü</p>" and text.get_content().strip() == "Ü"


async def test_the_link_to_unsubscribe_stays_in_one_piece(
    gateway: SmtpGateway, mail_server: tuple[MailServer, int]
) -> None:
    await gateway.send(MAIL)
    assert b"List-Unsubscribe: " + LONG_LINK.encode() + b"\r\n" in mail_server[0].raw


async def test_connections_are_used_again(gateway: SmtpGateway, mail_server: tuple[MailServer, int]) -> None:
    for _ in range(3):
        assert isinstance(await gateway.send(MAIL), Accepted)
    assert len(mail_server[0].connections) == 1


@pytest.mark.parametrize(("to", "identifier", "breakdown", "retryable", "maybe_sent"), [
    ("nobody@example.com", "SESClientError", "ses:550", False, False),
    ("busy@example.com", "SESServerError", "ses:451", True, False),
    ("cut@example.com", "SESNetworkError", "ses:ConnectionError", True, True),
])
async def test_refusals_fall_into_the_documented_classes_and_the_next_email_is_not_hurt(
    gateway: SmtpGateway, to: str, identifier: str, breakdown: str, retryable: bool, maybe_sent: bool
) -> None:
    got = await gateway.send(Mail("em_2", to, "s", None, "t"))
    assert isinstance(got, NotAccepted)
    assert (got.identifier, got.breakdown, got.retryable, got.maybe_sent) == (
        identifier, breakdown, retryable, maybe_sent)
    assert got.of_recipient is not maybe_sent, "a mailbox that is busy says nothing of the mail server"
    assert isinstance(await gateway.send(MAIL), Accepted)


async def test_a_mail_server_that_is_not_there_was_not_asked(unused_tcp_port: int) -> None:
    settings = EmailSettings(provider="smtp", url=f"smtp://127.0.0.1:{unused_tcp_port}")
    async with SmtpGateway.open(settings) as gateway:
        got = await gateway.send(MAIL)
    assert isinstance(got, NotAccepted) and got.identifier == "SESNetworkError" and not got.maybe_sent

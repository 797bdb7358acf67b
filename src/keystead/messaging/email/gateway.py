"""The outside provider of email, as the room sees it: one email goes out, and what became of it is a value.

``gateway_ses.py`` speaks to Amazon SES, or to a sandbox that speaks as it does; ``gateway_smtp.py`` to a mail server.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from keystead.settings import EmailSettings

TIMEOUT_SECONDS: Final = 10.0
UID_HEADER: Final = "X-Keystead-Uid"
UID_TAG: Final = "uid"
TEMPLATE_TAG: Final = "template"
LANE_TAG: Final = "lane"


@dataclass(frozen=True, slots=True)
class Mail:
    """What leaves. ``headers`` are added as they are; ``uid`` and ``lane`` come back with the provider's news."""

    uid: str
    to: str
    subject: str
    html: str | None
    text: str | None
    template: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    lane: int = 0


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider took it. ``delivered``: no news will come, and taking it is all there is."""

    message_id: str
    delivered: bool = False


@dataclass(frozen=True, slots=True)
class NotAccepted:
    """The provider did not take it, or we do not know.

    ``identifier`` and ``extra`` are told to the failure job, ``breakdown`` is counted. ``maybe_sent``: the request left
    and its answer was lost. ``status`` 0: there was no answer. ``of_recipient``: it is the mailbox that cannot take it
    now, and says nothing of how the provider is.
    """

    identifier: str
    breakdown: str
    retryable: bool
    status: int = 0
    throttled: bool = False
    retry_after_seconds: float = 0.0
    maybe_sent: bool = False
    extra: str = ""
    of_recipient: bool = False


@dataclass(frozen=True, slots=True)
class NoCredentials:
    """Nothing was sent, because what proves who we are cannot be had now."""

    reason: str = ""


class EmailGateway(Protocol):
    """A provider. Failures are values: nothing that a provider does is raised.

    ``reports``: it tells later what became of an email, with our uid.
    """

    @property
    def reports(self) -> bool: ...

    async def send(self, mail: Mail) -> Accepted | NotAccepted | NoCredentials:
        """Hand one email over."""
        ...

    async def rate_per_second(self) -> float | None:
        """How many the account may send in a second; None where nobody says."""
        ...


def on_the_wire(address: str) -> str:
    """The address as servers know it: a domain in other letters is written as they look it up."""
    local, at, domain = address.rpartition("@")
    try:
        return f"{local}{at}{domain.encode('idna').decode()}"
    except UnicodeError:
        return address


def network_error(error: BaseException, *, maybe_sent: bool) -> NotAccepted:
    """The provider was not reached, or did not answer."""
    return NotAccepted("SESNetworkError", "ses:ConnectionError", retryable=True, maybe_sent=maybe_sent,
                       extra=type(error).__name__)


@asynccontextmanager
async def open_gateway(settings: EmailSettings, *, sandbox_url: str = "") -> AsyncIterator[EmailGateway]:
    """The gateway that the settings name. ``sandbox_url``: where our sandbox listens, for that provider."""
    if settings.provider == "smtp":
        from keystead.messaging.email.gateway_smtp import SmtpGateway

        async with SmtpGateway.open(settings) as smtp:
            yield smtp
    else:
        from keystead.messaging.email.gateway_ses import SesGateway

        async with SesGateway.open(settings, sandbox_url=sandbox_url) as ses:
            yield ses


async def allowed_rate(gateway: EmailGateway, settings: EmailSettings) -> float:
    """Email per second: what the settings say, and no more than the account's quota. 0: any number."""
    quota = await gateway.rate_per_second()
    if quota is None or 0 < settings.rate_per_second < quota:
        return settings.rate_per_second
    return quota

"""Which gateway the settings name."""

from keystead.messaging.email.gateway import network_error, on_the_wire, open_gateway
from keystead.messaging.email.gateway_ses import SesGateway
from keystead.messaging.email.gateway_smtp import SmtpGateway
from keystead.settings import EmailSettings


async def test_the_provider_decides_and_only_one_that_reports_is_verified_by_news() -> None:
    async with open_gateway(EmailSettings(), sandbox_url="http://127.0.0.1:1") as sandbox:
        assert isinstance(sandbox, SesGateway) and sandbox.reports
    async with open_gateway(EmailSettings(provider="ses")) as ses:
        assert isinstance(ses, SesGateway)
    async with open_gateway(EmailSettings(provider="smtp", url="smtp://127.0.0.1:1")) as smtp:
        assert isinstance(smtp, SmtpGateway) and not smtp.reports


def test_domains_in_other_letters_are_written_as_servers_know_them() -> None:
    assert on_the_wire("ada@bücher.example") == "ada@xn--bcher-kva.example"
    assert on_the_wire("ada@example.com") == "ada@example.com"
    assert on_the_wire("ada@" + "x" * 70 + ".example").startswith("ada@xxx"), "what cannot be one is left alone"


def test_a_network_error_may_be_tried_again() -> None:
    error = network_error(TimeoutError(), maybe_sent=True)
    assert (error.identifier, error.breakdown, error.retryable, error.extra) == (
        "SESNetworkError", "ses:ConnectionError", True, "TimeoutError")

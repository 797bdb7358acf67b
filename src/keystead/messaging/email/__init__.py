"""Email: templates, sending through SES or SMTP, and what is heard of it afterwards."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.messaging.email.door import Email
    from keystead.messaging.email.failures import Failures
    from keystead.messaging.email.gateway import EmailGateway, allowed_rate, open_gateway
    from keystead.messaging.email.models import (
        EmailFailure,
        EmailSuccess,
        OutgoingEmail,
        PendingEmail,
        read_failure,
        read_success,
    )
    from keystead.messaging.email.news import News
    from keystead.messaging.email.sender import Sender
    from keystead.messaging.email.sns import Fetch, Fetched, Trust, Verifier, fetching
    from keystead.messaging.email.suppressed import Suppressed
    from keystead.messaging.email.template_tokens import TemplateTokens
    from keystead.messaging.email.templates import NotRendered, Rendered, Templates
    from keystead.messaging.email.unsubscribe import Unsubscribing
else:
    __getattr__ = opened_when_used(__name__)

__all__ = [
    "Email",
    "EmailFailure",
    "EmailGateway",
    "EmailSuccess",
    "Failures",
    "Fetch",
    "Fetched",
    "News",
    "NotRendered",
    "OutgoingEmail",
    "PendingEmail",
    "Rendered",
    "Sender",
    "Suppressed",
    "TemplateTokens",
    "Templates",
    "Trust",
    "Unsubscribing",
    "Verifier",
    "allowed_rate",
    "fetching",
    "open_gateway",
    "read_failure",
    "read_success",
]

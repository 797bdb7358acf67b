"""What every provider's calls are counted as: from their arrival to whether they could be used."""

from typing import Final

WEBHOOK_EVENTS: Final = (
    "received", "verified", "accepted", "unprocessable", "signature_missing", "signature_invalid", "body_read_error",
    "body_max_size_exceeded", "body_parse_error",
)
WEBHOOK_IDENTITIES: Final = (
    "accepted + unprocessable = verified",
    "verified + signature_missing + signature_invalid + body_read_error + body_max_size_exceeded + body_parse_error"
    " = received",
)
WEBHOOK_KEPT_SECONDS: Final = 604_800

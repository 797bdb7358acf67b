"""What lies in the room's queues."""

import msgspec


class VisitorLink(msgspec.Struct, frozen=True):
    """A person was seen on a device at ``seen_at``."""

    visitor_uid: str
    user_sub: str
    seen_at: float


class VisitorClick(msgspec.Struct, frozen=True, omit_defaults=True):
    """A device came through a link of a campaign at ``clicked_at``. What is left out was not in the link."""

    visitor_uid: str
    utm_source: str
    clicked_at: float
    utm_medium: str | None = None
    utm_campaign: str | None = None
    utm_term: str | None = None
    utm_content: str | None = None

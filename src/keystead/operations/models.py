"""What lies in Valkey of alerts and of the census. New fields have defaults, so that yesterday's can be read today."""

from typing import Literal

import msgspec

Severity = Literal["warning", "critical"]
Event = Literal["opened", "repeated", "worsened", "cleared", "test"]
Way = Literal["webhook", "mail", "log"]


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """Something that somebody should look at. ``subject`` says of what: a queue, a provider, a server.

    ``version`` counts its changes; ``told`` how often somebody was told since it opened, and ``told_at`` when last,
    also in an earlier life; ``critical_told_at`` when last that it is critical. It is open while ``cleared_at`` is
    None. No personal data is in any of it.
    """

    kind: str
    subject: str
    says: str
    severity: Severity
    opened_at: float
    version: int
    seen_at: float
    told_at: float = 0.0
    told: int = 0
    cleared_at: float | None = None
    acked_at: float | None = None
    acked_by: str = ""
    critical_told_at: float = 0.0

    @property
    def is_open(self) -> bool:
        return self.cleared_at is None


class AlertEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One change of an alert, as it was then. ``perhaps_told``: somebody may have been told of it already by this way,
    because whoever did so was killed, or heard no answer."""

    uid: str
    event: Event
    kind: str
    subject: str
    says: str
    severity: Severity
    at: float
    opened_at: float
    perhaps_told: bool = False


class AlertDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """An event that is to reach somebody by one way."""

    way: Way
    event: AlertEvent


class DeadSeen(msgspec.Struct, frozen=True):
    """How many dead letters a place had when it was last looked at, and when it last had more than before."""

    count: int
    grew_at: float


class KeptCensus(msgspec.Struct, frozen=True, kw_only=True):
    """One walk over all keys: of each pattern how many keys, their memory, and whether that is estimated.

    ``undeclared`` are keys and memory of what nobody declares, ``undeclared_patterns`` what their names have in common.
    """

    counted_at: float
    took_seconds: float
    patterns: dict[str, tuple[int, int, bool]]
    undeclared: tuple[int, int]
    undeclared_patterns: dict[str, int]

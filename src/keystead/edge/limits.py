"""The baseline limits per address, and what one look at such a limit says."""

import math
from dataclasses import dataclass
from enum import Enum

from keystead.edge import keys
from keystead.keys import IntegerKey


class WhenAway(Enum):
    """What a limit does while the server that counts is away."""

    OPEN = "let through"
    CLOSED = "refuse as unavailable"


@dataclass(frozen=True, slots=True)
class IpLimit:
    """At most ``most`` uses per address in a fixed window; each refused use weighs ``weight`` as a violation."""

    name: str
    key: IntegerKey
    most: int
    window_seconds: int
    weight: int
    when_away: WhenAway


API = IpLimit("api_ip", keys.API_IP, 600, keys.API_WINDOW_SECONDS, 1, WhenAway.OPEN)
LOGIN = IpLimit("login_ip", keys.LOGIN_IP, 10, keys.LOGIN_WINDOW_SECONDS, 2, WhenAway.OPEN)
REGISTER = IpLimit("register_ip", keys.REGISTER_IP, 5, keys.REGISTER_WINDOW_SECONDS, 3, WhenAway.CLOSED)
RESET_PASSWORD = IpLimit(
    "reset_password_ip", keys.RESET_PASSWORD_IP, 5, keys.RESET_PASSWORD_WINDOW_SECONDS, 2, WhenAway.CLOSED
)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a use is allowed, and how full the window is."""

    allowed: bool
    limit: int
    remaining: int
    reset_seconds: float

    def headers(self) -> dict[str, str]:
        """For every answer of a limited path; a refusal also says when to come back."""
        reset = str(math.ceil(self.reset_seconds))
        headers = {"RateLimit-Limit": str(self.limit), "RateLimit-Remaining": str(self.remaining),
                   "RateLimit-Reset": reset}
        if not self.allowed:
            headers["Retry-After"] = str(max(1, math.ceil(self.reset_seconds)))
        return headers

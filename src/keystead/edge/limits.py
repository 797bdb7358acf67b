"""The baseline limits per address, and what one look at such a limit says."""

import math
from dataclasses import dataclass

from keystead.edge import keys
from keystead.patterns import FixedWindow, WhenAway


@dataclass(frozen=True, slots=True)
class IpLimit:
    """So many uses per address in a fixed window; each refused use weighs ``weight`` as a violation, with 0 as none."""

    name: str
    window: FixedWindow
    weight: int

    @property
    def most(self) -> int:
        return self.window.most

    @property
    def window_seconds(self) -> float:
        return self.window.window_seconds

    @property
    def when_away(self) -> WhenAway:
        return self.window.when_away

    @property
    def untouched(self) -> "Decision":
        """What is said to those who are not counted, and while nobody can count."""
        return Decision(True, self.most, self.most, self.window_seconds)


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


API = IpLimit("api_ip", keys.API_WINDOW, 1)
LOGIN = IpLimit("login_ip", keys.LOGIN_WINDOW, 2)
REGISTER = IpLimit("register_ip", keys.REGISTER_WINDOW, 3)
RESET_PASSWORD = IpLimit("reset_password_ip", keys.RESET_PASSWORD_WINDOW, 2)

# Whoever shares an address with a flood is refused for as long as it lasts, and not blocked for it.
LINK = IpLimit("link_ip", keys.LINK_WINDOW, 0)
WRONG_CODE = IpLimit("wrong_code_ip", keys.WRONG_CODE_WINDOW, 0)
WRONG_KEY = IpLimit("wrong_key_ip", keys.WRONG_KEY_WINDOW, 0)

"""Codes of links: as long as they need to be, and random."""

import secrets
from collections.abc import Callable
from typing import Final

from keystead.errors import LimitReached
from keystead.messaging.links.models import DEFAULTS, Style
from keystead.settings import LinksSettings

NORMAL_BYTES: Final = 16
LONG_BYTES: Final = 64


class Codes:
    """Makes codes. Short ones grow by a byte when, in this process, more than a few in a row were taken already."""

    def __init__(self, settings: LinksSettings = DEFAULTS, token: Callable[[int], str] = secrets.token_urlsafe) -> None:
        self._token, self._settings = token, settings
        self.short_bytes = settings.short_bytes
        self._taken_in_a_row = 0

    def new(self, style: Style) -> str:
        """A code. One that is not short is taken to be unique."""
        if style is Style.SHORT:
            return self._token(self.short_bytes)
        return self._token(LONG_BYTES if style is Style.LONG else NORMAL_BYTES)

    def was_free(self) -> None:
        """A short code could be used."""
        self._taken_in_a_row = 0

    def was_taken(self) -> None:
        """A short code belongs to another link. ``LimitReached`` when they cannot grow any more."""
        self._taken_in_a_row += 1
        if self._taken_in_a_row <= self._settings.short_streak:
            return
        if self.short_bytes >= self._settings.most_short_bytes:
            raise LimitReached(f"no short code is free at {self.short_bytes} bytes, the most there may be",
                               retry_after_seconds=60.0)
        self.short_bytes += 1
        self._taken_in_a_row = 0

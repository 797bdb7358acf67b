"""What links and clicks are: in Valkey, on the way to the database, and to whoever asks."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec

from keystead.settings import LinksSettings

DEFAULTS: Final = LinksSettings()


class TrackType(StrEnum):
    """A click, or that whoever clicked has logged in since."""

    ON_CLICK = "on_click"
    POST_LOGIN = "post_login"


class Style(StrEnum):
    """How a code is made: ``SHORT`` can be guessed and only leads somewhere, ``LONG`` is a secret that permits."""

    NORMAL = "normal"
    LONG = "long"
    SHORT = "short"


class BufferedLink(msgspec.Struct, frozen=True):
    """A link. Which page and preview it names is an open set: unknown ones are kept and returned as they are."""

    uid: str
    code: str
    touch_uid: str
    page_identifier: str
    created_at: float
    page_extra: dict[str, Any] = {}
    preview_identifier: str = "default"
    preview_extra: dict[str, Any] = {}


class Click(msgspec.Struct, frozen=True):
    """A click on a link that is not in the database yet."""

    uid: str
    clicked_at: float
    track_type: TrackType
    visitor_uid: str | None = None
    user_sub: str | None = None
    parent_uid: str | None = None


class ClickIndex(msgspec.Struct, frozen=True):
    """Which link a click was on, and whether a login after it is known."""

    code: str
    has_child: bool = False


class DelayedClick(msgspec.Struct, frozen=True):
    """A click that came while its link was being stored. What is not known is empty."""

    uid: str
    link_code: str
    track_type: TrackType
    clicked_at: float
    parent_uid: str = ""
    user_sub: str = ""
    visitor_uid: str = ""

    @property
    def click(self) -> Click:
        """The same as a click of the link."""
        return Click(self.uid, self.clicked_at, self.track_type, self.visitor_uid or None, self.user_sub or None,
                     self.parent_uid or None)


@dataclass(frozen=True, slots=True)
class LinkWanted:
    """A link to be made. ``touch_uid``: the message it is for."""

    touch_uid: str
    page_identifier: str = "home"
    page_extra: dict[str, Any] | None = None
    preview_identifier: str = "default"
    preview_extra: dict[str, Any] | None = None
    style: Style = Style.NORMAL


@dataclass(frozen=True, slots=True)
class Target:
    """Where a link leads, and how it presents itself.

    ``stored``: it was read from the database. ``touch_uid``: the message it was made for; only of one that is not.
    """

    uid: str
    code: str
    page_identifier: str
    page_extra: dict[str, Any]
    preview_identifier: str
    preview_extra: dict[str, Any]
    stored: bool = False
    touch_uid: str = ""


class ClickOutcome(StrEnum):
    """What became of a click."""

    UNTRACKED = "untracked"
    BUFFERED = "buffered"
    DELAYED = "delayed"
    DIRECT_TO_DB = "direct_to_db"
    TOO_SOON = "too_soon"
    PARENT_HAS_CHILD = "parent_has_child"
    PARENT_NOT_FOUND = "parent_not_found"
    UNKNOWN_LINK = "dne"
    FLOOD = "flood"


@dataclass(frozen=True, slots=True)
class Clicked:
    """The answer to a click: where it leads, if anywhere. ``click_uid`` is to be given back after a login."""

    outcome: ClickOutcome
    click_uid: str
    target: Target | None = None


class PersistOutcome(StrEnum):
    """Whether a link will be stored."""

    QUEUED = "queued"
    ALREADY_QUEUED = "already_queued"
    PERSISTING = "persisting"
    NOT_IN_BUFFER = "not_in_buffer"


class AbandonOutcome(StrEnum):
    """Whether a link was given up."""

    ABANDONED = "abandoned"
    PERSISTING = "already_persisting"
    UNKNOWN = "dne"


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A link that was given up, with the number of clicks on it."""

    outcome: AbandonOutcome
    link: BufferedLink | None = None
    clicks: int = 0

"""What a text can be on its way, what each state means, and which of two pieces of news is the older."""

from enum import Enum, StrEnum
from typing import Final


class Status(StrEnum):
    """A message's state as the provider names it; ``LOST`` is our own word for one that the provider does not know."""

    ACCEPTED = "accepted"
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    SENDING = "sending"
    RECEIVING = "receiving"
    SENT = "sent"
    DELIVERED = "delivered"
    PARTIALLY_DELIVERED = "partially_delivered"
    READ = "read"
    RECEIVED = "received"
    CANCELED = "canceled"
    UNDELIVERED = "undelivered"
    FAILED = "failed"
    LOST = "lost"

    @property
    def category(self) -> "Category":
        return _CATEGORIES.get(self, Category.PENDING)


class Category(Enum):
    """Whether more is to come of a text. Values are the names that it is counted under."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


# Many carriers never say more than ``sent``, so that counts as success.
_CATEGORIES: Final = {
    Status.SENT: Category.SUCCEEDED, Status.DELIVERED: Category.SUCCEEDED, Status.READ: Category.SUCCEEDED,
    Status.PARTIALLY_DELIVERED: Category.SUCCEEDED, Status.RECEIVED: Category.SUCCEEDED,
    Status.CANCELED: Category.FAILED, Status.UNDELIVERED: Category.FAILED, Status.FAILED: Category.FAILED,
    Status.LOST: Category.FAILED,
}
_RANKS: Final = {
    Status.ACCEPTED: 1, Status.SCHEDULED: 2, Status.QUEUED: 3, Status.SENDING: 4, Status.RECEIVING: 4, Status.SENT: 5,
}
_LAST_RANK: Final = 9


def told_status(word: object) -> Status | None:
    """The state that the provider names; None if it has no such state."""
    try:
        status = Status(word) if isinstance(word, str) else None
    except ValueError:
        return None
    return None if status is Status.LOST else status


def is_out_of_order(
    *, event: Status, event_updated: float | None, event_at: float, stored: Status, stored_updated: float | None,
    stored_at: float,
) -> bool:
    """Whether the event tells of a time before what is stored. The first of these that differ decides:

    when the provider changed the message (``..._updated``, where both know it), how far along the states are, and when
    we heard of it (``..._at``).
    """
    if event_updated is not None and stored_updated is not None and event_updated != stored_updated:
        return event_updated < stored_updated
    ours, theirs = _RANKS.get(event, _LAST_RANK), _RANKS.get(stored, _LAST_RANK)
    if ours != theirs:
        return ours < theirs
    return event_at < stored_at

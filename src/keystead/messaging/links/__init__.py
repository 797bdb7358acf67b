"""Trackable links: codes in messages that lead somewhere, and what became of the clicks on them."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.messaging.links.links import ABANDON_JOB, PERSIST_JOB, Links
    from keystead.messaging.links.models import (
        Abandoned,
        AbandonOutcome,
        BufferedLink,
        Clicked,
        ClickOutcome,
            LinkWanted,
        PersistOutcome,
        Style,
        Target,
        TrackType,
    )
    from keystead.messaging.links.pages import Pages
    from keystead.messaging.links.queues import LinkQueues
    from keystead.messaging.links.unsubscribing import Unsubscribing
else:
    __getattr__ = opened_when_used(__name__)

__all__ = [
    "ABANDON_JOB",
    "AbandonOutcome",
    "Abandoned",
    "BufferedLink",
    "ClickOutcome",
    "Clicked",
    "LinkQueues",
    "LinkWanted",
    "Links",
    "PERSIST_JOB",
    "Pages",
    "PersistOutcome",
    "Style",
    "Target",
    "TrackType",
    "Unsubscribing",
]

"""Names of events."""

import re
from typing import Final

from keystead.errors import Invalid

SLUG: Final = re.compile(r"[a-zA-Z][a-zA-Z_]*[a-zA-Z]")
MOST_SLUG: Final = 255


def check_slug(slug: str) -> None:
    """Refuse what cannot be the name of an event."""
    if not 2 <= len(slug) <= MOST_SLUG or not SLUG.fullmatch(slug):
        raise Invalid(f"an event is named by 2 to {MOST_SLUG} letters and _, with letters at both ends; "
                      f"{slug[:40]!r} is not")


def shown_slug(slug: str) -> str:
    """How counts name an event: nothing that came over a queue makes a count that cannot be kept."""
    return slug[:150] if SLUG.fullmatch(slug) else "malformed"

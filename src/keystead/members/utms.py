"""Campaigns: what a link says of where it stood, and its one canonical spelling."""

from dataclasses import dataclass, fields
from typing import Final
from urllib.parse import urlencode

from keystead.errors import Invalid
from keystead.members.models import VisitorClick

LONGEST_PART: Final = 255


@dataclass(frozen=True, slots=True)
class Utm:
    """The parts of a campaign. Made by ``of``; what a link did not say is None."""

    utm_source: str
    utm_medium: str | None = None
    utm_campaign: str | None = None
    utm_term: str | None = None
    utm_content: str | None = None

    @classmethod
    def of(
        cls, utm_source: str, utm_medium: str | None = None, utm_campaign: str | None = None,
        utm_term: str | None = None, utm_content: str | None = None,
    ) -> "Utm":
        """A campaign of these parts, with the space around them removed; an empty part is none.

        ``Invalid`` without a source, and for a part that is too long.
        """
        source = _trimmed("utm_source", utm_source)
        if source is None:
            raise Invalid("a campaign needs utm_source, and it is empty; leave the link uncounted or name its source")
        return cls(
            source, _trimmed("utm_medium", utm_medium), _trimmed("utm_campaign", utm_campaign),
            _trimmed("utm_term", utm_term), _trimmed("utm_content", utm_content),
        )

    @classmethod
    def of_click(cls, click: VisitorClick) -> "Utm":
        return cls.of(click.utm_source, click.utm_medium, click.utm_campaign, click.utm_term, click.utm_content)

    @property
    def canonical(self) -> str:
        """One spelling for one campaign: the parts there are, by name in alphabetical order, as in a web form."""
        return urlencode(sorted((name, part) for name, part in self.parts().items() if part is not None))

    def parts(self) -> dict[str, str | None]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _trimmed(name: str, part: str | None) -> str | None:
    text = "" if part is None else part.strip()
    if len(text) > LONGEST_PART:
        raise Invalid(f"{name} has {len(text)} characters; at most {LONGEST_PART} are kept, so shorten the link")
    if "\0" in text or not _is_text(text):
        raise Invalid(f"{name} holds what is no text")
    return text or None


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

"""What the readers of the several shapes find: keys that are mentioned, with all that is said about them there."""

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from .blocks import Text

MOST_MENTIONS: Final = 10_000  # in one document; nobody keeps more by hand


class Place(Enum):
    """Where a key is mentioned. The first ones describe it; the last ones only speak of it."""

    ROW = "row"
    BULLET = "bullet"
    HEADING = "heading"
    TERM = "term"
    RECORD = "record"
    LINE = "line"
    CONSTANT = "constant"
    COMMAND = "command"
    PROSE = "prose"


@dataclass(frozen=True, slots=True)
class Scope:
    """What holds where a block stands: its section, and what was said for all keys there."""

    section: tuple[str, ...] = ()
    prefix: str = ""  # what stands before every key here, as it was written
    prefix_line: int = 0
    channel: bool = False  # the section is about channels
    aside: bool = False  # the section is about something else than keys
    type_name: str = ""  # the heading names the type of what follows
    owner: str = ""  # the key that the section is about
    example: bool = False  # what stands here was announced as an example

    def within(self, **changes: object) -> "Scope":
        return replace(self, **changes)  # type: ignore[arg-type]


@dataclass(slots=True)
class Mention:
    """One or several spellings and what is said about them together."""

    spellings: list[str]
    line: int
    place: Place
    scope: Scope
    texts: list[Text] = field(default_factory=list)  # sentences about the key itself
    cells: dict[str, Text] = field(default_factory=dict)  # by role: type, ttl, purpose ...
    extra: list[tuple[str, str]] = field(default_factory=list)
    payload: list[str] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)
    type_name: str = ""  # a command or a comment gives it
    seconds: float | None = None  # a command gives it
    doubt: str = ""
    ttl_unit: float = 1
    lossy: bool = False
    writes: bool = False  # a command that makes the key


@dataclass(slots=True)
class Findings:
    """All that was found in one document, and what a reader should know of it."""

    mentions: list[Mention] = field(default_factory=list)
    notes: list[tuple[str, int]] = field(default_factory=list)
    intros: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    constants: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, float] = field(default_factory=dict)  # constants that are lengths of time, in seconds
    marked: bool = False  # placeholders are marked somewhere in it, so that a bare word is none
    capitals: bool = False  # placeholders are words in capitals
    read_characters: int = 0  # of what is said about keys, those of each key counted
    prose: list[tuple[Text, Scope]] = field(default_factory=list)  # paragraphs in which keys may be spoken of

"""An inventory: what somebody says about the keys of a server, with where they said it and how sure that is.

Every command of ``keystead keys`` speaks this one model, whatever it came from: a document kept by hand, a live server,
source code, or declarations. An ``Entry`` is one pattern; what is known of it are ``Fact``s.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T")

# The types an entry may have. Each is kept as one of the server's own: see ``SERVER_TYPES``.
SERVER_TYPES = {
    "string": "string", "integer": "string", "float": "string", "flag": "string", "lock": "string", "json": "string",
    "bitmap": "string", "hyperloglog": "string", "hash": "hash", "list": "list", "set": "set", "zset": "zset",
    "geo": "zset", "stream": "stream", "rejson": "ReJSON-RL",
}


class Certainty(Enum):
    """How a fact is known."""

    STATED = "stated"  # it stands there in so many words
    IMPLIED = "implied"  # it follows from what stands there
    GUESSED = "guessed"  # it is likely, and somebody should look


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """Where something was said: a file and a line, or a server and no line."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """A value, how sure it is, where it comes from, and the words it was read from."""

    value: T
    certainty: Certainty = Certainty.STATED
    source: Source | None = None
    words: str = ""

    @property
    def sure(self) -> bool:
        return self.certainty is not Certainty.GUESSED


class Rule(Enum):
    """How a key ends."""

    NONE = "none"  # it never expires
    EXACTLY = "exactly"  # so long after it was made
    AT_MOST = "at most"  # some time, up to so long
    SLIDING = "sliding"  # so long after it was last used
    UNTIL = "until"  # at an instant, which ``words`` describes; perhaps at most so long
    SOME = "some"  # it expires; how soon is not said, or is a setting that ``words`` names


@dataclass(frozen=True, slots=True)
class Expiry:
    """When a key ends. ``seconds`` is there for rules that have a length.

    With ``NONE`` it means that a key may end all the same, but then after at most so long.
    """

    rule: Rule
    seconds: float | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen of a pattern on a live server. ``sampled`` of ``keys`` were looked at closely."""

    keys: int = 0
    memory_bytes: int = 0
    sampled: int = 0
    types: tuple[tuple[str, int], ...] = ()  # what TYPE answered, and how often
    encodings: tuple[tuple[str, int], ...] = ()
    without_expiry: int = 0
    shortest_seconds: float | None = None
    longest_seconds: float | None = None
    shape: str = ""  # of the values: "json object: id integer, name text" and the like
    largest_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One pattern and what is known of it.

    ``pattern`` is written in one way whatever the source wrote: text, and ``{variables}`` with names in lower case;
    ``spelling`` is what the source wrote. ``kind`` is key, channel or opaque (a prefix that belongs to a library).
    ``variables`` says what kind of value a variable has, in the words of ``keystead.keys`` (integer, uuid, email…).
    ``extra`` keeps what a source says under headings of its own.
    """

    pattern: str
    spelling: str = ""
    kind: str = "key"
    type: Fact[str] | None = None
    ttl: Fact[Expiry] | None = None
    purpose: Fact[str] | None = None
    payload: Fact[str] | None = None
    writers: tuple[Fact[str], ...] = ()
    readers: tuple[Fact[str], ...] = ()
    personal: Fact[bool] | None = None
    variables: tuple[tuple[str, str], ...] = ()
    examples: tuple[str, ...] = ()
    section: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()
    observed: Observation | None = None
    uncertain: str = ""  # why somebody should look at the pattern itself; empty if it stands there plainly

    @property
    def server_type(self) -> str | None:
        """What TYPE answers for such a key, if its type is known."""
        return None if self.type is None else SERVER_TYPES.get(self.type.value)


@dataclass(frozen=True, slots=True)
class Note:
    """Something in a source that a reader should know: a line that was not understood, two facts that disagree."""

    says: str
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """Entries in the order of their source. ``partial`` says why it is not whole; empty if it is."""

    name: str
    entries: tuple[Entry, ...] = ()
    notes: tuple[Note, ...] = ()
    partial: str = ""
    sections: tuple[tuple[tuple[str, ...], str], ...] = field(default=())  # introductions of sections, in order

"""Every error Keystead raises.

::

    KeysteadError
    ├── DeclarationError      the registry was misused: a pattern, an argument or a declaration is wrong
    │   ├── Ambiguous         two declarations could both own one key; names both
    │   └── NotInKey          a value cannot be part of a key; at a door that is the client's mistake
    ├── Unavailable           a server or database is out of reach; trying again may help
    │   └── ReplyLost         the command left and no answer came: it may or may not have been applied
    ├── Corrupt               a stored value does not decode; says which key, declaration and byte
    ├── GatewayError          an outside provider failed; ``transient`` says whether to try again
    └── Refused               a rule said no; trying again unchanged will not help
        ├── Invalid           what was given cannot be used; the message says how to mend it
        ├── NotFound
        ├── Conflict
        ├── LimitReached      carries ``retry_after_seconds``
        └── NotOwner

An outcome that a caller must handle every day is a returned value, not an exception. A message ends with its facts
and never holds a secret or personal data beyond the name of a key.
"""


class KeysteadError(Exception):
    """Anything Keystead raises on purpose."""


class DeclarationError(KeysteadError):
    """The registry was misused; raised when it is built or when a key is named, never by stored data."""


class Ambiguous(DeclarationError):
    """Two declarations could both own one key."""

    def __init__(self, message: str, *, first: str, second: str) -> None:
        super().__init__(message)
        self.first = first
        self.second = second


class NotInKey(DeclarationError):
    """A value cannot be part of a key: it is empty, too long, or holds what its place cannot."""


class Unavailable(KeysteadError):
    """A server or database is out of reach. Trying again later may help."""


class ReplyLost(Unavailable):
    """A command left and its answer never came, so it may or may not have been applied.

    Raised only for commands that are not safe to repeat; the others were repeated on the next connection.
    """


class Corrupt(KeysteadError):
    """A stored value does not decode. ``raw`` holds it where the failed operation took it off the server."""

    def __init__(
        self, message: str, *, key: str = "", declaration: str = "", offset: int | None = None,
        raw: bytes | None = None,
    ) -> None:
        super().__init__(message)
        self.key = key
        self.declaration = declaration
        self.offset = offset
        self.raw = raw


class GatewayError(KeysteadError):
    """An outside provider failed."""

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient


class Refused(KeysteadError):
    """A rule said no. Trying again unchanged will not help."""


class Invalid(Refused):
    """What was given cannot be used; the message says what is wrong and how to mend it."""


class NotFound(Refused):
    """The thing that was named does not exist, or may not be seen by the caller."""


class Conflict(Refused):
    """The thing is in a state that forbids the operation."""


class LimitReached(Refused):
    """A limit was used up; ``retry_after_seconds`` says when there is room again."""

    def __init__(self, message: str, *, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class NotOwner(Refused):
    """The caller does not hold what it tried to change."""

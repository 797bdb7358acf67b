"""What a message needs to be carried, and what is noted of its life."""

from enum import StrEnum
from typing import Protocol

import msgspec

Fact = str | int | float


class Lane(StrEnum):
    """How urgent a message is. The values are what its ``lane`` field says."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class Outgoing(Protocol):
    """What every outgoing message says, whatever its channel. ``retry``: how often it was sent before."""

    @property
    def uid(self) -> str: ...

    @property
    def lane(self) -> str: ...

    @property
    def retry(self) -> int: ...

    @property
    def initially_queued_at(self) -> float: ...


class TraceEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step in the life of a message. No address and no words of the message are in it."""

    what: str
    at: float
    facts: dict[str, Fact] = {}

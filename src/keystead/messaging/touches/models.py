"""What lies in Valkey: touches that wait, those that wait for news, and rows on their way to SQL.

New fields have defaults, so that yesterday's queue can be read today.
"""

from typing import Any, Final, Literal, NewType, get_args

import msgspec

from keystead.jobs import JobRef
from keystead.keys import Sealed
from keystead.messaging.touches.points_names import shown_slug

TouchUid = NewType("TouchUid", str)
Channel = Literal["push", "sms", "email"]
CHANNELS: Final[tuple[Channel, ...]] = get_args(Channel)


class Touch(msgspec.Struct, frozen=True):
    """Contact this person on this channel about this event. Nobody's address is known yet.

    ``any_hour``: the person chose the time, so it may be at night. ``given_up``: it was a dead letter, and whoever sent
    it was told so; it has no callbacks any more.
    """

    uid: str
    user_sub: str
    touch_point_event_slug: str
    channel: Channel
    event_parameters: Sealed[dict[str, Any]]
    success_callback: JobRef | None
    failure_callback: JobRef | None
    queued_at: float
    aud: Literal["send"] = "send"
    lane: str = "normal"
    any_hour: bool = False
    given_up: bool = False
    trace: str | msgspec.UnsetType = msgspec.UNSET  # where in a trace it was queued, as a W3C traceparent

    @property
    def kind(self) -> str:
        """How counts name it: event and channel."""
        return f"{shown_slug(self.touch_point_event_slug)}:{self.channel}"


class PendingTouch(msgspec.Struct, frozen=True):
    """What follows when one destination was reached, or none can be any more. At least one is there.

    Each is a ``JobRef`` as JSON text: it is stored and handed on as it was given.
    """

    success_callback: str | None = None
    failure_callback: str | None = None


# -- rows on their way to SQL ------------------------------------------------------------------------------------------


class LogEntry(msgspec.Struct, frozen=True):
    """A change of one row. ``fields`` is one of the structs below, by table and action."""

    table: Literal["user_touch_point_states", "user_touches", "user_touch_debug_log", "user_push_tokens"]
    action: Literal["insert", "update"]
    fields: Sealed[dict[str, Any]]


class StateFields(msgspec.Struct, frozen=True):
    """The new state of a person at a touch point. ``expected_version`` is of the row it follows; 0 for an insert."""

    uid: str
    user_sub: str
    touch_point_uid: str
    channel: Channel
    state: Any
    queued_at: float
    expected_version: int = 0

    @property
    def key(self) -> tuple[str, str, str]:
        return self.user_sub, self.touch_point_uid, self.channel


class TouchFields(msgspec.Struct, frozen=True):
    """A message that arrived."""

    uid: str
    send_uid: str
    user_sub: str
    channel: Channel
    touch_point_uid: str
    destination: str
    message: dict[str, Any]
    created_at: float


class DebugFields(msgspec.Struct, frozen=True):
    """A step in the life of a touch, for people who want to know what happened."""

    uid: str
    send_uid: str
    user_sub: str
    event: dict[str, Any]
    created_at: float


class TokenFields(msgspec.Struct, frozen=True):
    """A device that a push message arrived at."""

    token: str
    last_confirmed_at: float


Fields = StateFields | TouchFields | DebugFields | TokenFields
SHAPES: Final[dict[tuple[str, str], type[Fields]]] = {
    ("user_touch_point_states", "update"): StateFields,
    ("user_touch_point_states", "insert"): StateFields,
    ("user_touches", "insert"): TouchFields,
    ("user_touch_debug_log", "insert"): DebugFields,
    ("user_push_tokens", "update"): TokenFields,
}


def entry_of(fields: Fields) -> LogEntry:
    """The entry that carries these fields."""
    raw: dict[str, Any] = msgspec.to_builtins(fields)
    match fields:
        case StateFields(expected_version=version):
            return LogEntry("user_touch_point_states", "update" if version else "insert", raw)
        case TouchFields():
            return LogEntry("user_touches", "insert", raw)
        case DebugFields():
            return LogEntry("user_touch_debug_log", "insert", raw)
        case TokenFields():
            return LogEntry("user_push_tokens", "update", raw)


def fields_of(entry: LogEntry) -> Fields:
    """What an entry carries; ``msgspec.ValidationError`` if it is not what its table needs."""
    shape = SHAPES.get((entry.table, entry.action))
    if shape is None:
        raise msgspec.ValidationError(f"{entry.table} has no {entry.action}")
    return msgspec.convert(entry.fields, shape)

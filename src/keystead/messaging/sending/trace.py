"""The life of a message, step by step, so that someone can be told at night where it is."""

from collections.abc import Awaitable

from keystead.engine import Valkey
from keystead.keys import Executor
from keystead.messaging.sending.keys import TRACE, TRACE_SECONDS
from keystead.messaging.sending.models import Fact, TraceEntry


def trace(on: Executor, uid: str, what: str, at: float, *, kept_seconds: float = TRACE_SECONDS, **facts: Fact) -> None:
    """Note a step of a message among the writes that make it happen. ``kept_seconds`` 0 notes nothing."""
    trace_all(on, uid, (TraceEntry(what, at, facts),), kept_seconds=kept_seconds)


def trace_all(on: Executor, uid: str, entries: tuple[TraceEntry, ...], *, kept_seconds: float = TRACE_SECONDS) -> None:
    """As ``trace``, for several steps at once."""
    if kept_seconds > 0 and entries:
        TRACE.at(uid).lasting(min(kept_seconds, TRACE_SECONDS)).push_right(on, *entries)


def traced(valkey: Valkey, uid: str) -> Awaitable[list[TraceEntry]]:
    """Every step that was noted, oldest first."""
    return TRACE.at(uid).range(valkey)

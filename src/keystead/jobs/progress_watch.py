"""Watching a job: what it told before, then what it tells, each event once and in order."""

import asyncio
import math
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final

import msgspec

from keystead.engine import CutOff, Listener, Valkey
from keystead.errors import NotFound
from keystead.jobs.keys import PROGRESS, PROGRESS_COUNT, PROGRESS_EVENTS, PROGRESS_SECONDS
from keystead.jobs.models import ProgressEvent
from keystead.keys import Reply, Undecodable
from keystead.telemetry import counts

BATCH_SECONDS: Final = 0.25
LINGER_SECONDS: Final = 10.0
RECEIVE_SECONDS: Final = 5.0  # after a silence of this length it is looked whether the subscription was interrupted


@dataclass(frozen=True, slots=True)
class ProgressBatch:
    """Events in order. ``missed``: how many came before the first of them and are not to be had any more."""

    events: list[ProgressEvent]
    missed: int = 0

    @property
    def ended(self) -> bool:
        """Whether the job told of its end."""
        return any(is_end(event) for event in self.events)


def is_end(event: ProgressEvent) -> bool:
    """Whether nothing follows this event."""
    return event.type in ("failed", "succeeded") or (event.indicator is not None and event.indicator.type == "final")


async def watch(
    valkey: Valkey, uid: str, *, batch_seconds: float = BATCH_SECONDS, linger_seconds: float = LINGER_SECONDS,
    idle_seconds: float = float(PROGRESS_SECONDS),
) -> AsyncGenerator[ProgressBatch, None]:
    """What a job tells: first what is kept of the past, then each event as it comes, gathered for ``batch_seconds``.

    No event comes twice, none is left out without being counted in ``missed``, also when the subscription was
    interrupted. Ends ``linger_seconds`` after the job told of its end, or after ``idle_seconds`` without an event.
    ``NotFound`` if nothing is known of the job. Whoever leaves early does so under ``contextlib.aclosing``.
    """
    view = _View(valkey, uid, batch_seconds, linger_seconds, idle_seconds)
    while not view.is_over():
        try:
            async with valkey.hub().subscribe(PROGRESS.at(uid)) as listener:
                gaps = -1
                while not view.is_over() and not listener.closed:
                    if listener.gaps != gaps or view.has_hole:
                        gaps = listener.gaps
                        batch = await view.catch_up()
                    else:
                        batch = await view.gather(listener)
                    if batch.events or batch.missed:
                        yield batch
                if listener.closed and listener.failure is None:
                    return
        except CutOff:
            continue  # too slow for the channel: what is kept in the list is read instead


class _View:
    """What one watcher was given so far."""

    def __init__(
        self, valkey: Valkey, uid: str, batch_seconds: float, linger_seconds: float, idle_seconds: float
    ) -> None:
        self._valkey, self._uid = valkey, uid
        self._batch_seconds, self._linger_seconds, self._idle_seconds = batch_seconds, linger_seconds, idle_seconds
        self._given = 0  # ordinal of the last event that was handed out
        self._known = False
        self.has_hole = False  # an event came by the channel before one that was to come first
        self._heard_at = self._now()
        self._ended_at = math.inf

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    def _left(self) -> float:
        return min(self._heard_at + self._idle_seconds, self._ended_at + self._linger_seconds) - self._now()

    def is_over(self) -> bool:
        return self._left() <= 0

    async def catch_up(self) -> ProgressBatch:
        """What the list holds beyond what was given."""
        layout = self._valkey.layout
        kept, count = await self._valkey.run_block(
            [("LRANGE", PROGRESS_EVENTS.at(self._uid).name(layout), 0, -1),
             ("GET", PROGRESS_COUNT.at(self._uid).name(layout))],
            _kept, repeat=True,
        )
        if not kept and count is None and not self._known:
            raise NotFound(f"nothing is known of the progress of a job with this uid: {self._uid[:60]!r}")
        self._known, self.has_hole = True, False
        last = max(count or 0, len(kept))
        if last < self._given:
            self._given = 0  # all was forgotten meanwhile, and the job began to count anew
        numbered = [(last - len(kept) + place, event) for place, event in enumerate(kept, 1)]
        events = [event for ordinal, event in numbered if ordinal > self._given and event is not None]
        missed = last - self._given - len(events)
        self._given = last
        return self._noted(ProgressBatch(events, missed))

    async def gather(self, listener: Listener) -> ProgressBatch:
        """The events of one batch, or none when nothing came for a while."""
        found: list[ProgressEvent] = []
        message = await listener.get(max(0.0, min(self._left(), RECEIVE_SECONDS)))
        until = self._now() + self._batch_seconds
        while message is not None:
            found += PROGRESS.at(self._uid).decode_or_none(message.payload) or ()
            message = await listener.get(max(0.0, until - self._now()))
        events: list[ProgressEvent] = []
        for event in found:
            ordinal = self._given + 1 if event.ordinal is msgspec.UNSET else event.ordinal
            if ordinal > self._given + 1:
                self.has_hole = True  # something before it did not come by the channel
                break
            if ordinal == self._given + 1:
                self._given = ordinal
                events.append(event)
        return self._noted(ProgressBatch(events))

    def _noted(self, batch: ProgressBatch) -> ProgressBatch:
        if batch.events or batch.missed:
            self._heard_at = self._now()
        if batch.ended:
            self._ended_at = min(self._ended_at, self._now())
        return batch


def _kept(replies: list[Reply]) -> tuple[list[ProgressEvent | None], int | None]:
    raws, count = replies
    return [_event(raw) for raw in raws], None if count is None else int(count)


def _event(raw: bytes) -> ProgressEvent | None:
    """An event of the list; None, counted, for one that does not decode: it must not hide the others."""
    try:
        return PROGRESS_EVENTS.codec.decode(raw)
    except Undecodable:
        counts.add("keys_undecodable", declaration=PROGRESS_EVENTS.pattern)
        return None

"""One run of a batch job: what is kept of it, why it stopped, and what processing an item may ask of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import msgspec

from keystead.engine import Pipeline, Valkey
from keystead.errors import DeclarationError
from keystead.jobs.batch_job_source import Source
from keystead.keys import RecordKey
from keystead.patterns import Writes

LONGEST_SLEEP_EXPONENT: Final = 5


class StopReason(StrEnum):
    """Why a run ended. The values are written to its hash."""

    LIST_EXHAUSTED = "list_exhausted"
    SIGNAL = "signal"
    TIME_EXHAUSTED = "time_exhausted"
    BACKPRESSURE = "backpressure"
    CREDENTIALS = "credentials"


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What every run leaves behind; a job adds its counters as fields of a subclass, with 0 as default.

    ``running_time`` is in seconds.
    """

    started_at: float | None = None
    finished_at: float | None = None
    running_time: float | None = None
    stop_reason: str | None = None


def _last(name: str) -> str:
    return f"last_{name}"


class LastRunFacts(msgspec.Struct, frozen=True, kw_only=True, rename=_last):
    """As ``RunFacts``, where every field of the hash, also of a subclass, begins with ``last_``."""

    started_at: float | None = None
    finished_at: float | None = None
    running_time: float | None = None
    stop_reason: str | None = None


@dataclass(frozen=True, slots=True)
class BatchRun:
    """How a run went. ``recovered``: items that an earlier run left when it died."""

    stop_reason: StopReason
    running_seconds: float
    counts: Mapping[str, int]
    done: int = 0
    failed: int = 0
    dead: int = 0
    recovered: int = 0


@dataclass(slots=True)
class Run:
    """A run that is going on."""

    started_at: float
    counts: dict[str, int]
    source: Source[Any]
    pause_seconds: float = 0.0  # to be slept before the next item
    failures: int = 0
    alone: int = 0  # so many of the next items are worked on one by one
    idle: bool = False  # nothing was found the last time
    done: int = 0
    failed: int = 0
    dead: int = 0
    recovered: int = 0
    held: list[Any] = field(default_factory=list)  # taken and not settled

    def slow_down(self) -> None:
        self.failures += 1
        self.pause_seconds = max(self.pause_seconds, 2.0 ** min(self.failures, LONGEST_SLEEP_EXPONENT))

    @property
    def did_something(self) -> bool:
        return bool(self.done or self.failed or self.dead or self.recovered)

    def ended(self, reason: StopReason, running_seconds: float) -> BatchRun:
        return BatchRun(reason, running_seconds, self.counts, self.done, self.failed, self.dead, self.recovered)


class Step:
    """One item, or a slice of them, being processed."""

    def __init__(self, valkey: Valkey, run: Run, items: Sequence[Any] = ()) -> None:
        self._valkey, self._run, self._items = valkey, run, items
        self._pipeline: Pipeline | None = None
        self._settlements: list[tuple[object, Writes]] = []

    @property
    def pipeline(self) -> Pipeline:
        """What is queued here happens in one transaction with the removal of the item from purgatory, or not at all.

        On a cluster it must be of the source's tag. It is executed when the processing returns.
        """
        if self._pipeline is None:
            self._pipeline = self._valkey.pipeline(transaction=True)
        return self._pipeline

    def settle(self, value: object, writes: Writes) -> None:
        """Let one of the values be finished together with these writes, in one step, guarded: if meanwhile another
        worker has it, neither happens. It is done when the processing returns; what was not settled is finished."""
        self._settlements.append((value, writes))

    def settlements(self) -> tuple[list[tuple[Any, Writes]], list[Any]]:
        """Items that were settled, each with its writes, and the others."""
        left, found = list(self._items), []
        for value, writes in self._settlements:
            place = next((place for place, item in enumerate(left) if item.value is value or item.value == value), None)
            if place is None:
                raise DeclarationError("only values that are being processed can be settled, each once")
            found.append((left.pop(place), writes))
        return found, left

    def due_at(self, value: object) -> float:
        """When one of the values was due; only of a delayed set."""
        for item in self._items:
            if item.value is value or item.value == value:
                return float(item.due_at)
        raise DeclarationError("only values that are being processed can be asked for")

    @property
    def has_effects(self) -> bool:
        return self._pipeline is not None

    @property
    def counts(self) -> dict[str, int]:
        """The counters of the run so far, by field; written to its hash when it ends."""
        return self._run.counts

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter, which must be a field of the run's struct."""
        if name not in self._run.counts:
            known = ", ".join(self._run.counts) or "none"
            raise DeclarationError(f"{name!r} is no counter of this job's runs: {known}")
        self._run.counts[name] += by

    def slow_down(self) -> None:
        """Something outside failed for now: sleep before the next item, 2 s at first, doubling up to 32 s."""
        self._run.slow_down()

    async def drop(self) -> None:
        """Forget what was queued."""
        self._settlements = []
        if self._pipeline is not None:
            await self._pipeline.reset()
            self._pipeline = None


class RunRecord:
    """The hash of a job's runs."""

    def __init__(self, key: RecordKey[Any]) -> None:
        self._key = key
        struct = key.record.of
        if not issubclass(struct, RunFacts | LastRunFacts):
            raise DeclarationError(f"{key.pattern}: what is kept of a run must be a subclass of RunFacts")
        self._names = {each.name: each.encode_name for each in msgspec.structs.fields(struct)}
        facts = {each.name for each in msgspec.structs.fields(RunFacts)}
        self._zeros = {each.name: each.default for each in msgspec.structs.fields(struct) if each.name not in facts}
        if wrong := [name for name, value in self._zeros.items() if not isinstance(value, int)]:
            raise DeclarationError(f"{key.pattern}: counters are integers with a default; {', '.join(wrong)} is not")

    @property
    def name(self) -> str:
        """What the job is called in counts and log lines."""
        return self._key.pattern

    def zeros(self) -> dict[str, int]:
        """Every counter, where it starts."""
        return dict(self._zeros)

    async def begun(self, valkey: Valkey, started_at: float) -> None:
        """Written alone and at once: a run that died is seen by having begun later than it finished."""
        await self._key.at().update(valkey, **{self._names["started_at"]: started_at})

    async def ended(
        self, valkey: Valkey, run: BatchRun, finished_at: float, *, started_at: float | None = None
    ) -> None:
        """Everything else, in one command; ``started_at`` too where it was not written before."""
        values: dict[str, object] = {
            **({} if started_at is None else {"started_at": started_at}),
            "finished_at": finished_at, "running_time": run.running_seconds, "stop_reason": run.stop_reason.value,
            **run.counts,
        }
        await self._key.at().update(valkey, **{self._names[name]: value for name, value in values.items()})

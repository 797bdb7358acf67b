"""What is true now: totals of all time, and the last run of each job."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Corrupt
from keystead.keys import RecordKey
from keystead.patterns import Counter, MonthlyCounter
from keystead.stats.catalogue import Catalogue

_COMMON: Final = ("started_at", "finished_at", "running_time", "stop_reason")


@dataclass(frozen=True, slots=True)
class Total:
    """How many there are; ``month`` is how many of them came in this month, None where that is not counted."""

    total: int
    month: int | None


@dataclass(frozen=True, slots=True)
class RunView:
    """The last run of a job. Without ``finished_at`` it runs, or died. ``problem``: its record cannot be read."""

    name: str
    purpose: str
    started_at: float | None = None
    finished_at: float | None = None
    running_time: float | None = None
    stop_reason: str | None = None
    counters: Mapping[str, int | float] | None = None
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "counters": dict(self.counters or {})}


class LiveReader:
    """Reads totals and runs."""

    def __init__(self, valkey: Valkey, catalogue: Catalogue, clock: Clock) -> None:
        self._valkey, self._catalogue, self._clock = valkey, catalogue, clock

    async def totals(self) -> dict[str, Total]:
        """Every total, asked for in one round trip."""
        known = self._catalogue.totals
        return dict(zip(known, await asyncio.gather(*map(self._total, known.values())), strict=True))

    async def _total(self, counter: MonthlyCounter | Counter) -> Total:
        if isinstance(counter, Counter):
            return Total(await counter.read(self._valkey), None)
        counted = await counter.read(self._valkey, counter.month_of(self._clock.now()))
        return Total(counted.total, counted.month)

    async def runs(self) -> list[RunView]:
        """Every job that ever ran, the latest first, then those that never did; asked for in one round trip."""
        keys = self._catalogue.runs
        found = await asyncio.gather(*(self._run(name, key) for name, key in keys.items()))
        return sorted(found, key=lambda run: (-(run.started_at or 0.0), run.name))

    async def _run(self, name: str, key: RecordKey[Any]) -> RunView:
        try:
            found = [await key.at().get(lane) for lane in self._valkey.lanes_of(key)]
        except Corrupt as error:
            return RunView(name, key.purpose, problem=str(error))
        runs = [msgspec.structs.asdict(facts) for facts in found if facts is not None]
        if not runs:
            return RunView(name, key.purpose)
        fields = _together(runs)
        common = {field: fields.pop(field) for field in _COMMON}
        return RunView(name, key.purpose, **common, counters={field: n for field, n in fields.items() if n is not None})


def _together(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The last runs of all lanes as one: it began with the first, ends with the last, and counted what all did."""
    if len(runs) == 1:
        return runs[0]
    last = max(runs, key=lambda run: run["started_at"] or 0.0)
    began = [run["started_at"] for run in runs if run["started_at"] is not None]
    ended = [run["finished_at"] for run in runs]
    counted = {field: [run[field] for run in runs if run[field] is not None] for field in last if field not in _COMMON}
    return {
        **last, **{field: sum(each) if each else None for field, each in counted.items()},
        "started_at": min(began, default=None), "finished_at": None if None in ended else max(ended),
    }

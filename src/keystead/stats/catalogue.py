"""Everything that is counted, by name: collected from what rooms and programs declare, checked as a whole."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType, ModuleType
from typing import Any, Self

from keystead.errors import DeclarationError, NotFound
from keystead.jobs import LastRunFacts, RunFacts
from keystead.keys import Declaration, RecordKey
from keystead.patterns import (
    Cohorts,
    Counter,
    DailyFamily,
    DayNumber,
    DaySet,
    DimensionViews,
    MonthlyCounter,
    RowsByDay,
)

Charted = DailyFamily | DaySet | DayNumber | Cohorts | DimensionViews | RowsByDay
_SHOWN_EVENTS = 12
_CHARTED = (DailyFamily, DaySet, DayNumber, Cohorts, DimensionViews, RowsByDay)


class Catalogue:
    """What is counted. Two declarations of one name, or of one table, are refused: their numbers would mix; and so is
    one whose days would stay for ever.
    """

    def __init__(self, declared: Iterable[object] = ()) -> None:
        self._charted: dict[str, Charted] = {}
        self._totals: dict[str, MonthlyCounter | Counter] = {}
        self._runs: dict[str, RecordKey[Any]] = {}
        tables: dict[str, str] = {}
        for one in declared:
            if isinstance(one, _CHARTED):
                _check_end(one)
                _check_lanes(one)
                _add(self._charted, one.name, one, "counted")
                if one.table is not None and tables.setdefault(one.table, one.name) != one.name:
                    raise DeclarationError(f"{one.name} and {tables[one.table]} both declare the table {one.table}")
            elif isinstance(one, MonthlyCounter | Counter):
                _check_lanes(one)
                _add(self._totals, one.name, one, "a total")
            elif isinstance(one, RecordKey) and issubclass(one.record.of, RunFacts | LastRunFacts):
                _add(self._runs, one.pattern.removeprefix("stats:"), one, "a run")

    @classmethod
    def of(cls, *sources: object) -> Self:
        """What these modules hold as module-level values, and what is given itself."""
        return cls(found for source in sources for found in _held(source))

    def __iter__(self) -> Iterator[Charted]:
        return iter(self._charted.values())

    def __len__(self) -> int:
        return len(self._charted)

    # -- by kind ----------------------------------------------------------------------------------------------------

    @property
    def families(self) -> Mapping[str, DailyFamily]:
        return self._of(DailyFamily)

    @property
    def day_sets(self) -> Mapping[str, DaySet | DayNumber]:
        """Sets and numbers by day or month."""
        return {name: one for name, one in self._charted.items() if isinstance(one, DaySet | DayNumber)}

    @property
    def cohorts(self) -> Mapping[str, Cohorts]:
        return self._of(Cohorts)

    @property
    def views(self) -> Mapping[str, DimensionViews]:
        return self._of(DimensionViews)

    @property
    def rows(self) -> Mapping[str, RowsByDay]:
        return self._of(RowsByDay)

    @property
    def totals(self) -> Mapping[str, MonthlyCounter | Counter]:
        """Totals of all time, some of them with their count by month."""
        return MappingProxyType(self._totals)

    @property
    def monthly(self) -> Mapping[str, MonthlyCounter]:
        return {name: one for name, one in self._totals.items() if isinstance(one, MonthlyCounter)}

    @property
    def runs(self) -> Mapping[str, RecordKey[Any]]:
        """The hash in which each job leaves what its last run counted."""
        return MappingProxyType(self._runs)

    def find(self, name: str) -> Charted:
        """What is counted under this name; ``NotFound`` says which name was perhaps meant."""
        found = self._charted.get(name)
        if found is None:
            near = get_close_matches(name, self._charted, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"there are {len(self._charted)}, see keystead stats list"
            raise NotFound(f"nothing is counted as {name[:80]!r}; {hint}")
        return found

    def _of(self, kind: type[Any]) -> dict[str, Any]:
        return {name: one for name, one in self._charted.items() if type(one) is kind}


def _check_end(one: Charted) -> None:
    """Refuse what nobody would ever take away."""
    if one.table is None and not (isinstance(one, DailyFamily) and one.kept_seconds is not None):
        how = "or kept_seconds= how long they stay here" if isinstance(one, DailyFamily) else "or leave it out"
        raise DeclarationError(f"{one.name}: say table= where its days go when they are over, {how}")


def _check_lanes(one: Charted | MonthlyCounter | Counter) -> None:
    """Refuse what nobody would add up over the lanes of a cluster."""
    if not isinstance(one, DailyFamily) and any(
        isinstance(each, Declaration) and each.laned for each in vars(one).values()
    ):
        raise DeclarationError(f"{one.name}: only daily families are counted by lane; declare it in another keyspace")


def _held(source: object) -> Iterable[object]:
    return vars(source).values() if isinstance(source, ModuleType) else (source,)


def _add(known: dict[str, Any], name: str, one: object, what: str) -> None:
    other = known.setdefault(name, one)
    if other is not one:
        raise DeclarationError(f"{name} is declared twice as {what}: {_shown(other)}, and {_shown(one)}")


def _shown(one: object) -> str:
    if isinstance(one, DailyFamily):
        more = f" and {len(one.events) - _SHOWN_EVENTS} more" if len(one.events) > _SHOWN_EVENTS else ""
        return f"with {', '.join(one.events[:_SHOWN_EVENTS])}{more}"
    return f"as {type(one).__name__}"

"""What is counted, as a list for people and programs."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from keystead.patterns import Cohorts, DailyFamily, DayNumber, DaySet, DimensionViews, RowsByDay
from keystead.stats.catalogue import Catalogue, Charted
from keystead.stats.charts_calendar import is_monthly, zone_name

Kind = Literal["family", "set", "number", "cohorts", "views", "rows"]
_KINDS: dict[type[Any], Kind] = {
    DailyFamily: "family", DaySet: "set", DayNumber: "number", Cohorts: "cohorts", DimensionViews: "views",
    RowsByDay: "rows",
}


@dataclass(frozen=True, slots=True)
class Listed:
    """One thing that is counted.

    ``events`` are what a family counts, or the fields of rows; ``breakdowns`` say what the values of an event are.
    ``periods`` are days after joining, of cohorts; ``dimension`` is what views and rows are split by.
    """

    name: str
    kind: Kind
    purpose: str
    zone: str
    table: str | None
    held_days: int
    rotates_at: str
    monthly: bool = False
    events: tuple[str, ...] = ()
    breakdowns: dict[str, str] = field(default_factory=dict)
    identities: tuple[str, ...] = ()
    periods: tuple[int, ...] = ()
    dimension: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def listing(catalogue: Catalogue) -> list[Listed]:
    """Everything that is charted, by name."""
    return sorted(map(listed, catalogue), key=lambda one: one.name)


def listed(one: Charted) -> Listed:
    """What is to be known of one thing."""
    more: dict[str, Any] = {}
    if isinstance(one, DailyFamily):
        identities = tuple(identity.text for identity in one.identities)
        more = {"events": one.events, "breakdowns": dict(one.breakdowns), "identities": identities}
    elif isinstance(one, Cohorts):
        more = {"periods": one.periods}
    elif isinstance(one, DimensionViews):
        more = {"dimension": one.dimension}
    elif isinstance(one, RowsByDay):
        more = {"dimension": one.row_variable, "events": one.fields}
    return Listed(
        one.name, _KINDS[type(one)], one.purpose, zone_name(one), one.table, one.held_days, str(one.rotates_at)[:5],
        is_monthly(one), **more,
    )

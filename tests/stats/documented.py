"""The families that are documented, as facts in a table, and whether a room declares them so."""

import csv
from pathlib import Path
from types import ModuleType

from keystead.jobs import LastRunFacts, RunFacts
from keystead.stats import Catalogue

DOCUMENTED = Path(__file__).parents[1] / "data" / "stat_families.tsv"


def documented() -> dict[str, dict[str, str]]:
    with DOCUMENTED.open(encoding="utf-8", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file, delimiter="\t")}


def check_declared(stats: ModuleType, names: set[str], runs: set[str] = frozenset()) -> Catalogue:  # type: ignore[assignment]
    """Every one of these families is declared as documented, and the room declares these and no other runs."""
    catalogue = Catalogue.of(stats)
    for name in names:
        row, family = documented()[name], catalogue.families[name]
        events = row["events"].split(",")
        assert set(family.plain) == {event for event in events if not event.startswith("*")}, name
        assert set(family.breakdowns) == {event[1:] for event in events if event.startswith("*")}, name
        assert (family.table or "", str(family.held_days)) == (row["table"], row["held_days"]), name
        assert (family.channel or "", f"{family.rotates_at:%H:%M}") == (row["channel"], row["rotates_at"]), name
        assert family.charts is None or family.charts.template.spelling.split(":")[0] == row["chart"], name
        assert str(family.home) == "America/Los_Angeles" and (family.zone is None) == (name == "daily_reminders")
    assert set(catalogue.runs) == runs
    for key in catalogue.runs.values():
        of = key.record.of
        common = {"started_at", "finished_at", "running_time", "stop_reason"}
        begins = "last_" if issubclass(of, LastRunFacts) else ""
        assert {f"{begins}{field}" for field in common} <= set(key.record.field_names), key.pattern
        assert issubclass(of, RunFacts | LastRunFacts)
    return catalogue

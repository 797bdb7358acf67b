"""Counts by day and row."""

from keystead.engine import Valkey
from keystead.keys import Keyspace, Registry
from keystead.patterns.rows_by_day import RowsAdded, RowsByDay

ZONE = "America/Los_Angeles"
MEMBERS = Keyspace("members", tag="members")
ROWS = RowsByDay(MEMBERS, zone=ZONE, table="daily_utm_conversion_stats", most_rows=3, purpose="visits by campaign")
DAY = 19331
NOON = 1670270400.0  # 2022-12-05 12:00 in Los Angeles


def counts(**fields: int) -> dict[str, int]:
    return {**dict.fromkeys(ROWS.fields, 0), **fields}


def test_it_is_declared_under_the_documented_keys() -> None:
    assert {"stats:visitors:daily:{unix_date}:utms", "stats:visitors:daily:{utm}:{unix_date}:counts",
            "stats:visitors:daily:earliest"} <= {declaration.pattern for declaration in Registry([MEMBERS])}
    assert (ROWS.name, len(ROWS.fields)) == ("visitors", 7)


async def test_changes_of_several_rows_are_one_step_and_may_be_negative(server: Valkey) -> None:
    changes = [("utm_source=a", "visits", 2), ("utm_source=b", "last_click_signups", -1), ("utm_source=a", "visits", 1)]
    assert await ROWS.add(server, changes, at=NOON) == RowsAdded()
    assert await ROWS.read(server, DAY) == {
        "utm_source=a": counts(visits=3), "utm_source=b": counts(last_click_signups=-1)}
    assert await ROWS.earliest(server) == DAY

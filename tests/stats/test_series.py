"""Series: what charts, tables and spreadsheets are made from."""

import csv
import io

import pytest

from keystead.errors import NotFound
from keystead.stats.series import Series, csv_text, day_labels, month_labels

START = 20_000  # 2024-10-04


def series(**changed) -> Series:
    facts = {
        "name": "events", "zone": "America/Los_Angeles", "start": START, "end": START + 3,
        "labels": day_labels(START, START + 3), "counts": {"found": [1, 0, 2], "failed": [3, 0, 9]},
        "breakdowns": {"failed": {"busy": [2, 0, 1], "gone": [1, 0, 0], "a": [0, 0, 5], "b": [0, 0, 3]}},
        "live_from": START + 2,
    }
    return Series(**{**facts, **changed})


def test_labels_are_calendar_days_and_months():
    assert day_labels(19_331, 19_333) == ["2022-12-05", "2022-12-06"]
    assert month_labels(635, 637) == ["2022-12", "2023-01"]


def test_series_says_which_days_may_still_change():
    assert series().live == ["2024-10-06"]
    assert series(live_from=START - 5).live == day_labels(START, START + 3)
    assert series(live_from=START + 3).live == []


def test_top_keeps_every_count_and_sums_the_small_ones():
    shown = series().top("failed", 2)
    assert shown == {"a": [0, 0, 5], "b": [0, 0, 3], "others": [3, 0, 1]}
    assert [sum(day) for day in zip(*shown.values(), strict=True)] == [3, 0, 9]
    assert "others" not in series().top("failed", 4)
    assert series().top("found") == {}


def test_a_value_that_is_called_others_joins_the_others():
    values = {"others": [9], "x": [5], "y": [1]}
    one = series(end=START + 1, labels=["2024-10-04"], counts={"failed": [15]}, breakdowns={"failed": values})
    assert one.top("failed", 1) == {"x": [5], "others": [10]}


def test_an_event_that_is_not_there_is_refused_by_name():
    for ask in (series().top, series().total, series().only):
        with pytest.raises(NotFound, match=r"events has no event 'lost'; it has found, failed"):
            ask("lost")


def test_only_keeps_one_event_with_its_values():
    one = series().only("failed")
    assert one.counts == {"failed": [3, 0, 9]} and list(one.breakdowns) == ["failed"]
    assert one.live == series().live
    assert series().only("found").breakdowns == {}


def test_csv_has_a_row_for_each_day_and_a_column_for_each_value():
    rows = list(csv.DictReader(io.StringIO(series().csv())))
    assert [row["date"] for row in rows] == day_labels(START, START + 3)
    assert [row["live"] for row in rows] == ["0", "0", "1"]
    assert [row["failed"] for row in rows] == ["3", "0", "9"]
    assert [row["failed[busy]"] for row in rows] == ["2", "0", "1"]


def test_csv_of_months_says_so():
    text = series(monthly=True, labels=["2024-10", "2024-11", "2024-12"]).csv()
    assert text.startswith("month,live,found,failed")


def test_csv_holds_no_formulas():
    text = csv_text(["utm", "visits"], [["=cmd()", 1], ["@x", -2], ["plain, quoted", 3]])
    assert list(csv.reader(io.StringIO(text))) == [
        ["utm", "visits"], ["'=cmd()", "1"], ["'@x", "-2"], ["plain, quoted", "3"],
    ]


def test_as_dict_is_plain():
    shown = series().as_dict()
    assert shown["start_unix_date"] == START and shown["live"] == ["2024-10-06"]
    assert shown["breakdowns"]["failed"]["gone"] == [1, 0, 0]

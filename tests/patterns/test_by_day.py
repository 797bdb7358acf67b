"""The calendar of whatever is kept by day."""

from typing import Any

import pytest

from keystead.errors import DeclarationError
from keystead.patterns.by_day import ByDay, Known, name_of

DAILY = ByDay("visits", zone="America/Los_Angeles", table=None, held_days=2, rotates_at="02:00", purpose="x")
MONTHLY = ByDay("months", zone="America/Los_Angeles", table=None, held_days=1, rotates_at="02:00",
                purpose="x", monthly=True)
CANONICAL = ByDay("canonical", zone=None, table=None, held_days=1, rotates_at="00:15", purpose="x")
NOON = 1670270400.0  # 2022-12-05 12:00 in Los Angeles


def test_an_instant_falls_on_a_day_of_the_zone() -> None:
    assert DAILY.chosen_day(NOON, None) == 19331
    assert DAILY.chosen_day(1670313599.9, None) == 19331, "a moment before midnight"
    assert DAILY.chosen_day(1670313600.1, None) == 19332
    assert MONTHLY.day_of(NOON) == 635
    assert name_of("stats:daily_new_users") == "daily_new_users"


def test_held_days_stay() -> None:
    assert (DAILY.held_days, MONTHLY.held_days) == (2, 1)


def test_a_day_in_the_future_is_refused_by_name() -> None:
    assert DAILY.chosen_day(None, 19331, today=19331) == 19331
    with pytest.raises(DeclarationError, match="visits: day 19332 lies in the future"):
        DAILY.chosen_day(None, 19332, today=19331)
    assert CANONICAL.chosen_day(None, 19332, today=19331) == 19332, "it is tomorrow somewhere"
    with pytest.raises(DeclarationError, match="future"):
        CANONICAL.chosen_day(None, 19333, today=19331)


@pytest.mark.parametrize("day", [-1, 100_000, 1.5, True, "19331", None])
def test_what_is_no_day_is_refused(day: object) -> None:
    with pytest.raises(DeclarationError, match="visits"):
        DAILY.checked_day(day)


@pytest.mark.parametrize("at", [NOON * 1000, -1.0, float("nan"), float("inf")])
def test_what_is_no_unix_time_is_refused(at: float) -> None:
    with pytest.raises(DeclarationError, match="visits: an instant"):
        DAILY.day_of(at)


def test_a_call_says_when_once() -> None:
    for at, day in ((None, None), (NOON, 19331)):
        with pytest.raises(DeclarationError, match="visits: say when"):
            DAILY.chosen_day(at, day)
    with pytest.raises(DeclarationError, match="canonical days"):
        CANONICAL.chosen_day(NOON, None)


def test_ranges_are_bounded() -> None:
    assert list(DAILY.checked_range(5, 6)) == [5, 6]
    for first, last in ((6, 5), (0, 366)):
        with pytest.raises(DeclarationError, match="a range has one to 366 days"):
            DAILY.checked_range(first, last)


@pytest.mark.parametrize("wrong", [{"held_days": 0}, {"rotates_at": "25:00"}, {"rotates_at": "night"}])
def test_a_declaration_is_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match="visits"):
        ByDay("visits", zone=None, table=None, purpose="x", **{"held_days": 1, "rotates_at": "02:00", **wrong})


async def test_a_known_answer_is_awaited_as_often_as_one_likes() -> None:
    answer = Known(7)
    assert [await answer, await answer] == [7, 7]

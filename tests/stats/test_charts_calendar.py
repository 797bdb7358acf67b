"""Which days may be asked for, and when they end."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from keystead import dates
from keystead.errors import Invalid
from keystead.stats.charts_calendar import check_range, last_of, to_midnight, today_of, zone_name

from .charting import LA, NOW, TODAY
from .counted import ACTIVE_MONTHS, EVENTS, REMINDED


@pytest.mark.parametrize(("day", "hours"), [("2025-03-08", 24), ("2025-03-09", 23), ("2025-11-02", 25)])
def test_a_day_ends_at_midnight_however_long_it_is(day, hours):
    begins = datetime.fromisoformat(f"{day}T00:00:00").replace(tzinfo=LA).timestamp()
    assert to_midnight(LA, begins) == hours * 3600
    assert to_midnight(LA, begins + hours * 3600 - 0.25) == 0.25


def test_a_day_without_a_midnight_begins_with_the_clock_change():
    cairo = ZoneInfo("Africa/Cairo")  # on 2024-04-26 the clock went from 00:00 to 01:00
    evening = datetime(2024, 4, 25, 23, 0, tzinfo=cairo).timestamp()
    assert to_midnight(cairo, evening) == 3600


def test_today_is_a_month_for_what_is_kept_by_month():
    assert (today_of(EVENTS, NOW), today_of(ACTIVE_MONTHS, NOW)) == (TODAY, 665)
    assert (zone_name(EVENTS), zone_name(REMINDED)) == ("America/Los_Angeles", "canonical")


def test_a_canonical_day_can_be_asked_for_when_it_has_begun_somewhere():
    noon = datetime(2025, 6, 15, 10, 0, tzinfo=ZoneInfo("UTC")).timestamp()  # 00:00 of the 16th at UTC+14
    sixteenth = dates.date_to_unix_date(datetime(2025, 6, 16).date())
    assert last_of(REMINDED, noon) == sixteenth and last_of(REMINDED, noon - 1) == sixteenth - 1
    assert last_of(EVENTS, noon) == sixteenth - 1
    check_range(REMINDED, sixteenth, sixteenth + 1, noon)
    with pytest.raises(Invalid, match="2025-06-15 is the newest"):
        check_range(EVENTS, sixteenth, sixteenth + 1, noon)

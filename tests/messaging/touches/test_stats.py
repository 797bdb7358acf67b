"""What touches counts is declared as documented."""

from keystead.messaging.touches import stats
from tests.stats.documented import check_declared


def test_families_and_runs_are_the_documented_ones():
    check_declared(stats, {"touch_send", "touch_stale"}, {
        "touch_send:send_job",
        "touch_log:log_job",
        "touch_stale:detection_job",
    })


def test_what_people_are_spared_is_counted_by_why():
    family = stats.DROPS
    assert set(family.events) == {"daily_cap", "quiet_hours", "same_content", "erased"} and not family.plain

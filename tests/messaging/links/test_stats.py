"""What links counts is declared as documented."""

from keystead.messaging.links import stats
from tests.stats.documented import check_declared


def test_families_and_runs_are_the_documented_ones():
    check_declared(stats, {"touch_links"}, {
        "touch_links:persist_link_job",
        "touch_links:leaked_link_detection_job",
        "touch_links:delayed_clicks_persist_job",
    })

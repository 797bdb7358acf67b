"""What push counts is declared as documented."""

from keystead.messaging.push import stats
from tests.stats.documented import check_declared


def test_families_and_runs_are_the_documented_ones():
    check_declared(stats, {"push_tickets", "push_receipts"}, {
        "push_tickets:send_job",
        "push_receipts:cold_to_hot_job",
        "push_receipts:check_job",
    })

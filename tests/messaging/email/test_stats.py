"""What email counts is declared as documented."""

from keystead.messaging.email import stats
from tests.stats.documented import check_declared


def test_families_and_runs_are_the_documented_ones():
    check_declared(stats, {"email_send", "email_webhooks", "email_events"}, {
        "email_send:send_job",
        "email_events:reconciliation_job",
        "email_events:stale_receipt_job",
    })

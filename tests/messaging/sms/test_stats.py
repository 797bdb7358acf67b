"""What sms counts is declared as documented."""

from keystead.messaging.sms import stats
from tests.stats.documented import check_declared


def test_families_and_runs_are_the_documented_ones():
    check_declared(stats, {"sms_send", "sms_polling", "sms_events", "sms_webhooks"}, {
        "sms_send:send_job",
        "sms:receipt_stale_job",
        "sms:receipt_recovery_job",
        "sms:receipt_reconciliation_job",
    })

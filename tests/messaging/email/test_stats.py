"""What email counts is declared as documented."""

from keystead.keys import Layout, Registry
from keystead.messaging.email import stats
from keystead.messaging.email.keys import EMAIL
from tests.stats.documented import check_declared


def test_families_and_runs_are_the_documented_ones():
    check_declared(stats, {"email_send", "email_webhooks", "email_events"}, {
        "email_send:send_job",
        "email_events:reconciliation_job",
        "email_events:stale_receipt_job",
    })


def test_documented_keys_are_declared_under_their_names_and_personal_ones_are_marked() -> None:
    registry = Registry([EMAIL])
    for raw, pattern in {
        b"email:to_send": "email:to_send",
        b"email:send_purgatory": "email:send_purgatory",
        b"email:receipt_pending": "email:receipt_pending",
        b"email:receipt_pending:0100-a_b.c": "email:receipt_pending:{message_id}",
        b"email:event": "email:event",
        b"email:reconciliation_purgatory": "email:reconciliation_purgatory",
        b"email:send_job:lock": "email:send_job:lock",
        b"email:reconciliation_job:lock": "email:reconciliation_job:lock",
        b"email:stale_receipt_job:lock": "email:stale_receipt_job:lock",
        b"email:inflight:em_x": "email:inflight:{uid}",
    }.items():
        found = registry.resolve(raw)
        assert found is not None and found.declaration.pattern == pattern, raw
    for pattern in ("email:to_send", "email:receipt_pending:{message_id}", "email:event", "email:early:{parked}"):
        assert next(each for each in registry if each.pattern == pattern).personal, pattern
    assert {each.tag.of({}) for each in Registry([EMAIL], Layout.TAGGED)} == {"msg:0"}


def test_what_webhooks_counted_is_rotated_and_does_not_stay_for_ever() -> None:
    assert stats.WEBHOOKS.kept_seconds == 7 * 86_400 and stats.WEBHOOKS.held_days == 2

"""States of texts: what each means, and which of two pieces of news is the older."""

import itertools

import pytest

from keystead.messaging.sms.statuses import Category, Status, is_out_of_order, told_status


def late(event: Status, stored: Status, **changed: float | None) -> bool:
    facts = {"event_updated": None, "event_at": 10.0, "stored_updated": None, "stored_at": 5.0, **changed}
    return is_out_of_order(event=event, stored=stored, **facts)  # type: ignore[arg-type]


def test_states_are_pending_succeeded_or_failed_as_documented() -> None:
    assert {kind: {status.value for status in Status if status.category is kind} for kind in Category} == {
        Category.PENDING: {"accepted", "scheduled", "queued", "sending", "receiving"},
        Category.SUCCEEDED: {"sent", "delivered", "read", "partially_delivered", "received"},
        Category.FAILED: {"canceled", "undelivered", "failed", "lost"},
    }


@pytest.mark.parametrize("word", ["read", "receiving", "received", "partially_delivered", "delivered"])
def test_every_state_of_the_provider_can_be_read(word: str) -> None:
    status = told_status(word)
    assert status is not None and status.value == word


@pytest.mark.parametrize("word", ["lost", "", "SENT", "dispatched", None, 7, ["sent"]])
def test_what_is_no_state_of_the_provider_is_none(word: object) -> None:
    assert told_status(word) is None


def test_the_providers_own_time_decides_first() -> None:
    assert late(Status.DELIVERED, Status.QUEUED, event_updated=99.0, stored_updated=100.0)
    assert not late(Status.ACCEPTED, Status.SENDING, event_updated=101.0, stored_updated=100.0)
    # The same time says nothing, and neither does one alone: calls of the provider carry none.
    assert late(Status.ACCEPTED, Status.SENDING, event_updated=100.0, stored_updated=100.0)
    assert not late(Status.SENT, Status.SENDING, stored_updated=10_000.0)


def test_then_how_far_along_the_states_are() -> None:
    order = [Status.ACCEPTED, Status.SCHEDULED, Status.QUEUED, Status.SENDING, Status.SENT, Status.DELIVERED]
    for earlier, later in itertools.combinations(order, 2):
        assert late(earlier, later) and not late(later, earlier)
    for last in (Status.CANCELED, Status.FAILED, Status.UNDELIVERED, Status.DELIVERED, Status.LOST):
        assert not late(last, Status.SENT) and late(Status.SENT, last)


def test_then_when_we_heard_of_it() -> None:
    assert late(Status.QUEUED, Status.QUEUED, event_at=4.0)
    assert not late(Status.QUEUED, Status.QUEUED, event_at=5.0)

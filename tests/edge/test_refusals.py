"""Refusals that a door speaks."""

from keystead import errors
from keystead.edge import refusals


def test_every_refusal_is_a_rule_that_said_no():
    assert all(issubclass(kind, errors.Refused) for kind in vars(refusals).values() if isinstance(kind, type))


def test_bad_ticket_counts_as_no_credential():
    for kind in (refusals.TicketExpired, refusals.TicketTampered, refusals.TicketUsed):
        assert issubclass(kind, refusals.NotLoggedIn)


def test_block_says_when_it_ends():
    assert refusals.Blocked("no", retry_after_seconds=7).retry_after_seconds == 7

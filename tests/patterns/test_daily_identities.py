"""Identities between the counts of a day."""

import pytest

from keystead.errors import DeclarationError
from keystead.patterns import Identity

EVENTS = ("tried", "sent", "lost")


def test_an_identity_holds_or_says_what_its_sides_are():
    identity = Identity.parse("texts", "sent + lost = tried", EVENTS)
    assert identity.check({"tried": 5, "sent": 3, "lost": 2}) is None
    broken = identity.check({"tried": 5, "sent": 3, "lost": 1})
    assert broken is not None and str(broken) == "sent + lost = tried: 4 is not 5"


@pytest.mark.parametrize("text", ["sent + lost", "sent = lost = tried", "sent - lost = tried", "= tried", ""])
def test_what_is_no_identity_is_refused(text):
    with pytest.raises(DeclarationError, match="'a \\+ b = c'"):
        Identity.parse("texts", text, EVENTS)


def test_an_identity_of_an_unknown_event_is_refused():
    with pytest.raises(DeclarationError, match="names gone"):
        Identity.parse("texts", "sent + gone = tried", EVENTS)

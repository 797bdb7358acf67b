"""What looks like a person's address or a credential leaves the text; the words of foreign exceptions are not told."""

import time

import pytest

from keystead.errors import Invalid
from keystead.scrubbing import HIDDEN, failure_told, failure_traced, scrubbed


@pytest.mark.parametrize("text", [
    "ann@example.com", "ann.o'hara+news@mail.example.co.uk", "ann%40example.com", "+14155550123", "+1 (415) 555-0123",
    "+1 415 555 0123", "%2B14155550123", "ExponentPushToken[abcDEF123]", "ksk_abc_secretsecret", "Bearer abcdefgh12345",
    "eyJhbGciOiJIUzI1NiJ9abc.eyJzdWIiOiJhbm4ifQabcdef.abcdefghijklmnopqrstuv",
])
def test_personal_data_and_credentials_leave_the_text(text):
    told = scrubbed(f"this was for {text}, twice: {text}")
    assert text not in told and told.count(HIDDEN) >= 2 and told.startswith("this was for ")


@pytest.mark.parametrize("text", [
    "a@b", "x+1=2", "/a+b", "+123", "jobs:queue:{queue}:dead", "keystead.stats.rotate", "2026-11-15T18:20:00.123456Z",
    "127.0.0.1:8400", "File keystead/messaging/sending/courier_shift.py, line 12", "12 wait, the oldest for 7 minutes",
    "keystead.messaging.sending.courier_shift.Shift", "req_abcdefghijklmnop.12",
])
def test_other_texts_stay_as_they_are(text):
    assert scrubbed(text) == text


@pytest.mark.parametrize("text", [
    "+" + "A" * 300_000, "@ " + "-a" * 150_000, "+" + "%41" * 100_000, "%40a" * 80_000, "a@" * 150_000,
    "x@" + "a." * 150_000 + "@", "+1" * 150_000, ("a" * 16 + ".") * 20_000 + "+", "bearer " * 50_000, "+1 (" * 80_000,
])
def test_a_long_text_takes_no_longer_than_its_length_asks_for(text):
    begun = time.process_time()
    scrubbed(text)
    assert time.process_time() - begun < 10, "that grew with the square of the length"


@pytest.mark.parametrize(("text", "left"), [
    ("postgresql://keystead:hunter2@db.internal:5432/name", f"postgresql://keystead:{HIDDEN}:5432/name"),
    ("to=ann@example.com.", f"to={HIDDEN}."), ("a%2Bb%40example.com&x=1", f"{HIDDEN}&x=1"),
    ("x@y@example.com", f"x@{HIDDEN}"), ("ExponentPushToken[abc was cut off here", f"{HIDDEN} was cut off here"),
])
def test_the_words_around_stay(text, left):
    assert scrubbed(text) == left


def test_words_of_foreign_exceptions_are_not_told_and_ours_are_scrubbed():
    assert failure_told(ValueError("Ada likes tea")) == "ValueError"
    assert failure_told(Invalid("no such template for ann@example.com")) == f"Invalid: no such template for {HIDDEN}"


def test_a_traceback_tells_places_and_causes_without_words():
    def inner():
        raise KeyError("Ada likes tea")

    try:
        try:
            inner()
        except KeyError as error:
            raise RuntimeError("tea for Ada") from error
    except RuntimeError as error:
        told = failure_traced(error)
    assert "in inner" in told and told.endswith("RuntimeError") and "KeyError" in told
    assert told.index("KeyError") < told.index("RuntimeError")
    assert "Ada" not in told


def test_a_group_tells_its_first_member():
    group = ExceptionGroup("for Ada", [ValueError("Ada"), KeyError("Ada")])
    told = failure_traced(group)
    assert "ValueError" in told and "ExceptionGroup" in told and "Ada" not in told


def test_an_exception_that_causes_itself_ends():
    error = ValueError("x")
    error.__cause__ = error
    assert failure_traced(error) == "ValueError"

"""``keystead reminders why``: the reasons, from a terminal."""

import json

from .test_messages import ada, run

__all__ = ["ada", "run"]


def test_the_reasons_are_told_in_words_and_as_json(run, ada):
    told = run("reminders", "why", ada)
    assert told.code == 0, told.err
    assert "no_contact" in told.out and "they gave no email address" in told.out.replace("\n", " ")
    found = json.loads(run("reminders", "why", "+14155550123", "--format", "json").out)
    assert found["sub"] == ada and found["answer"]
    by_channel = {each["channel"]: each["reasons"][0]["code"] for each in found["channels"]}
    # Nobody works here, so the row of the reminder is not written.
    assert by_channel == {"sms": "not_derived", "email": "no_contact", "push": "no_contact"}


def test_nobody_is_one_line(run):
    refused = run("reminders", "why", "nobody@example.com")
    assert refused.code != 0 and refused.out == "" and len(refused.err.strip().splitlines()) == 1
    assert "nobody has this" in refused.err and "nobody@example.com" not in refused.err

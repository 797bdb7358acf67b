"""Payloads are the documented ones, and yesterday's can be read today."""

import json

import msgspec
import pytest

from keystead.jobs import JobRef
from keystead.messaging.touches.models import (
    SHAPES,
    DebugFields,
    LogEntry,
    StateFields,
    TokenFields,
    Touch,
    TouchFields,
    entry_of,
    fields_of,
)

OLD = b"""{"aud": "send", "uid": "tch_1", "user_sub": "ada", "touch_point_event_slug": "daily_reminder",
"channel": "sms", "event_parameters": {"name": "A"}, "success_callback": {"name": "x", "kwargs": {"codes": []}},
"failure_callback": null, "queued_at": 1700000000.5, "from_the_future": true}"""


def test_a_touch_is_stored_as_documented():
    touch = msgspec.json.decode(OLD, type=Touch)
    assert touch.success_callback == JobRef("x", {"codes": []}) and touch.lane == "normal"
    stored = json.loads(msgspec.json.encode(touch))
    assert {name: stored[name] for name in ("aud", "uid", "channel", "queued_at", "failure_callback")} == {
        "aud": "send", "uid": "tch_1", "channel": "sms", "queued_at": 1700000000.5, "failure_callback": None}


def test_counts_name_a_touch_by_event_and_channel_whatever_came_over_the_queue():
    touch = msgspec.json.decode(OLD, type=Touch)
    assert touch.kind == "daily_reminder:sms"
    for slug, shown in (("no\nslug", "malformed"), ("x" * 255, "x" * 150)):
        assert msgspec.structs.replace(touch, touch_point_event_slug=slug).kind == f"{shown}:sms"


def test_entries_carry_their_fields_there_and_back():
    for fields in (
        StateFields("u", "ada", "p", "sms", ["a"], 1.0), StateFields("u", "ada", "p", "sms", {"counter": 1}, 1.0, 3),
        TouchFields("u", "t", "ada", "push", "p", "d", {"body": "x"}, 1.0), DebugFields("u", "t", "ada", {}, 1.0),
        TokenFields("t", 1.0),
    ):
        entry = entry_of(fields)
        assert fields_of(entry) == fields and (entry.table, entry.action) in SHAPES
    confirmed = json.loads(msgspec.json.encode(entry_of(TokenFields("t", 1.0))))
    assert confirmed == {
        "table": "user_push_tokens", "action": "update", "fields": {"token": "t", "last_confirmed_at": 1.0}}


def test_an_entry_for_no_table_is_refused():
    with pytest.raises(msgspec.ValidationError):
        fields_of(LogEntry("user_touches", "update", {}))

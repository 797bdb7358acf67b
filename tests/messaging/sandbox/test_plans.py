"""What becomes of messages."""

import pytest

from keystead.messaging.sandbox.faults import FaultBoard
from keystead.messaging.sandbox.models import Faults, Message
from keystead.messaging.sandbox.plans import early, email_steps, push_steps, sms_steps, webhooks

NOW = 1000.0


def fate_of(**faults):
    board = FaultBoard(None)
    board._faults["sms"] = Faults(receipt_seconds=10, **faults)
    return board.fate("sms")


def statuses(steps):
    return [step.status for step in steps]


def text(fate, to="+15550001"):
    return Message("SM1", "sms", to, NOW, sms_steps(to, NOW, fate, first="accepted"), callback="http://x")


def test_a_text_goes_through_every_status_in_time():
    steps = sms_steps("+15550001", NOW, fate_of(), first="accepted")
    assert [(step.status, step.at) for step in steps] == [
        ("accepted", 1000), ("queued", 1002), ("sending", 1004), ("sent", 1006), ("delivered", 1010)]
    without_service = sms_steps("+15550001", NOW, fate_of(), first="queued")
    assert statuses(without_service) == ["queued", "sending", "sent", "delivered"]
    assert statuses(sms_steps("+15005552000", NOW, fate_of(), first="accepted")) == ["accepted"]


def test_a_share_of_texts_fails_or_says_something_unknown():
    failed = sms_steps("+15550001", NOW, fate_of(undelivered=1.0), first="accepted")
    assert statuses(failed) == ["accepted", "queued", "sending", "undelivered"]
    assert failed[-1].code == 30003
    strange = sms_steps("+15550001", NOW, fate_of(unknown=1.0), first="queued")
    assert statuses(strange) == ["queued", "sending", "partially_delivered", "sent", "delivered"]
    assert [step.at for step in strange] == sorted(step.at for step in strange)


@pytest.mark.parametrize(("to", "faults", "events"), [
    ("ada@example.com", {}, ["Send", "Delivery"]),
    ("bounce@simulator.amazonses.com", {}, ["Send", "Permanent"]),
    ("bounce+7@simulator.amazonses.com", {}, ["Send", "Permanent"]),
    ("softbounce@simulator.amazonses.com", {}, ["Send", "Transient"]),
    ("complaint@simulator.amazonses.com", {}, ["Send", "Delivery", "Complaint"]),
    ("success@simulator.amazonses.com", {"undelivered": 1.0}, ["Send", "Delivery"]),
    ("silent@simulator.amazonses.com", {}, ["Send"]),
    ("bounce@example.com", {}, ["Send", "Delivery"]),
    ("ada@example.com", {"undelivered": 1.0}, ["Send", "Permanent"]),
    ("ada@example.com", {"complaint": 1.0}, ["Send", "Delivery", "Complaint"]),
    ("ada@example.com", {"unknown": 1.0}, ["Send", "DeliveryDelay", "Delivery"]),
])
def test_the_events_of_a_mail(to, faults, events):
    assert statuses(email_steps(to, NOW, fate_of(**faults))) == events


@pytest.mark.parametrize(("faults", "statuses_at"), [
    ({}, [("taken", 1000), ("ok", 1010)]), ({"lost": 1.0}, [("taken", 1000)]),
    ({"early": 1.0}, [("taken", 1000), ("ok", 1000)]), ({"unknown": 1.0}, [("taken", 1000), ("SomethingNew", 1010)]),
    ({"undelivered": 1.0}, [("taken", 1000), ("DeviceNotRegistered", 1010)]),
])
def test_the_receipt_of_a_push_message(faults, statuses_at):
    steps = push_steps("ExponentPushToken[x]", NOW, fate_of(**faults))
    assert [(step.status, step.at) for step in steps] == statuses_at


def told(**faults):
    fate = fate_of(**faults)
    return [(each.step, each.due_at, each.copy) for each in webhooks("status", text(fate), fate)]


def test_webhooks_follow_the_steps_except_the_first_which_is_the_answer():
    assert told() == [(1, 1002, 0), (2, 1004, 0), (3, 1006, 0), (4, 1010, 0)]
    assert told(final_only=True) == [(4, 1010, 0)]
    assert told(lost=1.0) == []
    assert told(reordered=1.0) == [(1, 1002, 0), (2, 1004, 0), (3, 1010, 0), (4, 1006, 0)]
    assert told(duplicated=1.0, final_only=True) == [(4, 1010, 0), (4, 1012.5, 1)]


def test_an_early_webhook_is_the_last_one():
    fate = fate_of(early=1.0)
    made = webhooks("status", text(fate), fate)
    assert early(made, fate) is made[-1]
    assert early([], fate) is None
    assert early(made, fate_of()) is None

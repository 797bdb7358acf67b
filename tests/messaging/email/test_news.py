"""What a notification tells, and which lane it goes to."""

import json

import pytest

from keystead.messaging.email.models import Complaint, Delivery
from keystead.messaging.email.news import Told, read_notification
from keystead.messaging.email.routes import _room_of
from keystead.messaging.email.sns import Believed

from .notifications import complaint, delivery
from .room import Room, on_sqlite


def read(told: object) -> Told | None:
    return read_notification(Believed("Notification", "id", {"Message": json.dumps(told)}))


def test_our_uid_comes_back_in_a_tag_or_in_a_header() -> None:
    assert read(delivery("m-1", "em_1")) == Told("m-1", Delivery(), "em_1")
    told = complaint("m-2")
    told["mail"]["headers"] = [{"name": "Subject", "value": "x"}, {"name": "X-Keystead-Uid", "value": "em_2"}]
    assert read(told) == Told("m-2", Complaint("abuse", ["a@example.com"], ["a@example.com"]), "em_2")


@pytest.mark.parametrize("uid", ["a b", "x" * 300, "{tag}", ""])
def test_a_uid_that_can_be_none_is_left_out(uid: str) -> None:
    found = read(delivery("m-1", uid))
    assert found is not None and found.uid == ""


@on_sqlite
async def test_news_go_to_the_lane_they_name_or_to_the_one_that_waits(room: Room) -> None:
    await room.queue()
    await room.send()
    other = Room(room.valkey, room.database)
    rooms = [other.news, room.news]
    assert await _room_of(rooms, Told("m-9", Delivery(), "", "1")) is room.news
    assert await _room_of(rooms, Told("m-0", Delivery())) is room.news, "it is known there"
    for lane in ("", "2", "-1", "x", "¹"):
        assert await _room_of(rooms, Told("m-9", Delivery(), "", lane)) is other.news

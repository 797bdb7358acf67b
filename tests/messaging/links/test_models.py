"""What lies in Valkey since yesterday can be read today."""

import msgspec

from keystead.messaging.links.keys import CLICK_INDEX, DELAYED_CLICK, LINK
from keystead.messaging.links.models import Click, DelayedClick, TrackType


def test_documented_payloads_decode() -> None:
    raw = b'{"uid":"utlc_1","clicked_at":1.5,"visitor_uid":null,"user_sub":"u","track_type":"on_click","new":1}'
    assert msgspec.json.decode(raw, type=Click) == Click("utlc_1", 1.5, TrackType.ON_CLICK, None, "u")
    link = LINK.record.decode({
        b"uid": b"utl_1", b"code": b"Qm3x", b"touch_uid": b"tch_1", b"page_identifier": b"share_journey",
        b"page_extra": b'{"journey_uid":"j"}', b"preview_identifier": b"default", b"preview_extra": b"{}",
        b"created_at": b"1772481600.25",
    })
    assert (link.page_extra, link.created_at) == ({"journey_uid": "j"}, 1772481600.25)
    assert CLICK_INDEX.record.decode({b"code": b"Qm3x", b"has_child": b"1"}).has_child


def test_what_is_not_known_of_a_delayed_click_is_empty_or_absent() -> None:
    fields = {b"uid": b"utlc_1", b"link_code": b"Qm3x", b"track_type": b"on_click", b"clicked_at": b"2.0",
              b"parent_uid": b"", b"user_sub": b""}
    held = DELAYED_CLICK.record.decode(fields)
    assert held == DelayedClick("utlc_1", "Qm3x", TrackType.ON_CLICK, 2.0)
    assert held.click == Click("utlc_1", 2.0, TrackType.ON_CLICK)

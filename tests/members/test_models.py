"""What lies in the queues can be read as it was written by others."""

import msgspec

from keystead.members.keys import CLICKS, LINKS
from keystead.members.models import VisitorClick, VisitorLink


def test_entries_are_read_with_optional_parts_left_out_or_null() -> None:
    raw = b'{"visitor_uid":"v_abcde","utm_source":"a","utm_medium":null,"clicked_at":1.5}'
    click = VisitorClick("v_abcde", "a", 1.5)
    assert CLICKS.queue_key.codec.decode(raw) == click
    assert msgspec.json.decode(CLICKS.queue_key.codec.encode(click)) == {
        "visitor_uid": "v_abcde", "utm_source": "a", "clicked_at": 1.5}
    link = VisitorLink("v_abcde", "user_1", 2.0)
    assert LINKS.queue_key.codec.decode(b'{"visitor_uid":"v_abcde","user_sub":"user_1","seen_at":2}') == link

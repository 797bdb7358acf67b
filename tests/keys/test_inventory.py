"""The inventory says everything a declaration says, for programs and for people."""

import json
from html.parser import HTMLParser

import msgspec

from keystead.keys import (
    AtMost,
    Channel,
    Exactly,
    IntegerKey,
    Keyspace,
    Lane,
    ListKey,
    LockKey,
    LockKind,
    MapKey,
    NoneUntilEnded,
    OnCorrupt,
    OpaqueNamespace,
    Personal,
    RecordKey,
    Registry,
    SortedSetKey,
    StreamKey,
    StringKey,
    inventory_rows,
    to_html,
    to_markdown,
)


class Sms(msgspec.Struct, frozen=True):
    sid: str
    phone: str


def registry() -> Registry:
    sms, edge = Keyspace("messaging.sms", tag="msg"), Keyspace("edge", tag="edge")
    dead = ListKey(sms, "sms:dead", bytes, purpose="texts that could not be read")
    ListKey(sms, "sms:to_send", Sms, dead_letter=dead, personal=Personal(field=("phone",)), purpose="texts to send",
            writers=("sms.sender",), readers=("sms.sender", "sms.sweep"), scripts=("worklist/take.lua",))
    record = RecordKey(sms, "sms:pending:{sid}", Sms, personal=True, purpose="a text on its way.")
    SortedSetKey(sms, "sms:pending", str, member="sid", score="when due", pairs_with=record, purpose="index")
    LockKey(sms, "sms:lock", LockKind.SMART, ttl=NoneUntilEnded(3600), purpose="one sender at a time")
    StreamKey(sms, "sms:log", Sms, most_items=100, purpose="history")
    Channel(sms, "ps:sms", Sms, purpose="news <b>of</b> texts")
    IntegerKey(edge, "api_ip:{ip}", ttl=Exactly(60), personal=Personal(variable="ip"), purpose="calls | per minute")
    StringKey(edge, "cache:{user_sub}", str, ttl=AtMost(60), tag=Lane("c", "user_sub"), dead_letter=OnCorrupt.MISS,
              purpose="a cache")
    MapKey(edge, "counts", int, fields=("ok", "failed:{reason}"), purpose="counts")
    OpaqueNamespace(edge, "asynq:*", purpose="another program's")
    return Registry([sms, edge])


def test_a_row_says_everything() -> None:
    rows = {row["pattern"]: row for row in inventory_rows(registry())}
    assert json.loads(json.dumps(rows)) == rows
    assert rows["sms:to_send"] == {
        "pattern": "sms:to_send", "kind": "key", "type": "list", "server_type": "list", "ttl": "none",
        "room": "messaging.sms", "purpose": "texts to send", "payload": "JSON Sms", "lock": None,
        "personal": ["field phone"], "tag": "msg", "variables": {}, "writers": ["sms.sender"],
        "readers": ["sms.sender", "sms.sweep"], "scripts": ["worklist/take.lua"], "dead_letter": "go to sms:dead",
        "pairs_with": None,
    }
    assert rows["api_ip:{ip}"]["personal"] == ["variable ip"]
    assert rows["api_ip:{ip}"]["variables"] == {"ip": "an IP address, version 4 or 6"}
    assert rows["sms:pending:{sid}"]["personal"] == ["value"]
    assert rows["sms:pending"]["pairs_with"] == "sms:pending:{sid}"
    assert rows["sms:pending"]["payload"] == "sid (text) by when due"
    assert rows["sms:lock"]["lock"] == "smart"
    assert rows["cache:{user_sub}"]["tag"] == "c:0..15 by user_sub"
    assert rows["cache:{user_sub}"]["personal"] == []
    assert {row["kind"] for row in rows.values()} == {"key", "channel", "opaque"}


def test_markdown_groups_by_room_and_names_every_pattern() -> None:
    page = to_markdown(registry())
    assert page.index("## edge") < page.index("## messaging.sms")
    for declaration in registry():
        assert f"### `{declaration.pattern}`" in page
    assert "| `api_ip:{ip}` | integer | 1 min | calls \\| per minute |" in page
    assert "A text on its way.\n" in page
    assert "\n- written by: `sms.sender`\n- read by: `sms.sender`, `sms.sweep`\n" in page
    assert to_markdown(registry()) == page


def test_html_is_one_escaped_page_without_outside_assets() -> None:
    page = to_html(registry())
    opened: list[str] = []
    links: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag != "meta":
                opened.append(tag)
            links.extend(value or "" for name, value in attrs if name in ("href", "src"))

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Reader().feed(page)
    assert opened == []
    assert links and all(link.startswith("#") for link in links)
    assert "<b>of" not in page and "&lt;b&gt;of" in page
    for declaration in registry():
        assert f"<code>{declaration.pattern}</code>" in page

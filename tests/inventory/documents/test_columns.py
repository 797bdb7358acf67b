import pytest

from keystead.inventory.documents.blocks import Text, code, strong
from keystead.inventory.documents.columns import label_of, role_of, unit_of


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Key Name", "key"),
        ("Redis Key Pattern", "key"),
        ("键模式", "key"),
        ("키", "key"),
        ("キー名", "key"),
        ("Schlüssel", "key"),
        ("Clave", "key"),
        ("Data structure", "type"),
        ("数据类型", "type"),
        ("TTL (s)", "ttl"),
        ("过期时间", "ttl"),
        ("Logical / hard TTL", "ttl"),
        ("Lifetime", "ttl"),
        ("Purpose / Notes", "purpose"),
        ("Set By", "writers"),
        ("Geschrieben von", "writers"),
        ("Read By", "readers"),
        ("Contains PII?", "personal"),
        ("Example key", "example"),
        ("Fields", "value"),
        ("Field", "field"),
        ("#", "number"),
        ("Environment variable", "command"),
        ("Can be sharded by...", None),
        ("Used by LUA scripts?", None),
        ("", None),
    ],
)
def test_roles(name, role):
    assert role_of(name) == role


def test_units_of_headings():
    assert [unit_of(name) for name in ("TTL (s)", "TTL (ms)", "TTL(分钟)", "TTL in hours", "TTL")] == [
        1,
        0.001,
        60,
        3600,
        1,
    ]


def test_labels():
    assert label_of(Text(f"{strong('TTL')}: 1 h", 3))[0] == "ttl"
    role, name, value = label_of(Text(f"{strong('Key pattern:')} {code('a:{b}')}", 3))
    assert (role, name, value.plain) == ("key", "Key pattern", "a:{b}")
    assert label_of(Text("类型：Hash", 1))[2].plain == "Hash" and label_of(Text("TTL 30 min", 1))[2].plain == "30 min"
    assert label_of(Text("a sentence about things", 1)) is None

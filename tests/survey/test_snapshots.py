"""Snapshots are kept and read back, and two of them are compared pattern by pattern."""

from pathlib import Path

import pytest

from keystead.engine import Valkey, lookout
from keystead.errors import Invalid
from keystead.inventory import Entry, Inventory, Observation
from keystead.survey.snapshots import Snapshot, differences, growth, read_snapshot, take, write_snapshot
from keystead.testing.server import LocalServer


def seen(
    pattern: str, keys: int, memory: int = 0, type: str = "string", never: int | None = None, shape: str = ""
) -> Entry:
    return Entry(pattern, observed=Observation(
        keys=keys, memory_bytes=memory, types=((type, keys),), without_expiry=keys if never is None else never,
        shape=shape))


def snapshot(at: float, *entries: Entry) -> Snapshot:
    return Snapshot(at, Inventory("a server", entries))


def test_growth_is_told_per_minute_and_the_fastest_first() -> None:
    before = snapshot(1000, seen("user:{user_id}", 100, 1000), seen("old:{id}", 5, 50), seen("same", 1, 10))
    now = snapshot(1030, seen("user:{id}", 200, 5000), seen("new:{id}", 10, 100), seen("same", 1, 10))
    grown = growth(before, now)
    assert [each.pattern for each in grown] == ["user:{id}", "new:{id}", "same", "old:{id}"]
    assert (grown[0].keys_per_minute, grown[0].memory_per_minute) == (200, 8000)
    assert (grown[3].keys_now, grown[3].keys_per_minute) == (0, -10)


def test_snapshot_survives_its_file(tmp_path: Path) -> None:
    kept = snapshot(1731672000.5, seen("user:{user_id}", 3, 100, "hash", shape="fields: name text"))
    file = tmp_path / "monday.json"
    for each in (kept, snapshot(5.0)):
        write_snapshot(each, file)
        assert read_snapshot(file) == each


@pytest.mark.parametrize(("text", "says"), [
    ("", "no snapshot"), ("[1]", "no snapshot"), ("{}", "no list named keys"),
    ('{"keys": [{"pattern": "a"}]}', "no observations"),
    ('{"keystead_snapshot": 99}', "this version"),
    ('{"keystead_snapshot": 1, "at": "x", "inventory": {"name": "a"}}', "no snapshot"), ("\x00\x01", "no snapshot"),
])  # fmt: skip
def test_bad_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    with pytest.raises(Invalid, match=says):
        read_snapshot(file)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="cannot be read"):
        read_snapshot(tmp_path / "none.json")


def test_differences_name_what_is_not_the_same() -> None:
    first = Inventory("a", (seen("a", 1), seen("b:{id}", 10), seen("c", 1), seen("d", 5, never=0), seen("gone", 0),
                            seen("e", 1, shape="json object: a"), seen("f", 7, 70)))
    second = Inventory("b", (seen("b:{user_id}", 99), seen("c", 1, type="hash"), seen("d", 5), seen("new", 1),
                             seen("e", 1, shape="integer"), seen("f", 8, 80)))
    found = {each.pattern: each.says for each in differences(first, second)}
    assert found == {
        "a": ("only on the first side",), "b:{id}": (), "c": ("type string here, hash there",),
        "d": ("expires here, never expires there",), "e": ("values: json object here, integer there",), "f": (),
        "new": ("only on the second side",),
    }


async def test_second_look_counts_by_the_patterns_of_the_first(valkey: Valkey, valkey_server: LocalServer) -> None:
    for number in range(20):
        await valkey.set(f"user:{number}", "x")
    async with lookout(valkey_server.url) as look:
        first = await take(look, 1000)
        for number in range(20, 50):
            await valkey.set(f"user:{number}", "x")
        await valkey.rpush("jobs", "x")
        second = await take(look, 1060, inventory=first.inventory)
    grown = {each.pattern: each.keys_per_minute for each in growth(first, second)}
    assert grown == {"user:{user_id}": 30, "jobs": 1}
    (user,) = (entry for entry in second.inventory.entries if entry.pattern == "user:{user_id}")
    assert user.observed is not None and user.observed.without_expiry == 50 and user.observed.memory_bytes > 0


def test_where_nothing_grows_the_largest_comes_first() -> None:
    still = seen("a", 1, 10), seen("b:{id}", 1, 900), seen("c", 1, 500)
    assert [each.pattern for each in growth(snapshot(0, *still), snapshot(60, *still))] == ["b:{id}", "c", "a"]

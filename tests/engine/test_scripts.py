"""Scripts: loaded from files, called by hash, checked against their header."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest
import redis.exceptions

from keystead.engine import Valkey
from keystead.engine.scripts import Script
from keystead.errors import DeclarationError
from keystead.keys import NO_TTL, IntegerKey, Keyspace, Layout, ListKey, MapKey

MOVE = """#!lua
-- move: take from a list and count.
-- KEYS[1]    list    queue   oldest at the left
-- KEYS[2]    string  count
-- ARGV[1]    int     most    1..10
-- ARGV[2]    float   weight  0..2.5
-- ARGV[3..]  text    notes   any number, also none
-- Returns    the items
-- Cost       O(most)   Repeat: safe
-- include _fragment
local queue, count, most, weight, notes = KEYS[1], KEYS[2], tonumber(ARGV[1]), ARGV[2], ARGV[3]
redis.call('INCRBY', count, doubled(most))
return redis.call('LRANGE', queue, 0, most - 1)
"""
FRAGMENT = """-- a fragment
local function doubled(n) return 2 * n end
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / f"room_{hashlib.sha1(str(tmp_path).encode()).hexdigest()[:8]}"
    (folder / "scripts").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "scripts" / "move.lua").write_text(MOVE)
    (folder / "scripts" / "_fragment.lua").write_text(FRAGMENT)
    monkeypatch.syspath_prepend(tmp_path)
    return folder


@pytest.fixture
def move(package: Path) -> Script:
    return Script(package.name, "scripts/move.lua")


ROOM = Keyspace("room", tag="room")
OTHER = Keyspace("other", tag="other")
QUEUE = ListKey(ROOM, "queue:{name:word}", str, ttl=NO_TTL, purpose="waiting", writers=("t",), readers=("t",))
COUNT = IntegerKey(ROOM, "count", ttl=NO_TTL, purpose="how many", writers=("t",), readers=("t",))
FOREIGN = IntegerKey(OTHER, "foreign", ttl=NO_TTL, purpose="elsewhere", writers=("t",), readers=("t",))
RECORD = MapKey(ROOM, "record", str, ttl=NO_TTL, purpose="a hash", writers=("t",), readers=("t",))


async def test_script_runs_with_references_and_with_names(valkey: Valkey, move: Script) -> None:
    await valkey.rpush("queue:a", "x", "y", "z")
    keys = [QUEUE.at("a"), COUNT.at()]
    assert await move(valkey, keys=keys, args=[2, 0.5]) == [b"x", b"y"]
    assert await move(valkey, keys=["queue:a", b"count"], args=[1, 2.5, "a", b"b"], decode=len) == 1
    assert await valkey.get("count") == b"6"


async def test_first_call_loads_and_later_calls_send_the_hash_only(valkey: Valkey, move: Script) -> None:
    await valkey.script_flush()
    await valkey.config_resetstat()
    for _ in range(5):
        await move(valkey, keys=["q", "c"], args=[1, 1.0])
    stats = await valkey.info("commandstats")
    assert stats["cmdstat_eval"]["calls"] == 1
    assert stats["cmdstat_evalsha"]["calls"] == 5
    assert await valkey.script_exists(move.sha) == [True]


async def test_flush_between_calls_reaches_no_caller(valkey: Valkey, move: Script) -> None:
    await move(valkey, keys=["q", "c"], args=[1, 1.0])
    await valkey.script_flush()
    await asyncio.gather(*(move(valkey, keys=["q", "c"], args=[1, 1.0]) for _ in range(50)))
    assert await valkey.get("c") == b"102"


def test_nothing_is_read_before_the_first_use() -> None:
    script = Script("no.such.package", "nothing.lua")
    assert repr(script) == "Script(no.such.package/nothing.lua)"
    with pytest.raises(ModuleNotFoundError):
        _ = script.text


def test_fragment_is_joined_where_it_is_named(move: Script) -> None:
    assert "local function doubled" in move.text
    assert "-- include" not in move.text
    assert move.sha == hashlib.sha1(move.text.encode()).hexdigest()


def test_broken_header_names_the_file(package: Path) -> None:
    (package / "scripts" / "bad.lua").write_text("return 1\n")
    with pytest.raises(DeclarationError, match=r"scripts/bad\.lua: the first line must be #!lua"):
        _ = Script(package.name, "scripts/bad.lua").header


@pytest.mark.parametrize(
    ("keys", "args", "says"),
    [
        ([], [1, 1.0], "takes 2 keys, got 0"),
        (["q"], [1, 1.0], "takes 2 keys, got 1"),
        (["q", "c", "x"], [1, 1.0], "takes 2 keys, got 3"),
        (["q", "c"], [], "takes at least 2 arguments, got 0"),
        (["q", "c"], [1], "takes at least 2 arguments, got 1"),
        ([COUNT.at(), COUNT.at()], [1, 1.0], "queue must be a list"),
        ([QUEUE.at("a"), RECORD.at()], [1, 1.0], "count must be a string"),
        (["q", "c"], ["1", 1.0], "argument most must be int from 1 to 10, got str"),
        (["q", "c"], [1.0, 1.0], "argument most must be int from 1 to 10, got 1.0"),
        (["q", "c"], [True, 1.0], "argument most must be int from 1 to 10, got True"),
        (["q", "c"], [0, 1.0], "argument most must be int from 1 to 10, got 0"),
        (["q", "c"], [11, 1.0], "argument most must be int from 1 to 10, got 11"),
        (["q", "c"], [1, 2.6], r"argument weight must be float from 0 to 2\.5, got 2\.6"),
        (["q", "c"], [1, float("nan")], r"argument weight must be float from 0 to 2\.5, got nan"),
        (["q", "c"], [1, 1.0, "fine", 3], "argument notes must be text, got 3"),
        (["q", "c"], [1, 1.0, None], "argument notes must be text, got NoneType"),
    ],
)
async def test_call_that_breaks_the_header_never_leaves(
    valkey: Valkey, move: Script, keys: list[Any], args: list[Any], says: str
) -> None:
    before = valkey.commands_sent
    with pytest.raises(DeclarationError, match=says):
        await move(valkey, keys=keys, args=args)
    with pytest.raises(DeclarationError, match=says):
        move(valkey.pipeline(), keys=keys, args=args)
    assert valkey.commands_sent == before


class Tagged:
    """Something that runs nothing and spells keys as a cluster needs them."""

    layout = Layout.TAGGED

    def __init__(self) -> None:
        self.rest: tuple[Any, ...] = ()

    def run_script(self, script: Script, rest: tuple[Any, ...], decode: Any) -> Any:
        self.rest = rest


def test_tagged_keys_must_share_a_slot(move: Script) -> None:
    on = Tagged()
    move(on, keys=[QUEUE.at("a"), COUNT.at()], args=[1, 1.0])
    assert on.rest == (2, b"{room}queue:a", b"{room}count", 1, 1.0)
    move(on, keys=["{x}a", b"{x}b"], args=[1, 1.0])
    for keys in ([QUEUE.at("a"), FOREIGN.at()], ["{x}a", "{y}b"], ["a", "b"], ["{}a", "{}b"]):
        with pytest.raises(DeclarationError, match="different slots"):
            move(on, keys=keys, args=[1, 1.0])


async def test_error_of_the_script_is_the_callers(valkey: Valkey, move: Script) -> None:
    await valkey.set("q", "not a list")
    with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
        await move(valkey, keys=["q", "c"], args=[1, 1.0])


def test_fragments_of_another_package_are_joined_with_what_they_include() -> None:
    text = Script("keystead.patterns", "scripts/worklist/settle.lua").text
    for name in ("remove_exactly", "write_all", "count_all"):
        assert text.count(f"local function {name}(") == 1, name
    assert "-- include" not in text

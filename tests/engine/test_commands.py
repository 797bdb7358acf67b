"""What the engine knows of commands."""

from typing import Any

import pytest
import redis.exceptions

from keystead.engine import Valkey
from keystead.engine.commands import (
    BLOCKING,
    OWN_PIPELINE,
    REPEATABLE,
    STATEFUL,
    blocks,
    full_name,
    longest_wait_seconds,
    pack,
    plan,
)


async def test_every_command_declared_safe_to_repeat_is_a_read_in_the_servers_own_words(valkey: Valkey) -> None:
    """Harmless by nature, though the server does not call them read-only: they look at the server, not at keys."""
    about_the_server = {
        "ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "ECHO", "FUNCTION", "INFO", "LASTSAVE", "LATENCY", "LOLWUT",
        "MEMORY", "OBJECT", "PING", "PUBSUB", "ROLE", "SCRIPT", "SLOWLOG", "TIME", "XINFO",
    }  # fmt: skip
    known = {name.upper(): facts for name, facts in (await valkey.command()).items()}
    for name in REPEATABLE:
        container = name.partition(" ")[0]
        if container in about_the_server or container not in known:
            continue
        assert "readonly" in known[container]["flags"], name


async def test_every_command_the_server_may_block_on_is_known(valkey: Valkey) -> None:
    known = await valkey.command()
    for name, facts in known.items():
        if "blocking" in facts["flags"]:
            how = plan(name, {})
            assert not how.plain, name
            assert how.may_block or not how.shared, name


def test_no_write_is_repeatable() -> None:
    for name in (
        "SET", "INCR", "GETDEL", "GETEX", "SPOP", "LPOP", "XADD", "XREADGROUP", "XAUTOCLAIM", "EVAL", "EVALSHA",
        "FCALL", "SORT", "BITFIELD", "GEORADIUS", "PUBLISH", "DEL", "EXPIRE", "RESTORE", "MIGRATE", "CONFIG SET",
        "SCRIPT FLUSH",
        "FUNCTION LOAD", "PFADD", "COPY", "HGETDEL", "HGETEX",
    ):  # fmt: skip
        assert not plan(name, {}).repeat, name


@pytest.mark.parametrize(
    ("args", "name"),
    [
        (("get", "a"), "get"), ((b"GET", "a"), "GET"), (("CLIENT", "REPLY", "OFF"), "CLIENT REPLY"),
        (("CLIENT REPLY", "OFF"), "CLIENT REPLY"), (("CLIENT REPLY OFF",), "CLIENT REPLY"), (("SET a b",), "SET"),
        ((b"config", b"get", b"*"), "config get"), (("OBJECT", 5), "OBJECT 5"), (("PING",), "PING"), (("",), ""),
    ],
)  # fmt: skip
def test_full_name(args: tuple[Any, ...], name: str) -> None:
    assert full_name(args) == name


def test_a_plan_looks_at_more_than_the_name_only_where_it_must() -> None:
    assert plan("GET", {}).plain and plan("set", {}).plain and plan("SET a b", {}).plain
    for name in ("CLIENT", "client", "SCRIPT", "BLPOP", "XREAD", "WAIT", "SELECT", "blpop list 0", "MULTI", "select 1"):
        assert not plan(name, {}).plain, name
    assert plan("get", {"GET": "callback"}).callback == "callback"
    assert not STATEFUL & REPEATABLE
    assert not BLOCKING & REPEATABLE
    assert not OWN_PIPELINE & REPEATABLE


@pytest.mark.parametrize(
    ("args", "waits"),
    [
        (("XREAD", "STREAMS", "s", "0"), False), (("XREAD", "BLOCK", 0, "STREAMS", "s", "$"), True),
        (("XREAD", "COUNT", 5, b"block", b"10", "STREAMS", "s", "$"), True), (("XREAD Block 5 STREAMS s $",), True),
        (("XREADGROUP", "GROUP", "g", "c", "COUNT", 1, "BLOCK", 5, "NOACK", "STREAMS", "s", ">"), True),
        (("XREADGROUP", "GROUP", "g", "c", "NOACK", "STREAMS", "s", ">"), False),
        (("XREAD", "STREAMS", "block", "0"), False),
    ],
)  # fmt: skip
def test_stream_reads_that_wait_are_told_from_those_that_do_not(args: tuple[Any, ...], waits: bool) -> None:
    assert blocks(args) is waits


@pytest.mark.parametrize(
    ("args", "seconds"),
    [
        (("GET", "a"), 0.0), (("BLPOP", "a", "b", 2.5), 2.5), (("BLPOP", "a", 0), None), (("BLPOP", "a", "0"), None),
        (("BRPOPLPUSH", "a", "b", b"3"), 3.0), (("BLMOVE", "a", "b", "LEFT", "RIGHT", 4), 4.0),
        (("BLMPOP", 5, 1, "a", "LEFT"), 5.0), (("BZMPOP", 0, 1, "z", "MIN"), None), (("BZPOPMIN", "z", 1), 1.0),
        (("XREAD", "BLOCK", 1500, "STREAMS", "s", "$"), 1.5), (("XREAD", "STREAMS", "s", "$"), 0.0),
        (("XREAD", "BLOCK", 0, "STREAMS", "s", "$"), None), (("WAIT", 1, 250), 0.25), (("WAITAOF", 1, 0, 0), None),
        (("BLPOP", "a", "soon"), None), (("BLMPOP",), None),
    ],
)  # fmt: skip
def test_longest_wait(args: tuple[Any, ...], seconds: float | None) -> None:
    assert longest_wait_seconds(args) == seconds


@pytest.mark.parametrize(
    ("args", "raw"),
    [
        (("SET", "a", 1), b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"),
        (("CONFIG GET", "x"), b"*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$1\r\nx\r\n"),
        ((b"CONFIG GET", "x"), b"*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$1\r\nx\r\n"),
        (("ECHO", "é"), b"*2\r\n$4\r\nECHO\r\n$2\r\n\xc3\xa9\r\n"),
        (("ECHO", bytearray(b"\xff")), b"*2\r\n$4\r\nECHO\r\n$1\r\n\xff\r\n"),
        (("ECHO", memoryview(b"\xff")), b"*2\r\n$4\r\nECHO\r\n$1\r\n\xff\r\n"),
        (("ECHO", 0.1), b"*2\r\n$4\r\nECHO\r\n$3\r\n0.1\r\n"),
        (("ECHO", -(2**70)), b"*2\r\n$4\r\nECHO\r\n$23\r\n-1180591620717411303424\r\n"),
    ],
)
def test_pack(args: tuple[Any, ...], raw: bytes) -> None:
    assert pack(args) == raw


@pytest.mark.parametrize("value", [None, [], {}, object(), ("a",)], ids=lambda value: type(value).__name__)
def test_pack_refuses_what_has_no_spelling(value: object) -> None:
    with pytest.raises(redis.exceptions.DataError, match="make it bytes, str, int or float"):
        pack(("SET", "a", value))

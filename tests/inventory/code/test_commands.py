"""The table of commands."""

import pytest

from keystead.inventory.code.commands import Access, Keys, command_named, command_of_method


@pytest.mark.parametrize(("method", "command"), [
    ("hset", "HSET"), ("hSet", "HSET"), ("HSet", "HSET"), ("h_set", "HSET"), ("delete", "DEL"),
    ("zRangeByScore", "ZRANGEBYSCORE"),
    ("scan_iter", "SCAN"), ("setEx", "SETEX"), ("exists?", "EXISTS"), ("getBuffer", "GET"), ("jsonSet", "JSON.SET"),
    ("ZRangeWithScores", "ZRANGE"), ("setAsync", "SET"),
])
def test_methods_of_clients(method: str, command: str) -> None:
    found = command_of_method(method)
    assert found is not None and found.name == command


def test_types_accesses_and_keys() -> None:
    zadd, blpop, execute = command_named("zadd"), command_named("BLPOP"), command_of_method("execute_command")
    assert zadd is not None and (zadd.type, zadd.access, zadd.plain) == ("zset", Access.WRITE, False)
    assert blpop is not None and blpop.keys is Keys.ALL_BUT_LAST
    assert execute is not None and execute.keys is Keys.RAW
    assert command_of_method("frobnicate") is None and command_named("PING") is None

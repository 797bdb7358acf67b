"""Which arguments of a call are keys."""

from pathlib import Path

import pytest

from .reading_code import patterns, read


@pytest.mark.parametrize(("call", "keys"), [
    ('r.mget(["a:1", "a:2"])', ["a:1", "a:2"]), ('r.mset({"a:1": 1, "a:2": 2})', ["a:1", "a:2"]),
    ('r.rename("a:1", "a:2")', ["a:1", "a:2"]), ('r.blpop(["a:1", "a:2"], 5)', ["a:1", "a:2"]),
    ('r.blpop("a:1", timeout=5)', ["a:1"]), ('r.zunionstore("d:1", ["a:1", "a:2"])', ["a:1", "a:2", "d:1"]),
    ('r.xread({"s:1": "0"})', ["s:1"]), ('r.xreadgroup("g", "c", streams={"s:1": ">"})', ["s:1"]),
    ('r.xgroup_create("s:1", "g", mkstream=True)', ["s:1"]), ('r.get(name="a:1")', ["a:1"]),
    ('r.sunionstore("d:1", "a:1")', ["a:1", "d:1"]), ('r.object("encoding", "a:1")', ["a:1"]),
    ('r.execute_command("HSET a:1", "f", 1)', ["a:1"]), ('r.psubscribe("c:*")', ["c:{rest}"]),
    ('r.object()', []), ('r.get()', []), ('r.delete()', []),
])
def test_redis_py(tmp_path: Path, call: str, keys: list[str]) -> None:
    assert sorted(patterns(read(tmp_path, a_py=f"import redis\nr = redis.Redis()\n{call}\n"))) == keys


def test_go_redis_takes_the_key_in_a_struct(tmp_path: Path) -> None:
    found = read(tmp_path, a_go="""
        package a

        import "github.com/redis/go-redis/v9"

        func Add(ctx context.Context, rdb *redis.Client, id string) {
            rdb.XAdd(ctx, &redis.XAddArgs{Stream: "match:" + id + ":events", Values: map[string]any{"a": 1}})
            rdb.ZRangeArgs(ctx, redis.ZRangeArgs{Key: "board:" + id, Start: 0, Stop: 9})
        }
    """)
    assert "match:{id}:events" in patterns(found) and not found.notes

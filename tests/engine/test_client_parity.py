"""The client answers like redis-py's own: same values, same Python types, command by command."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import redis.asyncio
import redis.exceptions

from keystead.engine import Valkey
from keystead.testing.server import LocalServer

Call = Callable[[Any], Any]

FUNCTION = "#!lua name=parity\nredis.register_function('parity_one', function(keys, args) return 'one' end)"

FAMILIES: dict[str, list[Call]] = {
    "strings": [
        lambda c: c.set("s", "value"), lambda c: c.set("s", "other", nx=True),
        lambda c: c.set("s", "x", xx=True, get=True), lambda c: c.get("s"), lambda c: c.get("missing"),
        lambda c: c.append("s", "more"), lambda c: c.strlen("s"), lambda c: c.getrange("s", 0, 2),
        lambda c: c.setrange("s", 2, "Z"), lambda c: c.incr("n"), lambda c: c.incrby("n", 5),
        lambda c: c.incrbyfloat("f", 1.5), lambda c: c.decr("n"), lambda c: c.mset({"a": 1, "b": 2}),
        lambda c: c.mget("a", "b", "c"), lambda c: c.mget([]), lambda c: c.msetnx({"a": 1, "z": 2}),
        lambda c: c.getdel("a"), lambda c: c.getex("b", ex=10), lambda c: c.setex("t", 10, "v"),
        lambda c: c.psetex("t", 10000, "v"), lambda c: c.setnx("t", 1), lambda c: c.getset("t", "w"),
        lambda c: c.setbit("bits", 7, 1), lambda c: c.getbit("bits", 7), lambda c: c.bitcount("bits"),
        lambda c: c.bitpos("bits", 1), lambda c: c.bitop("NOT", "bits2", "bits"), lambda c: c.lcs("s", "t"),
        lambda c: c.substr("s", 0, 1), lambda c: c.dump("s"),
        lambda c: c.bitfield("bf").set("u8", 0, 200).get("u8", 0).execute(),
    ],
    "keys": [
        lambda c: c.set("k", 1), lambda c: c.exists("k", "nope"), lambda c: c.expire("k", 100), lambda c: c.ttl("k"),
        lambda c: c.ttl("nope"), lambda c: c.persist("k"), lambda c: c.pttl("k"),
        lambda c: c.pexpireat("k", 4_102_444_800_000), lambda c: c.expiretime("k"), lambda c: c.type("k"),
        lambda c: c.type("nope"), lambda c: c.rename("k", "k2"), lambda c: c.renamenx("k2", "k3"),
        lambda c: c.copy("k3", "k4"), lambda c: c.touch("k3"), lambda c: c.keys("*"),
        lambda c: c.object("encoding", "k3"), lambda c: c.dbsize(), lambda c: c.scan(0, match="k*", count=100),
        lambda c: c.unlink("k3"), lambda c: c.delete("k4"), lambda c: c.delete("nope"),
        lambda c: c.object("refcount", "nope"), lambda c: c.sort("nope"), lambda c: c.memory_usage("nope"),
    ],
    "hashes": [
        lambda c: c.hset("h", mapping={"a": 1, "b": 2, "c": 3}), lambda c: c.hset("h", "a", "9"),
        lambda c: c.hget("h", "a"), lambda c: c.hgetall("h"), lambda c: c.hgetall("nope"),
        lambda c: c.hmget("h", "a", "nope"), lambda c: c.hdel("h", "a"), lambda c: c.hexists("h", "a"),
        lambda c: c.hlen("h"), lambda c: c.hkeys("h"), lambda c: c.hvals("h"), lambda c: c.hincrby("h", "b", 3),
        lambda c: c.hincrbyfloat("h", "b", 0.5), lambda c: c.hsetnx("h", "b", 1), lambda c: c.hstrlen("h", "b"),
        lambda c: c.hscan("h"), lambda c: c.hrandfield("h", 10, withvalues=True),
    ],
    "lists": [
        lambda c: c.rpush("l", 1, 2, 3), lambda c: c.lpush("l", 0), lambda c: c.lrange("l", 0, -1),
        lambda c: c.llen("l"), lambda c: c.lindex("l", 1), lambda c: c.linsert("l", "before", "1", "x"),
        lambda c: c.lpos("l", "x"), lambda c: c.lpos("l", "q"), lambda c: c.lset("l", 0, "y"),
        lambda c: c.lrem("l", 1, "x"), lambda c: c.ltrim("l", 0, 2), lambda c: c.lpop("l"), lambda c: c.lpop("l", 2),
        lambda c: c.lpop("l"), lambda c: c.rpush("l", 1), lambda c: c.rpop("l"), lambda c: c.rpush("l", 1, 2),
        lambda c: c.lmove("l", "m"), lambda c: c.rpoplpush("l", "m"),
        lambda c: c.lmpop(1, "m", direction="LEFT", count=2), lambda c: c.rpush("l", 1, 2), lambda c: c.blpop("l", 1),
        lambda c: c.brpop(["l"], 1), lambda c: c.blpop("l", 0.01), lambda c: c.blmpop(0.01, 1, "l", direction="LEFT"),
        lambda c: c.rpush("l", 1), lambda c: c.blmove("l", "m", 1), lambda c: c.brpoplpush("nope", "m", 0.01),
    ],
    "sets": [
        lambda c: c.sadd("s1", 1, 2, 3), lambda c: c.sadd("s2", 3), lambda c: c.smembers("s1"),
        lambda c: c.smembers("nope"), lambda c: c.sismember("s1", 1), lambda c: c.smismember("s1", [1, 9]),
        lambda c: c.scard("s1"), lambda c: c.sinter("s1", "s2"), lambda c: c.sunion("s1", "s2"),
        lambda c: c.sdiff("s1", "s2"), lambda c: c.sinterstore("s3", "s1", "s2"),
        lambda c: c.sintercard(2, ["s1", "s2"]), lambda c: c.smove("s1", "s2", 1), lambda c: c.srem("s1", 2),
        lambda c: c.spop("s1"), lambda c: c.sscan("s3"), lambda c: c.spop("s1"),
    ],
    "sorted sets": [
        lambda c: c.zadd("z", {"a": 1, "b": 2.5, "c": 3}), lambda c: c.zadd("z", {"a": 2}, gt=True, ch=True),
        lambda c: c.zadd("z", {"a": 1}, incr=True), lambda c: c.zscore("z", "a"), lambda c: c.zscore("z", "q"),
        lambda c: c.zmscore("z", ["a", "q"]), lambda c: c.zrange("z", 0, -1, withscores=True),
        lambda c: c.zrange("z", 0, -1), lambda c: c.zrevrange("z", 0, -1, withscores=True),
        lambda c: c.zrangebyscore("z", "-inf", "+inf", withscores=True, start=0, num=2),
        lambda c: c.zrangebylex("z", "-", "+"), lambda c: c.zrank("z", "a"),
        lambda c: c.zrank("z", "a", withscore=True), lambda c: c.zrevrank("z", "q"), lambda c: c.zcard("z"),
        lambda c: c.zcount("z", 0, 10), lambda c: c.zlexcount("z", "-", "+"), lambda c: c.zincrby("z", 2, "a"),
        lambda c: c.zrem("z", "q"), lambda c: c.zscan("z"), lambda c: c.zunion(["z", "y"], withscores=True),
        lambda c: c.zinter(["z"], withscores=True), lambda c: c.zdiff(["z", "y"], withscores=True),
        lambda c: c.zunionstore("u", ["z", "y"]), lambda c: c.zpopmin("z"), lambda c: c.zpopmax("z", 2),
        lambda c: c.zmpop(1, ["u"], min=True), lambda c: c.bzpopmin("u", 1), lambda c: c.bzpopmax("nope", 0.01),
        lambda c: c.zadd("z", {"a": 1}), lambda c: c.bzmpop(1, 1, ["z"], max=True),
        lambda c: c.zremrangebyscore("z", 0, 1), lambda c: c.zrandmember("nope"),
    ],
    "streams": [
        lambda c: c.xadd("x", {"f": "v", "g": "w"}, id="1-1"), lambda c: c.xadd("x", {"f": "v2"}, id="2-1"),
        lambda c: c.xlen("x"), lambda c: c.xrange("x"), lambda c: c.xrevrange("x", count=1),
        lambda c: c.xread({"x": "0"}), lambda c: c.xread({"x": "1-1"}, count=1, block=10),
        lambda c: c.xread({"x": "$"}, block=10), lambda c: c.xread({"x": "9-9"}),
        lambda c: c.xgroup_create("x", "g", "0"), lambda c: c.xreadgroup("g", "me", {"x": ">"}, count=1),
        lambda c: c.xreadgroup("g", "me", {"x": ">"}, block=10),
        lambda c: c.xreadgroup("g", "me", {"x": ">"}, block=10), lambda c: c.xpending("x", "g"),
        lambda c: c.xack("x", "g", "1-1"), lambda c: c.xclaim("x", "g", "you", 0, ["2-1"]),
        lambda c: c.xautoclaim("x", "g", "me", 0), lambda c: c.xinfo_groups("x"),
        lambda c: c.xgroup_delconsumer("x", "g", "me"), lambda c: c.xdel("x", "1-1"),
        lambda c: c.xtrim("x", maxlen=0), lambda c: c.xgroup_destroy("x", "g"),
    ],
    "geo and hyperloglog": [
        lambda c: c.geoadd("g", (13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania")),
        lambda c: c.geodist("g", "Palermo", "Catania"), lambda c: c.geodist("g", "Palermo", "q"),
        lambda c: c.geopos("g", "Palermo", "q"), lambda c: c.geohash("g", "Palermo"),
        lambda c: c.geosearch("g", member="Palermo", radius=300, unit="km", withcoord=True, withdist=True, sort="ASC"),
        lambda c: c.pfadd("p", "a", "b"), lambda c: c.pfcount("p"), lambda c: c.pfmerge("q", "p"),
    ],
    "scripts and functions": [
        lambda c: c.eval("return {1, 'two', {3}, redis.status_reply('fine')}", 0),
        lambda c: c.eval("return redis.call('SET', KEYS[1], ARGV[1])", 1, "k", "v"),
        lambda c: c.script_load("return 1"), lambda c: c.evalsha("e0e1f9fabfc9d4800c877a703b823ac0578ff8db", 0),
        lambda c: c.script_exists("e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0" * 40),
        lambda c: c.eval("return false", 0), lambda c: c.eval("return 3.7", 0), lambda c: c.evalsha("f" * 40, 0),
        lambda c: c.eval("return redis.error_reply('MINE no')", 0),
        lambda c: c.function_load(FUNCTION),
        lambda c: c.fcall("parity_one", 0), lambda c: c.function_list(), lambda c: c.function_delete("parity"),
        lambda c: c.script_flush(),
    ],
    "server": [
        lambda c: c.ping(), lambda c: c.echo("hello"), lambda c: c.config_get("maxmemory"),
        lambda c: c.config_set("maxmemory", 0), lambda c: c.client_getname(), lambda c: c.lastsave(),
        lambda c: c.command_count(), lambda c: c.pubsub_channels(), lambda c: c.pubsub_numsub("a"),
        lambda c: c.publish("a", "b"), lambda c: c.slowlog_len(), lambda c: c.acl_whoami(), lambda c: c.acl_list(),
        lambda c: c.acl_getuser("default"), lambda c: c.flushdb(), lambda c: c.swapdb(0, 0),
        lambda c: c.config_resetstat(), lambda c: c.module_list(), lambda c: c.command_getkeys("SET", "a", "b"),
        lambda c: c.latency_latest(), lambda c: c.memory_purge(),
    ],
    "errors": [
        lambda c: c.set("s", "text"), lambda c: c.lpush("s", 1), lambda c: c.incr("s"),
        lambda c: c.execute_command("NOSUCHCOMMAND"), lambda c: c.execute_command("GET"), lambda c: c.set("s", None),
        lambda c: c.expire("s", "soon"), lambda c: c.set("s", 1, ex=0), lambda c: c.blpop("s", 1),
        lambda c: c.xreadgroup("g", "me", {"nope": ">"}, block=10),
    ],
    "raw commands": [
        lambda c: c.execute_command("set", "a", "1"), lambda c: c.execute_command("get", "a"),
        lambda c: c.execute_command("SET b 2"), lambda c: c.execute_command("GET b"),
        lambda c: c.execute_command("HGETALL", "nope"), lambda c: c.execute_command("hgetall", "nope"),
        lambda c: c.execute_command("CONFIG GET", "maxmemory"),
        lambda c: c.execute_command("OBJECT", "ENCODING", "a"), lambda c: c.execute_command(b"GET", "a"),
        lambda c: c.execute_command("exists", "a"), lambda c: c.execute_command("SET", b"\xff\xfe", b"\x00\xff"),
        lambda c: c.execute_command("GET", b"\xff\xfe"), lambda c: c.execute_command("INCRBYFLOAT", "a", 0.1),
        lambda c: c.execute_command("SET", "i", 12345678901234567890), lambda c: c.get("i"),
        lambda c: c.set("f", 1e-7), lambda c: c.get("f"),
    ],
}  # fmt: skip


@pytest.fixture
async def plain(valkey_server: LocalServer) -> AsyncIterator[redis.asyncio.Redis]:
    async with redis.asyncio.Redis(unix_socket_path=str(valkey_server.socket_path), client_name="keystead") as client:
        yield client


async def outcome(client: Any, call: Call) -> Any:
    try:
        return shown(await call(client))
    except (redis.exceptions.RedisError, redis.exceptions.DataError) as error:
        return type(error), str(error) if isinstance(error, redis.exceptions.ResponseError) else ""


def shown(value: Any) -> Any:
    """A value with the types of everything in it, so that 1 is not True and a tuple is not a list."""
    if isinstance(value, list | tuple):
        return type(value).__name__, [shown(each) for each in value]
    if isinstance(value, dict):
        return type(value).__name__, {key: shown(each) for key, each in value.items()}
    return type(value).__name__, value


@pytest.mark.parametrize("family", FAMILIES)
async def test_replies_equal_those_of_redis_py(family: str, valkey: Valkey, plain: redis.asyncio.Redis) -> None:
    calls = FAMILIES[family]
    ours = [await outcome(valkey, call) for call in calls]
    await plain.flushall()
    await plain.config_resetstat()
    theirs = [await outcome(plain, call) for call in calls]
    for place, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        assert our == their, f"call number {place} of {family}"


@pytest.mark.parametrize("transaction", [True, False], ids=["transaction", "pipeline"])
@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"lists", "streams", "scripts and functions"}))
async def test_pipelines_answer_like_those_of_redis_py(
    family: str, transaction: bool, valkey: Valkey, plain: redis.asyncio.Redis
) -> None:
    # What a transaction refuses whole has a test of its own; redis-py leaves the place of an empty MGET to chance.
    left_out = ("NOSUCHCOMMAND", "BLPOP", "BZPOPMAX", "MGET")

    async def run(client: Any) -> list[Any]:
        pipe = client.pipeline(transaction=transaction)
        for call in FAMILIES[family]:
            try:
                call(pipe)
            except redis.exceptions.RedisError:
                continue
        pipe.command_stack = [
            (args, options) for args, options in pipe.command_stack
            if None not in args and args != ("GET",) and args[0] not in left_out
        ]  # fmt: skip
        return [
            (type(each), str(each)) if isinstance(each, Exception) else shown(each)
            for each in await pipe.execute(raise_on_error=False)
        ]

    ours = await run(valkey)
    await plain.flushall()
    assert ours == await run(plain)


async def test_facts_about_the_server_have_the_same_shape(valkey: Valkey, plain: redis.asyncio.Redis) -> None:
    await plain.xadd("x", {"a": 1})
    calls: list[Call] = [
        lambda c: c.info(), lambda c: c.info("memory"), lambda c: c.client_list(), lambda c: c.time(),
        lambda c: c.client_info(), lambda c: c.config_get("*"), lambda c: c.command(), lambda c: c.memory_stats(),
        lambda c: c.xinfo_stream("x"), lambda c: c.client_id(), lambda c: c.slowlog_get(), lambda c: c.role(),
    ]  # fmt: skip
    for call in calls:
        our, their = await call(valkey), await call(plain)
        assert type(our) is type(their)
        if isinstance(our, dict):
            both = our.keys() & their.keys()
            assert len(both) >= 0.9 * len(their)
            for name in both:
                kinds = {type(our[name]), type(their[name])}
                assert len(kinds) == 1 or kinds <= {int, float}, name
        elif isinstance(our, list) and our and isinstance(our[0], dict):
            assert our[0].keys() == their[0].keys()

"""One cheap command shows whether a value decodes."""

from typing import Any

import msgspec

from .audited_room import REGISTRY, Sms


async def sampled(valkey: Any, raw_key: bytes) -> str | None:
    match = REGISTRY.resolve(raw_key)
    assert match is not None
    command = match.declaration.probe(raw_key)
    assert command is not None
    return match.declaration.judge_sample(await valkey.execute_command(*command))


async def test_a_sample_shows_whether_a_value_decodes(valkey: Any) -> None:
    good, bad = msgspec.json.encode(Sms("a")), b'{"sid": 1}'
    await valkey.set("text:good", good)
    await valkey.set("text:bad", bad)
    await valkey.set("text:big", b'"' + b"x" * 100_000)
    await valkey.set("count:1.1.1.1", "7")
    await valkey.set("count:2.2.2.2", "x")
    await valkey.hset("sms:pending:good", mapping={"sid": "a", "attempts": "1", "extra": "z"})
    await valkey.hset("sms:pending:bad", mapping={"attempts": "1"})
    await valkey.hset("sms:pending:big", mapping={f"f{n}": "x" * 100 for n in range(500)})
    await valkey.hset("map:good", "known", "1")
    await valkey.hset("map:bad", "known", "x")
    await valkey.hset("map:odd", "unknown", "1")
    await valkey.rpush("list:good", good)
    await valkey.rpush("list:bad", good, bad)
    await valkey.sadd("set:good", "1")
    await valkey.sadd("set:bad", "x")
    await valkey.xadd("stream:good", {"sid": "a"})
    await valkey.xadd("stream:bad", {"attempts": "1"})
    await valkey.geoadd("geo:good", (1, 2, "5"))
    await valkey.geoadd("geo:bad", (1, 2, "x"))
    await valkey.zadd("sms:pending", {"SM1": 1})
    assert REGISTRY.resolve(b"flag:1").declaration.probe(b"flag:1") is None  # type: ignore[union-attr]
    found = {key: await sampled(valkey, key) for key in await valkey.keys()}
    assert {key for key, why in found.items() if why is not None} == {
        b"text:bad", b"count:2.2.2.2", b"sms:pending:bad", b"map:bad", b"map:odd", b"list:bad", b"set:bad",
        b"stream:bad", b"geo:bad",
    }
    assert found[b"map:odd"] == "field 'unknown' is not declared"
    assert await sampled(valkey, b"text:absent") is None
    assert await sampled(valkey, b"sms:pending:absent") is None

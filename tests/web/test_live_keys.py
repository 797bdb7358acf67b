"""A few live keys of one pattern."""

from keystead.edge.keys import API_IP, EDGE, LOGIN_IP, VIOLATIONS
from keystead.keys import Registry
from keystead.web import live_keys
from keystead.web.live_keys import some_keys

REGISTRY = Registry([EDGE])


async def test_all_keys_of_the_pattern_and_no_others(valkey):
    for last in range(5):
        await API_IP.at(f"203.0.113.{last}").set(valkey, 1)
    await LOGIN_IP.at("203.0.113.1").set(valkey, 1)
    await valkey.set("api_ip:nobody", 1)
    found, complete = await some_keys(valkey, REGISTRY, API_IP, most=10)
    assert complete
    assert sorted(key.arguments["ip"] for key in found) == [f"203.0.113.{last}" for last in range(5)]
    assert all(30 < key.ttl_seconds <= 60 for key in found)


async def test_cut_list_says_so(valkey):
    for last in range(9):
        await API_IP.at(f"203.0.113.{last}").set(valkey, 1)
    found, complete = await some_keys(valkey, REGISTRY, API_IP, most=4)
    assert len(found) == 4 and not complete


async def test_key_that_never_expires_is_told_apart(valkey):
    await valkey.set(VIOLATIONS.at("203.0.113.1").name(valkey.layout), 3)
    (key,), _ = await some_keys(valkey, REGISTRY, VIOLATIONS, most=4)
    assert key.ttl_seconds is None


async def test_look_is_bounded_in_time(valkey, monkeypatch):
    async with valkey.pipeline(transaction=False) as pipeline:
        for number in range(20_000):
            pipeline.set(f"other:{number}", 1)
        await pipeline.execute()
    monkeypatch.setattr(live_keys, "LOOK_SECONDS", 0.001)
    found, complete = await some_keys(valkey, REGISTRY, API_IP, most=4)
    assert found == [] and not complete

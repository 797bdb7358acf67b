"""A live server explains itself: patterns, types, expiries, sizes and values."""

import random
import re

import pytest

from keystead.engine import Valkey, lookout
from keystead.inventory import Certainty, Entry, Inventory, Matcher, Rule
from keystead.settings import ValkeySettings
from keystead.survey.learn import learn
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer

from ..inventory.learning.declared_keys import live_keys, registry
from .old_redis import OldRedis


async def learned(url: str, **options: object) -> Inventory:
    async with lookout(url, settings=ValkeySettings(outage_seconds=0.2)) as look:
        return await learn(look, **options)  # type: ignore[arg-type]


def entry(inventory: Inventory, pattern: str) -> Entry:
    return next(each for each in inventory.entries if each.pattern == pattern)


async def shop(valkey: Valkey) -> None:
    async with valkey.pipeline(transaction=False) as pipe:
        for number in range(40):
            pipe.set(f"session:{number * 7919:032x}", f'{{"user": {number}, "at": 1731672000}}', ex=1700 + number)
            pipe.hset(f"user:{number}", mapping={"name": "Ann", "email": "ann@example.com"})
            pipe.incr(f"count:{20_400 + number}")
            pipe.rpush(f"user:{number}:inbox", "hello")
        pipe.set("motd", "x")
        await pipe.execute()


async def test_draft_says_what_is_there(valkey: Valkey, valkey_server: LocalServer) -> None:
    await shop(valkey)

    draft = await learned(valkey_server.url)

    assert {each.pattern for each in draft.entries} == {
        "session:{session_md5}", "user:{user_id}", "user:{user_id}:inbox", "count:{unix_date}", "motd"}
    assert not draft.partial
    session = entry(draft, "session:{session_md5}")
    assert session.type is not None and (session.type.value, session.type.certainty) == ("json", Certainty.IMPLIED)
    assert session.ttl is not None and session.ttl.certainty is Certainty.GUESSED
    assert (session.ttl.value.rule, session.ttl.value.seconds) == (Rule.AT_MOST, 1800.0)
    assert session.payload is not None and session.payload.value == "json object: user integer, at integer"
    seen = session.observed
    assert seen is not None and seen.keys == seen.sampled == 40 and seen.memory_bytes > 40 * 60
    assert seen.types == (("string", 40),) and seen.without_expiry == 0
    assert seen.encodings and seen.longest_seconds is not None and 1700 < seen.longest_seconds <= 1740
    assert session.sources[0].file == draft.name and len(session.examples) == 3
    user = entry(draft, "user:{user_id}")
    assert user.type is not None and user.type.value == "hash"
    assert user.ttl is not None and user.ttl.value.rule is Rule.NONE
    assert user.personal is not None and user.personal.certainty is Certainty.GUESSED
    assert user.section == ("user",) and user.observed is not None and "email" in user.observed.shape
    assert entry(draft, "count:{unix_date}").type.value == "integer"  # type: ignore[union-attr]
    matcher = Matcher(draft)
    found = matcher.find(b"user:7:inbox")
    assert found is not None and found.entry.pattern == "user:{user_id}:inbox"


async def test_values_are_not_read_unless_wanted(valkey: Valkey, valkey_server: LocalServer) -> None:
    await shop(valkey)
    draft = await learned(valkey_server.url, values=False)
    assert all(each.observed is not None and not each.observed.shape for each in draft.entries)


async def test_counts_of_a_sample_are_scaled_up(valkey: Valkey, valkey_server: LocalServer) -> None:
    valkey_server.call("EVAL", "for n = 1, 20000 do redis.call('SET', 'user:' .. n, n) end", 0)
    draft = await learned(valkey_server.url, sample=2000)
    (user,) = draft.entries
    assert user.observed is not None and 2000 <= user.observed.sampled < 4000
    assert 19_000 <= user.observed.keys <= 21_000
    assert any("scaled up" in note.says for note in draft.notes)


async def test_redis_6_is_learned_from_as_well(old_redis: OldRedis) -> None:
    for number in range(20):
        old_redis.call("HSET", f"user:{number}", "name", "Ann")
    draft = await learned(old_redis.url)
    (user,) = draft.entries
    assert user.pattern == "user:{user_id}" and user.observed is not None
    assert user.observed.shape == "fields: name text" and user.observed.encodings == (("ziplist", 3),)


async def test_mixed_types_are_told(valkey: Valkey, valkey_server: LocalServer) -> None:
    for number in range(10):
        await valkey.set(f"thing:{number}", "x")
    await valkey.sadd("thing:11", "x")
    (thing,) = (await learned(valkey_server.url)).entries
    assert thing.type is not None and (thing.type.value, thing.type.certainty) == ("string", Certainty.GUESSED)
    assert thing.type.words == "string 10, set 1"


async def test_what_was_learned_before_the_server_died_is_kept(valkey: Valkey, valkey_server: LocalServer) -> None:
    valkey_server.call("EVAL", "for n = 1, 20000 do redis.call('SET', 'user:' .. n, n) end", 0)

    def kill(done: int, total: int) -> None:
        if done > 5000 and valkey_server.process.running:
            valkey_server.kill()

    draft = await learned(valkey_server.url, progress=kill)
    valkey_server.restart()
    assert "went away" in draft.partial
    assert [each.pattern for each in draft.entries] == ["user:{user_id}"]


@pytest.mark.cluster
async def test_values_of_a_cluster_are_found_on_every_shard(cluster: Valkey, valkey_cluster: LocalCluster) -> None:
    for number in range(30):
        await cluster.hset(f"user:{number}", mapping={"name": "Ann"})
    valkey_cluster.wait_until_well()
    draft = await learned(valkey_cluster.url)
    (user,) = draft.entries
    assert user.observed is not None and user.observed.keys == 30
    assert user.observed.shape == "fields: name text"


_MAKE = {"string": ("SET", "{}", "x"), "hash": ("HSET", "{}", "f", "x"), "list": ("RPUSH", "{}", "x"),
         "set": ("SADD", "{}", "x"), "zset": ("ZADD", "{}", "1", "x"), "stream": ("XADD", "{}", "*", "f", "x")}


async def test_every_room_of_ours_is_recovered_from_a_live_server(valkey: Valkey, valkey_server: LocalServer) -> None:
    declared: set[str] = set()
    commands: list[tuple[object, ...]] = []
    for declaration, raw_key in live_keys(registry(), random.Random(11), 12):
        declared.add(re.sub(r"\{[^{}]*\}", "{}", declaration.template.spelling))
        commands.append(tuple(raw_key if word == "{}" else word for word in _MAKE[declaration.server_type or ""]))
        if type(declaration.ttl).__name__ != "NoTtl":
            commands.append(("PEXPIRE", raw_key, 3_000_000))
    await valkey.call_block(commands)

    draft = await learned(valkey_server.url)

    found = {re.sub(r"\{[^{}]*\}", "{}", each.pattern) for each in draft.entries}
    assert len(declared) > 600
    assert len(found & declared) >= 0.95 * len(declared), sorted(declared - found)


async def test_key_with_an_empty_name_is_told_and_not_written_down(valkey: Valkey, valkey_server: LocalServer) -> None:
    await valkey.set("", "x")
    await valkey.set("motd", "x")

    draft = await learned(valkey_server.url)

    assert [each.pattern for each in draft.entries] == ["motd"]
    assert any("empty name" in note.says for note in draft.notes)

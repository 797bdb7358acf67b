"""One key, by an inventory that somebody wrote down."""

from keystead.inventory import Entry, Expiry, Fact, Inventory, Matcher, Rule, Source
from keystead.operations import explain_by_inventory, explain_by_inventory_alone

KEYS = Matcher(Inventory("redis-keys.md", (
    Entry("user:{id}", type=Fact("hash"), ttl=Fact(Expiry(Rule.AT_MOST, 60)), purpose=Fact("a user"),
          personal=Fact(True), writers=(Fact("web"),), section=("Users",), sources=(Source("redis-keys.md", 7),)),
    Entry("news:{id}", kind="channel"),
    Entry("bull:*", kind="opaque"),
)))


async def test_key_that_is_as_written_down(valkey):
    await valkey.hset("user:7", mapping={"name": "ann"})
    await valkey.expire("user:7", 50)

    told = await explain_by_inventory(valkey, KEYS, b"user:7")

    assert (told.exists, told.pattern, told.room, told.type) == (True, "user:{id}", "Users", "hash")
    assert (told.arguments, told.writers, told.personal) == ({"id": "7"}, ("web",), True)
    assert told.value == {"name": "ann"}
    assert told.ttl_verdict == "as declared"
    assert told.findings == ()
    assert told.declaration["sources"] == ["redis-keys.md:7"]


async def test_what_disagrees_is_found(valkey):
    await valkey.set("user:7", "ann")

    told = await explain_by_inventory(valkey, KEYS, b"user:7")

    assert told.findings == ("is a string, but is written down as hash", "no expiry, but it should be: at most 1 min")


async def test_key_that_nobody_wrote_down(valkey):
    await valkey.set("user:7:draft", "x")
    await valkey.set("other", "x")

    near = await explain_by_inventory(valkey, KEYS, b"user:7:draft")
    assert near.pattern is None and near.exists
    assert near.findings == (
        "redis-keys.md does not describe this key, unless it is meant as user:{id} with id = 7:draft",)
    told = await explain_by_inventory(valkey, KEYS, b"other")
    assert told.findings == ("redis-keys.md does not describe this key",)
    assert told.value == "x"


async def test_keys_of_a_library_are_not_judged(valkey):
    await valkey.set("bull:mail:id", "1")

    told = await explain_by_inventory(valkey, KEYS, b"bull:mail:id")

    assert (told.pattern, told.kind, told.findings) == ("bull:*", "opaque", ())


def test_without_a_server():
    told = explain_by_inventory_alone(KEYS, b"news:1")

    assert (told.kind, told.pattern, told.arguments, told.exists) == ("channel", "news:{id}", {"id": "1"}, False)

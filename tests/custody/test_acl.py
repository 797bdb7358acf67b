"""Users with the least they need: asked of the server, and tried."""

import pytest
import redis.asyncio
import redis.exceptions

from keystead.app import App
from keystead.custody import Service, check_acl, services, write_acl
from keystead.custody.acl import reaches_everything, rules
from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.inventory import Entry, Fact, Inventory, from_registry
from keystead.keys import Layout
from keystead.settings import Settings
from keystead.testing.server import LocalServer

from .shop import ANN, SHOP


def service(name: str) -> Service:
    return next(each for each in services(SHOP) if each.name == name)


def test_services_are_writers_and_readers() -> None:
    assert [each.name for each in services(SHOP)] == ["accounts", "shop", "mailer", "statistics"]
    assert [each.pattern for each in service("mailer").reads] == [
        "profile:{user_id}", "mails:to_send", "newsletter", "news:{topic}"]
    assert service("mailer").writes == ()
    with pytest.raises(Invalid, match="no writers or readers"):
        services(Inventory("x", ()))
    assert {each.user for each in services(SHOP, by_section=True)} >= {"profile", "mails"}


def test_line_names_keys_channels_and_commands() -> None:
    line = write_acl(service("mailer"))
    assert line.startswith("ACL SETUSER mailer reset on ><PASSWORD> %R~profile:* %R~mails:to_send %R~newsletter &news")
    assert "+@hash" in line and "+subscribe" in line and "+publish" not in line and line.endswith("-@dangerous")
    assert "{*}profile:*" in write_acl(service("mailer"), tagged=True)


async def test_server_agrees(server: Valkey) -> None:
    for each in services(SHOP):
        assert await check_acl(server, each, SHOP, tagged=True) == []
    users = await (await server.nodes())[0].run(("ACL", "USERS"), lambda reply: reply)
    assert not [user for user in users if user.startswith(b"keystead-check")]


async def test_server_agrees_about_every_room(valkey: Valkey) -> None:
    inventory = from_registry(App(Settings()).registry(Layout.PLAIN))
    for by_section in (False, True):
        found = services(inventory, by_section=by_section)
        assert len(found) > 5
        for each in found[:: 1 if by_section else 5]:
            assert await check_acl(valkey, each, inventory) == []


async def test_keys_of_unknown_type_open_nothing_else(valkey: Valkey) -> None:
    known, unknown = SHOP.entries[0], Entry("cart:{id}")
    inventory = Inventory("x", (known, unknown))
    for each in (Service("writer", inventory.entries, ()), Service("reader", (), inventory.entries)):
        assert await check_acl(valkey, each, inventory) == []
        await valkey.execute_command("ACL", "SETUSER", "probe", "reset", "on", *rules(each))
        for command in ("FUNCTION FLUSH", "FUNCTION LOAD x", "SCAN 0", "RANDOMKEY", "DBSIZE", "EVAL x 0"):
            said = await valkey.execute_command("ACL", "DRYRUN", "probe", *command.split())
            assert b"no permissions" in said, command
        for command in ("EXISTS cart:1", "GET cart:1", "HGETALL cart:1", "PTTL cart:1", "HGET profile:1 x"):
            assert await valkey.execute_command("ACL", "DRYRUN", "probe", *command.split()) == b"OK", command
    await valkey.execute_command("ACL", "DELUSER", "probe")


async def test_name_with_spaces_stays_one_rule_on_one_line(valkey: Valkey) -> None:
    evil = Entry("a b:\n+@all ~* {x}", type=Fact("string"), writers=(Fact("web\nshop"),))
    odd = Entry('q"uote\x1b[1m:{x}', type=Fact("string"), writers=(Fact("web\nshop"),))
    (each,) = services(Inventory("x", (evil, odd)))
    line = write_acl(each)
    assert line.isprintable() and "~a?b:?+@all?~" in line and " +@all" not in line
    assert await check_acl(valkey, each, Inventory("x", (evil, odd))) == []


def test_default_user_of_the_server_is_left_alone() -> None:
    assert Service("default", (), ()).user == "default-service"


def test_pattern_without_a_prefix_is_told() -> None:
    wide = Service("x", (Entry("{token}"), Entry("a:{b}")), (Entry("{a}{b}"),))
    assert reaches_everything(wide) == ["{token}", "{a}{b}"]


async def test_too_much_is_noticed(valkey: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keystead.custody.acl.rules", lambda service, **_: ["~*", "&*", "+@all"])
    troubles = await check_acl(valkey, service("mailer"), SHOP)
    assert {"mailer can write newsletter, and should not", "mailer can use FLUSHALL, and should not"} <= {*troubles}
    monkeypatch.setattr("keystead.custody.acl.rules", lambda service, **_: ["+get"])
    assert any(each.startswith("mailer cannot read newsletter: ") for each in await check_acl(
        valkey, service("mailer"), SHOP))


async def test_such_a_user_can_work_and_do_nothing_else(valkey: Valkey, valkey_server: LocalServer) -> None:
    await valkey.execute_command("ACL", "SETUSER", "mailer", "reset", "on", ">secret", *rules(service("mailer")))
    await valkey.execute_command("ACL", "SETUSER", "shop", "reset", "on", ">secret", *rules(service("shop")))
    await valkey.hset(f"profile:{ANN}", mapping={"name": "x"})
    try:
        mailer = redis.asyncio.Redis(port=valkey_server.port, username="mailer", password="secret")
        shop = redis.asyncio.Redis(port=valkey_server.port, username="shop", password="secret")
        async with mailer, shop:
            await shop.rpush("mails:to_send", "x")
            await shop.zadd("ranking", {"a": 1})
            async with shop.pipeline(transaction=True) as pipe:
                assert await pipe.sadd("newsletter", "a").expire("newsletter", 60).execute() == [1, True]
            assert await mailer.hgetall(f"profile:{ANN}") == {b"name": b"x"}
            assert await mailer.lrange("mails:to_send", 0, -1) == [b"x"]
            listener = mailer.pubsub()
            await listener.subscribe("news:sport")
            await listener.get_message(timeout=20)
            assert await shop.publish("news:sport", "x") == 1
            await listener.aclose()
            for refused in (
                mailer.lpop("mails:to_send"), mailer.hset(f"profile:{ANN}", "a", "b"), mailer.zrange("ranking", 0, -1),
                mailer.get("other"), mailer.flushall(), mailer.keys("*"), shop.set("session:1", "x"),
                shop.config_get("*"), mailer.publish("news:sport", "x"), shop.hset("names", "a", "b"),
            ):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    await refused
    finally:
        await valkey.execute_command("ACL", "DELUSER", "mailer", "shop")

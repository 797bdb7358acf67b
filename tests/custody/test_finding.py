"""What is found of a person, and of nobody else."""

from functools import partial

from keystead.custody import finding
from keystead.custody.finding import Finder, speaks_of_people
from keystead.custody.person import Person
from keystead.engine import Valkey, connect
from keystead.inventory import Entry, Fact, Inventory
from keystead.survey import Sparing

from .shop import ANN, BOB, MAIL, SHOP, fill


async def test_whole_keys_and_parts_are_found(server: Valkey) -> None:
    await fill(server)
    found = await Finder(server, SHOP, Person([ANN, MAIL])).search(all_values=True)
    told = {holding.key: (holding.whole, holding.ours, len(holding.parts)) for holding in found.holdings}
    assert told == {
        b"profile:" + ANN.encode(): (True, True, 0),
        b"session:711x9": (True, True, 1),
        b"packed:9": (True, True, 1),
        b"mails:to_send": (False, True, 3),
        b"newsletter": (False, True, 1),
        b"ranking": (False, True, 1),
        b"names": (False, True, 2),
        b"events": (False, True, 3),
        b"huge": (True, True, 1),
        b"page:7": (True, False, 1),
    }
    assert found.keys == await server.dbsize() and not found.unreadable and BOB


async def test_values_of_other_keys_are_left_unread_unless_wanted(valkey: Valkey) -> None:
    await fill(valkey)
    found = await Finder(valkey, SHOP, Person([ANN])).search(all_values=False)
    assert b"page:7" not in {holding.key for holding in found.holdings}
    everywhere = await Finder(valkey, SHOP, Person([ANN]), everywhere=True).search(all_values=False)
    assert all(holding.ours for holding in everywhere.holdings)
    assert b"page:7" in {holding.key for holding in everywhere.holdings}


async def test_name_of_an_unknown_key_is_a_holding(valkey: Valkey) -> None:
    await valkey.set(f"stray|{ANN}|x", "x")
    (found,) = (await Finder(valkey, SHOP, Person([ANN])).search(all_values=False)).holdings
    assert found.whole and not found.ours and found.pattern == "(not in the inventory)"


async def test_hash_with_a_field_for_the_person_is_theirs_whole(valkey: Valkey) -> None:
    orders = Inventory("x", (Entry("order:{number}", type=Fact("hash"), personal=Fact(True)),
                             Entry("seen:{day}", type=Fact("hash"), personal=Fact(True))))
    await valkey.hset("order:1", mapping={"user_id": ANN, "note": "for my mother"})
    await valkey.hset("seen:1", mapping={"12:00": ANN, "12:05": BOB})
    found = await Finder(valkey, orders, Person([ANN])).search(all_values=False)
    assert {holding.key: holding.whole for holding in found.holdings} == {b"order:1": True, b"seen:1": False}


def test_variables_and_marks_speak_of_people() -> None:
    assert speaks_of_people(Entry("cart:{user_id}")) and speaks_of_people(Entry("x:{y}", variables=(("y", "email"),)))
    assert speaks_of_people(Entry("x", personal=Fact(True)))
    assert not speaks_of_people(Entry("cart:{id}")) and not speaks_of_people(Entry("user_id:{x}", kind="opaque"))


async def test_search_ends_when_the_server_stays_slow(valkey: Valkey, fault_proxy, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    async with valkey.pipeline(transaction=False) as pipe:
        for number in range(5000):
            pipe.set(f"stray|{ANN}|{number}", "x")
        await pipe.execute()
    proxy = await fault_proxy()
    near = await connect(proxy.url)
    monkeypatch.setattr(finding, "Sparing", partial(Sparing, late_seconds=0.1, give_up_seconds=0.3))

    def slow_down(done: int, total: int) -> None:
        if done:
            proxy.delay(0.25)

    found = await Finder(near, SHOP, Person([ANN])).search(all_values=False, progress=slow_down)
    await near.aclose()
    assert "answers slowly" in found.partial and 0 < len(found.holdings) < 5000

"""No two links ever have the same code, however few codes there are."""

import asyncio
import random

import pytest

from keystead.errors import Invalid
from keystead.messaging.links.codes import Codes
from keystead.messaging.links.creator import Creator
from keystead.messaging.links.keys import BUFFER, LINK
from keystead.messaging.links.models import LinkWanted, Style
from keystead.messaging.links.persister import Persister

from .room import Room, on_sqlite


def scarce(seed: int) -> Codes:
    """Of every length only a few codes exist, so that nearly all collide."""
    rng = random.Random(seed)
    return Codes(token=lambda size: f"{size}x{rng.randrange(12)}")


@on_sqlite
async def test_colliding_short_codes_grow_and_none_is_handed_out_twice(wide_room: Room) -> None:
    room = wide_room
    await room.touch("tch_1")
    creators = [Creator(room.valkey, room.database, room.clock, codes=scarce(seed)) for seed in range(3)]
    handed_out: list[str] = []
    for _ in range(2):
        made = await asyncio.gather(*(
            creator.create([LinkWanted("tch_1", style=Style.SHORT)] * 5) for creator in creators
        ))
        handed_out += [link.code for links in made for link in links]
        for code in handed_out:
            await room.links.persist(code)
        room.clock.advance(1800)
        await Persister(room.valkey, room.clock, room.database).run()  # some are in the database now
    assert len(set(handed_out)) == len(handed_out) == 30
    assert any(not code.startswith("3x") for code in handed_out), "they had to grow"
    assert set(handed_out) == set(await room.stored_links())
    assert await room.counted("created") == {"created": 30}
    assert not await BUFFER.at().exists(room.valkey)


async def test_a_code_that_is_stored_meanwhile_is_withdrawn(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database says that a code is free, and takes it before the link is in the buffer."""
    await room.touch("tch_1")
    tokens = iter(["same", "other"])
    answers = iter([set(), {"same"}, set(), set()])

    async def codes_taken(*_: object) -> set[str]:
        return next(answers)

    monkeypatch.setattr("keystead.messaging.links.creator.codes_taken", codes_taken)
    creator = Creator(room.valkey, room.database, room.clock, codes=Codes(token=lambda _: next(tokens)))
    (link,) = await creator.create([LinkWanted("tch_1", style=Style.SHORT)])
    assert link.code == "other"
    assert not await LINK.at("same").exists(room.valkey)
    assert await BUFFER.at().range(room.valkey) == [("other", link.created_at)]
    assert await room.counted() == {"created": 1}


@on_sqlite
@pytest.mark.parametrize(("wanted", "says"), [
    (LinkWanted("tch_1", "a:b"), "letters"),
    (LinkWanted("tch_1", ""), "letters"),
    (LinkWanted(""), "touch_uid"),
    (LinkWanted("tch_1", page_extra={"x": "y" * 5000}), "characters"),
    (LinkWanted("tch_1", page_extra={"x": object()}), "JSON"),
])
async def test_a_link_that_could_not_be_counted_or_stored_is_refused(room: Room, wanted: LinkWanted, says: str) -> None:
    with pytest.raises(Invalid, match=says):
        await room.links.create_many([wanted])
    assert await room.counted() == {}


@on_sqlite
async def test_many_links_come_in_the_order_they_were_asked_for(wide_room: Room) -> None:
    wanted = [LinkWanted(f"tch_{place}", style=list(Style)[place % 3]) for place in range(20)]
    made = await wide_room.links.create_many(wanted)
    assert [link.touch_uid for link in made] == [each.touch_uid for each in wanted]

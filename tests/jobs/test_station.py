"""One queue of a worker: leftovers of lost replies are found, twins are told apart."""

import msgspec

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.jobs.keys import Queue
from keystead.jobs.models import JobRecord
from keystead.jobs.records import encode_record
from keystead.jobs.station import Ending, Station
from keystead.patterns.worklist_items import Item


def station(server: Valkey, queue: str = "") -> Station:
    return Station(server, SystemClock(), Queue(queue), "w", [])


def item(raw: bytes) -> Item[JobRecord]:
    return Item(msgspec.json.decode(raw, type=JobRecord), raw)


async def test_what_a_lost_reply_left_in_purgatory_is_found(server: Valkey) -> None:
    """Two equal records, one of which runs: the other one is the leftover."""
    here = station(server)
    twin, other = encode_record("t.a", {}, 1.0), encode_record("t.b", {}, 1.0, uid="u")
    await Queue().work.push_raw(server, twin, twin, other)
    taken = await here.take(3)
    here.running["x"] = taken.items[0]
    here.look_for_leftovers()
    found = await here.take(10)
    assert found.recovered and [one.raw for one in found.items] == [twin, other]
    for place, one in enumerate(found.items):
        here.running[str(place)] = one
    assert not (await here.take(10)).items


async def test_a_leftover_that_does_not_decode_is_buried(server: Valkey) -> None:
    here = station(server)
    await here.hands.purgatory.declaration.at("w").delete(server)
    await server.run(("RPUSH", here.hands.purgatory.name(server.layout), b"junk"), int)
    here.look_for_leftovers()
    assert not (await here.take(10)).items
    [letter] = await Queue().work.dead_letters(server)
    assert letter.raw == b"junk" and "does not decode" in letter.error


async def test_a_job_that_another_took_over_settles_nothing(server: Valkey) -> None:
    here = station(server)
    raw = encode_record("t.a", {}, 1.0, uid="u")
    stranger = item(raw)
    assert not await here.settle(stranger, Ending("failed", error="x"))
    assert not await here.put_off(stranger, 5.0, "x")
    await here.put_back([stranger])
    assert await Queue().work.dead_letters(server) == [] and await Queue().delayed.size(server) == 0
    assert await Queue().work.length(server) == 0

"""The list of objects to be purged, on one server and on a cluster."""

from keystead.engine import Valkey
from keystead.store.keys import FILES_PURGATORY, FILES_PURGE_FAILURES
from keystead.store.models import PurgeEntry
from keystead.store.purgatory import PutOff, put_off, put_on, spelled, strike_off, take_due

ONE, TWO = PurgeEntry(bucket="files", key="one"), PurgeEntry(bucket="files", key="two", expected=True)


async def scores(server: Valkey) -> dict[str, float]:
    return {entry.key: score for entry, score in await FILES_PURGATORY.at().range(server)}


async def test_only_what_is_due_is_taken_and_nobody_else_gets_it_for_five_minutes(server: Valkey) -> None:
    await put_on(server, ONE, 100.0)
    await put_on(server, TWO, 200.0)
    assert await take_due(server, now=99.0, most=5) == []
    assert await take_due(server, now=150.0, most=5) == [spelled(ONE)]
    assert await scores(server) == {"one": 450.0, "two": 200.0}
    assert await take_due(server, now=449.0, most=5) == [spelled(TWO)]
    assert await take_due(server, now=450.0, most=5) == [spelled(ONE)]


async def test_the_longest_due_come_first_and_no_more_than_asked_for(server: Valkey) -> None:
    for number in range(8):
        await put_on(server, PurgeEntry(bucket="b", key=f"{number}"), 100.0 - number)
    taken = await take_due(server, now=1000.0, most=5)
    assert [FILES_PURGATORY.codec.decode(raw).key for raw in taken] == ["7", "6", "5", "4", "3"]
    assert len(await take_due(server, now=1000.0, most=5)) == 3


async def test_an_object_is_listed_once_however_often_it_is_put_on(server: Valkey) -> None:
    assert [await put_on(server, ONE, at) for at in (1.0, 2.0, 1.5)] == [1, 0, 0]
    assert await scores(server) == {"one": 1.5}


async def test_each_failure_doubles_the_pause_up_to_a_day(server: Valkey) -> None:
    await put_on(server, ONE, 1.0)
    pauses = [(await put_off(server, spelled(ONE), now=1000.0)).seconds for _ in range(14)]
    assert pauses == [60 * 2**n for n in range(11)] + [86_400] * 3
    assert await scores(server) == {"one": 1000.0 + 86_400}
    assert await FILES_PURGE_FAILURES.at().all(server) == {spelled(ONE).decode(): 14}


async def test_what_was_struck_off_has_no_failures_and_gets_none(server: Valkey) -> None:
    await put_on(server, ONE, 1.0)
    await put_off(server, spelled(ONE), now=1.0)
    assert await strike_off(server, spelled(ONE)) is True
    assert await strike_off(server, spelled(ONE)) is False
    assert await put_off(server, spelled(ONE), now=1.0) == PutOff(0, 0)
    assert await scores(server) == {}
    assert await FILES_PURGE_FAILURES.at().all(server) == {}

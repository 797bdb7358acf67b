"""Whether an address is suppressed: one question for many, and a short memory."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from keystead.errors import Unavailable
from keystead.messaging.email.suppressed import Suppressed
from keystead.testing.clock import MovableClock


class Table:
    """Stands for the table of suppressed addresses."""

    def __init__(self, *listed: str) -> None:
        self.listed = set(listed)
        self.asked: list[set[str]] = []
        self.is_away = False

    async def emails(self, addresses: Iterable[str]) -> set[str]:
        self.asked.append(set(addresses))
        await asyncio.sleep(0)
        if self.is_away:
            raise Unavailable("the database is away")
        return set(addresses) & self.listed


def checking(table: Any, clock: MovableClock) -> Suppressed:
    return Suppressed(table, clock)


async def test_questions_of_one_moment_share_a_query() -> None:
    table = Table("b@example.com")
    suppressed = checking(table, MovableClock())
    found = await asyncio.gather(*(suppressed.has(f"{name}@Example.com") for name in "abcab"))
    assert found == [False, True, False, False, True]
    assert table.asked == [{"a@example.com", "b@example.com", "c@example.com"}]


async def test_a_free_address_is_believed_for_a_minute_and_a_listed_one_never() -> None:
    table, clock = Table("b@example.com"), MovableClock()
    suppressed = checking(table, clock)
    for _ in range(2):
        assert not await suppressed.has("a@example.com")
        assert await suppressed.has("b@example.com")
    assert table.asked == [{"a@example.com"}, {"b@example.com"}, {"b@example.com"}]
    table.listed.add("a@example.com")
    assert not await suppressed.has("a@example.com")
    suppressed.forget("A@example.com")
    assert await suppressed.has("a@example.com")
    table.listed.clear()
    assert not await suppressed.has("a@example.com")
    clock.advance(61)
    table.listed.add("a@example.com")
    assert await suppressed.has("a@example.com")


async def test_a_failure_reaches_everybody_who_asked_and_the_next_one_asks_again() -> None:
    table = Table()
    suppressed = checking(table, MovableClock())
    table.is_away = True
    found = await asyncio.gather(*(suppressed.has(f"{name}@example.com") for name in "ab"), return_exceptions=True)
    assert [type(each) for each in found] == [Unavailable, Unavailable]
    table.is_away = False
    assert not await suppressed.has("a@example.com")


async def test_whoever_is_cancelled_leaves_the_others_with_an_answer() -> None:
    suppressed = checking(Table(), MovableClock())
    first = asyncio.ensure_future(suppressed.has("a@example.com"))
    second = asyncio.ensure_future(suppressed.has("b@example.com"))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(Unavailable):
        await second
    assert not await suppressed.has("b@example.com")

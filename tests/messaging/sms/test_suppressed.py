"""Which numbers must not be texted: asked for together, remembered for a minute."""

import asyncio
from collections.abc import Iterable

import pytest

from keystead.errors import Unavailable
from keystead.messaging.sms.suppressed import REMEMBERED_SECONDS, Suppressed
from keystead.testing.clock import MovableClock


class Listed:
    """Stands for the table: what is asked for, and how often."""

    def __init__(self, *numbers: str) -> None:
        self.numbers, self.asked, self.away = set(numbers), [], False
        self.gate = asyncio.Event()
        self.gate.set()

    async def phones(self, numbers: Iterable[str]) -> set[str]:
        self.asked.append(sorted(numbers))
        await self.gate.wait()
        if self.away:
            raise Unavailable("the database is away")
        return self.numbers & set(numbers)


def made(*numbers: str) -> tuple[Suppressed, Listed, MovableClock]:
    listed, clock = Listed(*numbers), MovableClock(now=1000.0)
    return Suppressed(listed, clock), listed, clock  # type: ignore[arg-type]


async def test_questions_that_meet_share_one_query() -> None:
    suppressed, listed, _ = made("+1")
    numbers = [f"+{n}" for n in range(1, 101)]
    found = await asyncio.gather(*(suppressed.has(number) for number in (*numbers, "+1", "+2")))
    assert found == [True] + [False] * 99 + [True, False]
    assert len(listed.asked) == 1


async def test_a_free_number_is_believed_free_for_a_minute_and_a_listed_one_is_asked_for_again() -> None:
    suppressed, listed, clock = made("+1")
    assert await suppressed.has("+1") and not await suppressed.has("+2")
    listed.numbers = {"+2"}
    assert not await suppressed.has("+1") and not await suppressed.has("+2")
    clock.advance(REMEMBERED_SECONDS)
    assert await suppressed.has("+2") and not await suppressed.has("+1")
    listed.numbers.add("+1")
    assert not await suppressed.has("+1")
    suppressed.forget("+1")
    assert await suppressed.has("+1")


async def test_who_asks_while_a_query_runs_gets_an_answer_from_the_next() -> None:
    suppressed, listed, _ = made("+1")
    listed.gate.clear()
    first = asyncio.ensure_future(suppressed.has("+2"))
    while not listed.asked:
        await asyncio.sleep(0)
    second = asyncio.ensure_future(suppressed.has("+1"))
    await asyncio.sleep(0)
    listed.gate.set()
    assert (await first, await second) == (False, True) and listed.asked == [["+2"], ["+1"]]


async def test_a_database_that_is_away_is_said_to_all_and_asked_again() -> None:
    suppressed, listed, _ = made("+1")
    listed.away = True
    found = await asyncio.gather(*(suppressed.has(f"+{n}") for n in range(3)), return_exceptions=True)
    assert all(isinstance(error, Unavailable) for error in found)
    listed.away = False
    assert await suppressed.has("+1")


async def test_who_is_cancelled_while_asking_leaves_nobody_waiting() -> None:
    suppressed, listed, _ = made("+1")
    listed.gate.clear()
    first = asyncio.ensure_future(suppressed.has("+2"))
    while not listed.asked:
        await asyncio.sleep(0)
    second = asyncio.ensure_future(suppressed.has("+2"))
    third = asyncio.ensure_future(suppressed.has("+1"))
    await asyncio.sleep(0)
    first.cancel()
    for waiting in (second, third):
        with pytest.raises(Unavailable):
            await asyncio.wait_for(waiting, 20)
    listed.gate.set()
    assert await suppressed.has("+1")

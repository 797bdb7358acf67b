"""Live counts of wishes, and their changes by day."""

import pytest

from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.reminders.preferences import PreferenceCounts
from keystead.reminders.stats import PREFERENCE_CHANGES
from keystead.testing.clock import MovableClock

NOON = 1_670_270_400.0  # 2022-12-05 12:00 in Los Angeles


async def test_a_change_moves_one_person_and_is_counted_on_its_day(server: Valkey) -> None:
    wishes = PreferenceCounts(server, MovableClock(now=NOON))
    await wishes.joined()
    await wishes.joined()
    await wishes.changed("unset", "text-morning")
    await wishes.changed("text-morning", "text-morning")
    await wishes.changed("text-morning", "text-any")
    assert await wishes.now() == {
        "unset": 1, "text-any": 1, "text-morning": 0, "text-afternoon": 0, "text-evening": 0,
    }
    day = await PREFERENCE_CHANGES.read(server, 19331)
    assert {event: n for event, n in day.counts.items() if n} == {"unset:text-morning": 1, "text-morning:text-any": 1}
    await wishes.left("text-any")
    assert (await wishes.now())["text-any"] == 0


async def test_people_from_before_the_counting_never_make_a_count_negative(server: Valkey) -> None:
    wishes = PreferenceCounts(server, MovableClock(now=NOON))
    await wishes.changed("unset", "text-evening")
    assert await wishes.now() == {
        "unset": 0, "text-any": 0, "text-morning": 0, "text-afternoon": 0, "text-evening": 1,
    }


async def test_an_unknown_wish_is_refused_and_nothing_is_counted(server: Valkey) -> None:
    wishes = PreferenceCounts(server, MovableClock(now=NOON))
    with pytest.raises(Invalid, match="no preference 'text-noon'"):
        await wishes.changed("unset", "text-noon")
    assert not await server.dbsize() if server.layout.name == "PLAIN" else True
    assert set((await wishes.now()).values()) == {0}

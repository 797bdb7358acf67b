"""Which event a reminder is about."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from keystead.reminders.plans import ByEngagement, OneEvent, PersonFacts, Situation, nothing_known, time_of_day

ZONE = ZoneInfo("America/Los_Angeles")
MONDAY = datetime(2026, 3, 2, 9, tzinfo=ZONE).timestamp()
DAY = 86_400


def situation(
    facts: PersonFacts, *, joined_days_ago: float = 30, was_engaged: bool | None = None, now: float = MONDAY
) -> Situation:
    return Situation(now, ZONE, now - joined_days_ago * DAY, was_engaged, facts)


def test_one_event_is_for_everybody():
    assert OneEvent().choose(situation(PersonFacts())).slug == "daily_reminder"


@pytest.mark.parametrize(("joined", "ago", "slug"), [
    (30, 2.9, "daily_reminder_engaged"), (30, 3.1, "daily_reminder_disengaged"),
    (6, 0.9, "daily_reminder_engaged"), (6, 1.1, "daily_reminder_disengaged"),
])
def test_who_joined_lately_has_less_time_to_be_away(joined: float, ago: float, slug: str):
    facts = PersonFacts(last_took_part_at=MONDAY - ago * DAY)
    assert ByEngagement().choose(situation(facts, joined_days_ago=joined)).slug == slug


def test_the_sequence_starts_over_for_who_took_part_before_and_does_no_longer():
    away = PersonFacts(last_took_part_at=MONDAY - 10 * DAY)
    assert ByEngagement().choose(situation(away, was_engaged=True)).starts_over
    assert not ByEngagement().choose(situation(away, was_engaged=False)).starts_over
    assert not ByEngagement().choose(situation(away, was_engaged=None)).starts_over


def test_one_day_short_of_the_goal_has_words_of_its_own_and_others_on_sunday():
    facts = PersonFacts(goal_days=3, days_this_week=2)
    assert ByEngagement().choose(situation(facts)).slug == "daily_reminder_almost_goal"
    sunday = situation(facts, now=MONDAY + 6 * DAY)
    assert ByEngagement().choose(sunday).slug == "daily_reminder_almost_miss_goal"
    done = PersonFacts(goal_days=3, days_this_week=2, took_part_today=True)
    assert ByEngagement().choose(situation(done)).slug == "daily_reminder_disengaged"


@pytest.mark.parametrize(("hour", "word"), [
    (2, "evening"), (3, "morning"), (11, "morning"), (12, "afternoon"), (16, "afternoon"), (17, "evening"),
])
def test_hours_have_names(hour: int, word: str):
    assert time_of_day(datetime(2026, 3, 2, hour, 30, tzinfo=ZONE).timestamp(), ZONE) == word


async def test_without_a_provider_nothing_is_known():
    assert await nothing_known([]) == {}

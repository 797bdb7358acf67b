"""Reasons, each from the facts that make it the first one."""

from dataclasses import replace
from zoneinfo import ZoneInfo

from keystead.dates import UnixDate, day_starts_at
from keystead.messaging.sending import Standing
from keystead.messaging.touches import PastTouch
from keystead.reminders.effective import EVERY_DAY, TimeRange, Wish, effective
from keystead.reminders.why_reasons import Addresses, ChannelSeen, PersonSeen, Row, reasons
from keystead.settings import MessagingSettings, RemindersSettings

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = UnixDate(20514)  # 2 March 2026
MIDNIGHT = day_starts_at(MONDAY, BERLIN)
HOUR = 3600.0
FINE = Standing("email", "closed", 0, 0, False, None)
ROW = Row("udr_1", 8 * 3600, 10 * 3600, EVERY_DAY, 0.0)
SEEN = ChannelSeen("email", Addresses(1, 1), effective("email", {}), None, ROW, None, False, None, 0, FINE)
SETTINGS = RemindersSettings()


def at(hour: float, **facts: object) -> PersonSeen:
    return PersonSeen(MIDNIGHT + hour * HOUR, MONDAY, BERLIN, **{"joined_at": 0.0, **facts})  # type: ignore[arg-type]


def found(person: PersonSeen, seen: ChannelSeen) -> list[tuple[str, str]]:
    return [(each.code, each.tone) for each in reasons(person, seen, SETTINGS, MessagingSettings())]


def said(person: PersonSeen, seen: ChannelSeen) -> str:
    return reasons(person, seen, SETTINGS, MessagingSettings())[0].says


def test_nobody_is_written_to_without_an_address_or_with_a_bad_one():
    for addresses, code, words in (
        (Addresses(), "no_contact", "no email address"), (Addresses(2, 0, 2), "not_verified", "2 not verified"),
        (Addresses(1, 0, 0, 1), "turned_off", "turned off"), (Addresses(1, 0, 1, 0, 1), "suppressed", "said stop"),
    ):
        seen = replace(SEEN, addresses=addresses, row=None)
        assert found(at(9), seen) == [(code, "stops")] and words in said(at(9), seen)


def test_what_they_said_counts_and_everything_wrong_is_told():
    off = effective("email", {"email": Wish(0, TimeRange("morning"))})
    seen = replace(SEEN, wish=off, said_at=MIDNIGHT - 24 * HOUR, row=None)
    assert found(at(9), seen) == [("settings_off", "stops")]
    assert "since 00:00 on Sunday, 01 March" in said(at(9), seen)
    assert found(at(9, erased=True), replace(seen, addresses=Addresses())) == [
        ("erased", "stops"), ("no_contact", "stops"), ("settings_off", "stops")]


def test_the_day_walks_through_its_window():
    assert found(at(5), SEEN) == [("not_yet_due", "waits")] and "08:00 to 10:00" in said(at(5), SEEN)
    assert found(at(9), SEEN) == [("time_not_chosen", "waits")]
    due = replace(SEEN, due_at=MIDNIGHT + 8.5 * HOUR)
    assert found(at(8), due) == [("not_yet_due", "waits")] and "sent at 08:30" in said(at(8), due)
    assert found(at(9), due) == [("late", "waits")]
    assert found(at(12), SEEN) == [("missed", "stops")]
    assert found(at(12), replace(SEEN, row=replace(ROW, created_at=MIDNIGHT + 11 * HOUR))) == [
        ("came_too_late", "stops")]


def test_other_days_and_newcomers():
    sundays = replace(SEEN, row=replace(ROW, day_of_week_mask=1))
    assert found(at(9), sundays) == [("not_today", "stops")]
    assert "Mondays; their days are Sunday" in said(at(9), sundays)
    new = at(9, joined_at=MIDNIGHT + 7 * HOUR)
    assert found(new, SEEN) == [("joined_too_recently", "stops")] and "at 19:00" in said(new, SEEN)
    assert found(at(20, joined_at=MIDNIGHT + 7 * HOUR), SEEN) == [("joined_too_recently", "stops")], \
        "old enough by now, and not when their window was open"


def test_who_joined_after_their_window_is_told_so_and_not_that_they_are_too_new():
    late = at(12, joined_at=MIDNIGHT + 11 * HOUR)
    assert found(late, SEEN) == [("came_too_late", "stops")] and "when they joined, at 11:00" in said(late, SEEN)


def test_a_missing_row_is_a_job_that_does_not_run():
    assert found(at(9), replace(SEEN, row=None)) == [("not_derived", "waits")]


def test_what_was_sent_is_told_with_what_became_of_it():
    def touched(status: str, reason: str = "") -> ChannelSeen:
        touch = PastTouch("tch_1", MIDNIGHT + 8.2 * HOUR, status=status, reason=reason)
        return replace(SEEN, dealt_with=True, touch=touch, addresses=Addresses())

    assert found(at(9), touched("arrived")) == [("already_sent", "fine")]
    assert "08:12" in said(at(9), touched("arrived"))
    for reason in ("daily_cap", "quiet_hours", "same_content"):
        assert found(at(9), touched("unreachable", reason)) == [(reason, "stops")]
    assert found(at(9), touched("unreachable")) == [("unreachable", "stops")]
    assert found(at(9), touched("given up", "no_credit")) == [("given_up", "stops")]
    assert "no credit" in said(at(9), touched("given up", "no_credit"))
    assert found(at(9), touched("on its way")) == [("on_its_way", "waits")]
    assert found(at(9), replace(SEEN, dealt_with=True)) == [("skipped", "stops")]


def test_what_stands_in_the_way_of_one_that_waits_is_told_after_it():
    due = replace(SEEN, due_at=MIDNIGHT + 8.5 * HOUR, told_today=20)
    ill = Standing("email", "open", 20, 15, True, None)
    assert [code for code, _ in found(at(8), replace(due, standing=ill))] == [
        "not_yet_due", "daily_cap", "channel_paused", "channel_breaker"]
    rests = Standing("email", "probing", 20, 15, True, 30.0)
    assert [code for code, _ in found(at(8), replace(due, told_today=0, standing=rests))] == [
        "not_yet_due", "provider_rests", "channel_breaker"]

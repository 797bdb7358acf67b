"""What wishes come to on each channel."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.errors import Invalid
from keystead.reminders.effective import DAYS, EVERY_DAY, TimeRange, Wish, days_of, effective, mask_of

CHANNELS = ("email", "sms", "push")
PREFERRED = {"email": ("sms", "push"), "sms": ("email", "push"), "push": ("email", "sms")}


def wish(mask: int = EVERY_DAY, preset: str = "", start: int = 100, end: int = 200) -> Wish:
    return Wish(mask, TimeRange(preset) if preset else TimeRange("", start, end))


@pytest.mark.parametrize(("preset", "written", "texted"), [
    ("morning", (21600, 39600), (28800, 39600)), ("unspecified", (21600, 39600), (28800, 39600)),
    ("afternoon", (46800, 57600), (46800, 57600)), ("evening", (61200, 68400), (57600, 61200)),
])
def test_a_preset_differs_for_texts(preset: str, written: tuple[int, int], texted: tuple[int, int]) -> None:
    assert [TimeRange(preset).on(channel) for channel in CHANNELS] == [written, texted, written]


def test_without_any_wish_it_is_every_morning() -> None:
    for channel in CHANNELS:
        found = effective(channel, {})
        assert (found.start, found.end) == TimeRange("morning").on(channel)
        assert found.mask == EVERY_DAY and not found.is_real


def test_an_own_wish_holds_and_nobody_borrows_from_none() -> None:
    wishes = {"email": wish(0, "evening")}
    assert effective("email", wishes).mask == 0 and effective("email", wishes).is_real
    assert effective("push", wishes) == effective("push", {})


def test_a_borrowed_preset_is_evaluated_anew_and_an_explicit_time_is_copied() -> None:
    assert effective("sms", {"email": wish(7, "evening")}).start == 57600
    found = effective("sms", {"email": wish(7, "", 0, 100_000)})
    assert (found.start, found.end, found.mask, found.is_real) == (0, 100_000, 7, False)


def test_an_explicit_time_goes_before_a_preset_and_fewer_days_before_more() -> None:
    assert effective("push", {"email": wish(1, "evening"), "sms": wish(EVERY_DAY)}).mask == EVERY_DAY
    assert effective("push", {"email": wish(EVERY_DAY), "sms": wish(3)}).mask == 3
    assert effective("push", {"email": wish(3, "evening"), "sms": wish(3, "morning")}).start == 61200


_WISHES = st.dictionaries(st.sampled_from(CHANNELS), st.one_of(
    st.builds(wish, st.sampled_from((0, 1, 3, 127)), st.sampled_from(("morning", "evening"))),
    st.builds(wish, st.sampled_from((0, 1, 3, 127)), st.just(""), st.integers(0, 86399), st.just(100_000)),
))


@given(_WISHES)
def test_it_is_what_a_plain_search_finds(wishes: dict[str, Wish]) -> None:
    """Go through the rules in their order, and take the first that fits."""
    for channel in CHANNELS:
        found = effective(channel, wishes)
        expected = wishes.get(channel)
        if expected is None:
            rules = product((False, True), range(1, 8), PREFERRED[channel])
            expected = next((wishes[other] for preset, days, other in rules if other in wishes
                             and bool(wishes[other].range.preset) is preset
                             and wishes[other].mask.bit_count() == days), Wish(127, TimeRange("morning")))
        assert (found.mask, (found.start, found.end)) == (expected.mask, expected.range.on(channel))
        assert found.is_real == (channel in wishes)


def test_days_and_masks_are_two_spellings_of_the_same() -> None:
    assert mask_of(["Sunday"]) == 1 and mask_of(["Saturday", "Saturday"]) == 64 and mask_of(list(DAYS)) == 127
    assert all(mask_of(days_of(mask)) == mask for mask in range(128))


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (86400, 86400), (10, 9), (0, 172_800)])
def test_a_time_that_cannot_be_is_refused(start: int, end: int) -> None:
    with pytest.raises(Invalid, match="midnight"):
        TimeRange("", start, end)
    with pytest.raises(Invalid, match="no preset"):
        TimeRange("noon")


@given(st.one_of(st.sampled_from(("morning", "unspecified")).map(TimeRange), st.integers(0, 86399).map(
    lambda start: TimeRange("", start, start + 10))))
def test_what_is_stored_reads_the_same(time_range: TimeRange) -> None:
    assert TimeRange.of_json(time_range.to_json()) == time_range

import pytest

from keystead.lengths import in_one_unit, in_two_units, in_whole_units


@pytest.mark.parametrize(("seconds", "words"), [
    (0, "0 s"), (0.25, "250 ms"), (1, "1 s"), (1.5, "1.5 s"), (90, "90 s"), (60, "1 min"), (1800, "30 min"),
    (129_600, "36 h"), (86_400, "1 d"), (14 * 86_400, "14 d"), (1_234_567.0, "1234567 s"),
])
def test_whole_units_are_exact(seconds, words):
    assert in_whole_units(seconds) == words


@pytest.mark.parametrize(("seconds", "words"), [
    (0, "0 s"), (1, "1 s"), (90, "90 s"), (119.96, "120 s"), (120, "2 min"), (5400, "90 min"), (1_000_000, "11.6 d"),
])
def test_one_unit_is_about_right(seconds, words):
    assert in_one_unit(seconds) == words


@pytest.mark.parametrize(("seconds", "words"), [
    (-5, "0 s"), (0, "0 s"), (59, "59 s"), (60, "1 min"), (725, "12 min 5 s"), (86_405, "1 d"), (90_061, "1 d 1 h"),
    (273_600, "3 d 4 h"),
])
def test_two_units_leave_out_what_does_not_matter(seconds, words):
    assert in_two_units(seconds) == words

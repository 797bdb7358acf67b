"""Numbers that nobody has."""

import phonenumbers
from hypothesis import given
from hypothesis import strategies as st

from keystead.demo.places import PLACES, phone_number


@given(st.sampled_from(["us", "uk", "fr", "de", "se"]), st.integers(0, 20_000))
def test_numbers_are_possible_and_in_a_fictional_range(numbers: str, position: int) -> None:
    number = phone_number(numbers, position)
    assert phonenumbers.is_possible_number(phonenumbers.parse(number))
    assert "55501" in number or not number.startswith("+1")


def test_small_ranges_do_not_run_over() -> None:
    for numbers in ("us", "uk", "fr", "de", "se"):
        found = [phone_number(numbers, position) for position in range(1500)]
        assert len(set(found)) == len(found)


def test_cities_are_on_all_sides_of_the_world() -> None:
    assert len({place.zone for place in PLACES}) == len(PLACES) >= 20

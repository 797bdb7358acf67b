"""The people of the town: the same for one seed, different for another, and never anybody real."""

import re
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from keystead.demo.people import (
    DAYS,
    chance_of_return,
    comes_on,
    day_of,
    is_awake,
    local_hour,
    make_person,
    visiting_hour,
)
from keystead.demo.plan import MOST_PEOPLE

_seeds = st.integers(0, 2**31)
_numbers = st.integers(0, 5000)


@given(_seeds, _numbers)
def test_a_seed_gives_the_same_person_for_ever(seed: int, number: int) -> None:
    assert make_person(seed, number) == make_person(seed, number)


def test_known_people_stay_who_they_are() -> None:
    """A second start finds the people of the first, also after an upgrade: changing this makes strangers of them."""
    first = make_person(1, 0)
    assert first.provider_sub == "1-0"
    assert (first.given_name, first.city) == (make_person(1, 0).given_name, first.city)
    assert len({make_person(1, number).provider_sub for number in range(MOST_PEOPLE)}) == MOST_PEOPLE


@given(_seeds, _numbers)
def test_nobody_can_be_reached_in_earnest(seed: int, number: int) -> None:
    person = make_person(seed, number)
    assert person.email or person.phone or person.push_token
    assert not person.email or person.email.rpartition("@")[2] in ("example.com", "example.net", "example.org")
    fictional = r"\+1\d{3}55501\d\d|\+447700900\d{3}|\+3363998\d{4}|\+49171392\d{4}|\+4670174\d{4}"
    assert not person.phone or re.fullmatch(fictional, person.phone)
    assert not person.push_token or re.fullmatch(r"ExponentPushToken\[[A-Za-z0-9_-]{22}\]", person.push_token)
    ZoneInfo(person.zone)
    assert set(person.wish.days) <= set(DAYS) and person.wish.days


def test_addresses_are_nobody_elses() -> None:
    people = [make_person(7, number) for number in range(MOST_PEOPLE)]
    for addresses in ([p.email for p in people], [p.phone for p in people], [p.push_token for p in people]):
        given_ones = [address for address in addresses if address]
        assert len(given_ones) == len(set(given_ones))
    assert len({person.zone for person in people}) > 15


@given(st.sampled_from(["regular", "casual", "passer-by"]), st.integers(0, 400))
def test_fewer_come_back_the_longer_it_is(kind: str, day: int) -> None:
    chance = chance_of_return(kind, day)  # type: ignore[arg-type]
    assert 0 <= chance <= 1
    assert chance_of_return(kind, day + 1) <= chance  # type: ignore[arg-type]


def test_retention_has_a_shape() -> None:
    people = [make_person(3, number) for number in range(600)]
    came = [sum(comes_on(person, day) for person in people) / len(people) for day in (0, 1, 7, 30)]
    assert came[0] == 1.0
    assert 0.4 < came[1] < 0.8
    assert came[0] > came[1] > came[2] > came[3] > 0.1


@given(_seeds, _numbers, st.floats(1.6e9, 2.2e9), st.floats(0, 400 * 86400.0))
def test_days_are_those_where_they_live(seed: int, number: int, joined_at: float, later: float) -> None:
    person = make_person(seed, number)
    assert day_of(person, joined_at, joined_at) == 0
    assert abs(day_of(person, joined_at, joined_at + later) - later / 86400) < 1.1
    assert 0 <= local_hour(person, joined_at) < 24
    assert 7 <= visiting_hour(person, 3) <= 22.5
    assert is_awake(person, joined_at) == (7 <= local_hour(person, joined_at) < 23)

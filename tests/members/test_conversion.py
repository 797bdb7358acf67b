"""Which campaign gets the credit."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from keystead.members.conversion import Click, Conversions, Person

from .campaigns import Account

DAY = 86400.0


def day_of(at: float) -> int:
    return int(at // DAY)


def told(conversions: Conversions) -> dict[tuple[int, str, str], int]:
    return {(day, utm, name): amount for day, changes in conversions.by_day().items() for utm, name, amount in changes}


def test_a_later_link_moves_the_last_click() -> None:
    """Day 0 K clicks A; day 1 V clicks B; day 2 somebody joins elsewhere; day 3 K is theirs; day 4 V is theirs."""
    conversions, person = Conversions(day_of), Person(2.5 * DAY)
    a, b = Click(0.5 * DAY, "1", "A"), Click(1.5 * DAY, "2", "B")
    conversions.clicked(a, [])
    conversions.clicked(b, [])
    conversions.linked(person, [a], 3.5 * DAY)
    conversions.linked(person, [b], 4.5 * DAY)
    assert told(conversions) == {
        (0, "A", "visits"): 1, (1, "B", "visits"): 1,
        (3, "A", "holdover_last_click_signups"): 1, (3, "A", "holdover_any_click_signups"): 1,
        (4, "A", "holdover_last_click_signups"): -1, (4, "B", "holdover_last_click_signups"): 1,
        (4, "B", "holdover_any_click_signups"): 1,
    }


def test_a_click_after_joining_is_of_somebody_who_was_there_already() -> None:
    conversions, person = Conversions(day_of), Person(2.0 * DAY)
    conversions.clicked(Click(2.5 * DAY, "1", "A"), [person, Person(2.5 * DAY)])
    assert told(conversions) == {(2, "A", "visits"): 1, (2, "A", "preexisting"): 1, (2, "A", "any_click_signups"): 1,
                                 (2, "A", "last_click_signups"): 1}
    assert person.newest is None


def test_a_link_counts_every_click_of_the_device_and_an_older_last_click_stays() -> None:
    newest = Click(1.9 * DAY, "9", "Z")
    conversions, person = Conversions(day_of), Person(2.0 * DAY, newest)
    conversions.linked(person, [Click(1.0 * DAY, "1", "A"), Click(2.5 * DAY, "2", "A"), Click(3.1 * DAY, "3", "A")],
                       3.5 * DAY)
    assert told(conversions) == {(3, "A", "holdover_any_click_signups"): 1, (3, "A", "holdover_preexisting"): 1,
                                 (3, "A", "preexisting"): 1}
    assert person.newest == newest


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_changes_are_those_of_a_plain_account(seed: int) -> None:
    rng = random.Random(seed)
    account, conversions = Account(), Conversions(day_of)
    account.joined = {person: rng.uniform(0, 5) * DAY for person in "xyz"}
    people = {person: Person(joined_at) for person, joined_at in account.joined.items()}
    devices = "abcd"
    for number in range(rng.randint(1, 25)):
        at, device = rng.choice([rng.uniform(0, 6), rng.randint(0, 6)]) * DAY, rng.choice(devices)
        if rng.random() < 0.6:
            click = Click(at, f"{rng.randint(0, 99):02}-{number}", rng.choice(["A", "B", "C"]))
            account.click(device, click, day_of)
            conversions.clicked(click, [people[who] for who, on in sorted(account.links) if on == device])
        else:
            person = rng.choice("xyz")
            if (person, device) not in account.links:
                account.link(person, device, at, day_of)
                conversions.linked(people[person], account.clicks.get(device, ()), at)
        assert told(conversions) == account.nonzero()
    account.check_sums()

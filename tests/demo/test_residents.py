"""Who lives in the town, who comes today, and who does what when."""

import random

from keystead.demo.people import comes_on, day_of, make_person
from keystead.demo.reactions import Reaction
from keystead.demo.residents import MOST_WAITING, Agenda, Resident, Residents, Waiting

NOON = 1_763_208_000.0
DAY = 86_400.0


def _residents(count: int, joined_at: float) -> Residents:
    residents = Residents()
    for number in range(count):
        residents.add(Resident(make_person(1, number), f"user_{number}", joined_at))
    return residents


def test_people_are_found_by_any_of_their_addresses() -> None:
    residents = _residents(50, NOON)
    assert len(residents) == 50
    for resident in residents:
        for address in (resident.person.email, resident.person.phone, resident.person.push_token):
            assert not address or residents.at(address) is resident
    assert residents.at("nobody@example.com") is None


def test_over_a_whole_day_those_come_who_come_that_day_and_once() -> None:
    residents, came = _residents(60, NOON), set()
    for step in range(0, 2 * 86_400, 900):
        for resident in list(residents.coming(NOON + DAY + step)):
            day = day_of(resident.person, NOON, NOON + DAY + step)
            assert resident.last_day < day
            assert comes_on(resident.person, day)
            resident.last_day = day
            came.add((resident.person.number, day))
    assert len(came) > 30


def test_someone_here_is_somebody_who_came() -> None:
    residents = _residents(40, NOON)
    assert residents.someone_here(NOON, random.Random(1)) is None
    for resident in residents:
        resident.last_day = 0
    found = [residents.someone_here(NOON + 1, random.Random(seed)) for seed in range(20)]
    assert any(found)
    assert Residents().someone_here(NOON, random.Random(1)) is None


def test_the_agenda_keeps_order_and_does_not_grow_for_ever() -> None:
    agenda, resident = Agenda(), Resident(make_person(1, 0), "user_0", NOON)
    for after in (30.0, 10.0, 20.0):
        agenda.add(NOON + after, Waiting(resident, Reaction("click", after), "sms", ("/a/x",)))
    assert [one.reaction.after_seconds for one in agenda.due(NOON + 25, 10)] == [10.0, 20.0]
    assert len(agenda) == 1
    for _ in range(MOST_WAITING + 10):
        agenda.add(NOON, Waiting(resident, Reaction("click", 1), "sms", ()))
    assert len(agenda) == MOST_WAITING
    assert len(agenda.due(NOON + 100, 7)) == 7

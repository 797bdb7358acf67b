"""Tickets that end before their time."""

import pytest

from keystead.edge import USER_PURPOSE, Endings, TicketExpired, Tickets
from keystead.edge.keys import TICKETS_ENDED
from keystead.errors import Invalid
from keystead.testing.clock import MovableClock

KEEPS = 600.0
TEN_YEARS = 3650 * 86400  # as earlier versions gave to tokens


@pytest.fixture
def clock(valkey_server) -> MovableClock:
    return MovableClock([valkey_server], now=1_790_000_000.0)


class FixedClock:
    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now


async def opened(valkey, clock) -> tuple[Endings, Tickets]:
    endings = await Endings.open(valkey, clock, keeps_seconds=KEEPS)
    return endings, Tickets(bytes(32), clock, endings)


def counts(tickets: Tickets, text: str) -> bool:
    try:
        return bool(tickets.read((USER_PURPOSE, "session", "token"), text))
    except TicketExpired:
        return False


async def test_one_ticket_ends_here_at_once_and_elsewhere_at_the_next_look(valkey, clock):
    (here, tickets), (there, others) = await opened(valkey, clock), await opened(valkey, clock)
    one, other = (tickets.issue("session", "operator", lasts_seconds=60) for _ in range(2))
    await here.end(tickets.read("session", one).uid)
    assert not counts(tickets, one) and counts(tickets, other)
    assert counts(others, one)
    await there.refresh()
    assert not counts(others, one) and counts(others, other)


async def test_all_that_somebody_holds_ends_and_what_they_get_later_does_not(valkey, clock):
    endings, tickets = await opened(valkey, clock)
    before = [tickets.issue(USER_PURPOSE, "user-ada", lasts_seconds=60) for _ in range(2)]
    neighbour = tickets.issue(USER_PURPOSE, "user-bob", lasts_seconds=60)
    await endings.end_all(USER_PURPOSE, "user-ada")
    assert not any(counts(tickets, each) for each in before) and counts(tickets, neighbour)
    clock.advance(1)
    assert counts(tickets, tickets.issue(USER_PURPOSE, "user-ada", lasts_seconds=60))
    marks = [mark for mark, _ in await TICKETS_ENDED.at().range(valkey)]
    assert len(marks) == 1 and "ada" not in marks[0], "the key tells nobody who it was"


async def test_marks_last_as_long_as_the_ticket_could_and_then_go(valkey, clock):
    endings, tickets = await opened(valkey, clock)
    lasting = tickets.issue("session", "operator", lasts_seconds=KEEPS)
    await endings.end(tickets.read("session", lasting).uid)
    clock.advance(KEEPS - 1)
    await endings.refresh()
    assert not counts(tickets, lasting) and not counts((await opened(valkey, clock))[1], lasting)
    clock.advance(120)
    await endings.refresh()
    assert await TICKETS_ENDED.at().size(valkey) == 0
    assert not counts(tickets, lasting), "its own time is over by now"


async def test_token_is_remembered_for_as_long_as_one_could_last_and_sessions_go_before_it(valkey, clock):
    (here, tickets), (there, others) = await opened(valkey, clock), await opened(valkey, clock)
    token = tickets.issue("token", "prometheus", lasts_seconds=TEN_YEARS)
    neighbour = tickets.issue("token", "prometheus", lasts_seconds=TEN_YEARS)
    await here.end_token(tickets.read("token", token).uid)
    assert not counts(tickets, token) and counts(others, token)
    await there.refresh()
    assert not counts(others, token) and counts(others, neighbour)
    clock.advance(1)
    await here.end("a session")
    clock.advance(KEEPS + 120)
    await here.refresh()
    assert await TICKETS_ENDED.at().size(valkey) == 1, "the session is over, the token is not"
    clock.advance(TEN_YEARS - KEEPS - 122)
    await there.refresh()
    assert not counts(others, token) and counts(others, neighbour)
    assert not counts((await opened(valkey, clock))[1], token)
    clock.advance(86400)
    await there.refresh()
    assert await TICKETS_ENDED.at().size(valkey) == 0 and not counts(others, token)


async def test_what_is_known_is_not_read_again_and_what_came_late_is(valkey, clock, monkeypatch):
    (here, tickets), (there, others) = await opened(valkey, clock), await opened(valkey, clock)
    for number in range(5):
        await here.end_all(USER_PURPOSE, f"user-{number}")
    await there.refresh()
    read: list[str] = []
    remember = Endings._remember

    def told(self, mark, ended_at):
        read.append(mark)
        remember(self, mark, ended_at)

    monkeypatch.setattr(Endings, "_remember", told)
    clock.advance(100)
    await there.refresh()
    assert read == [], "nothing happened since"
    late = tickets.issue("session", "operator", lasts_seconds=500)
    behind = FixedClock(clock.now() - 110)  # of a host that ends one with an earlier time than those above
    await Endings(valkey, behind, keeps_seconds=KEEPS).end(tickets.read("session", late).uid)
    await there.refresh()
    assert not counts(others, late)


async def test_a_ticket_that_would_outlast_its_end_is_refused_at_the_start(valkey, clock):
    with pytest.raises(Invalid, match=r"http\.session_seconds"):
        await Endings.open(valkey, clock, keeps_seconds=366 * 86400)

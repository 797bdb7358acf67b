"""Tickets: signed, for one purpose, for a time, some of them once."""

import asyncio
import stat
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.clock import SystemClock
from keystead.edge.keys import TICKET_MOST_SECONDS, TICKET_USED
from keystead.edge.refusals import TicketExpired, TicketRefused, TicketTampered, TicketUsed
from keystead.edge.tickets import SECRET_FILE, Tickets, load_secret
from keystead.errors import Invalid, Unavailable

SECRET = bytes(range(32))


class HandClock:
    def __init__(self):
        self.at = 1_700_000_000.0

    def now(self):
        return self.at


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def tickets(clock):
    return Tickets(SECRET, clock)


def test_ticket_says_what_was_put_into_it(tickets, clock):
    ticket = tickets.read("upload", tickets.issue("upload", "file_1", lasts_seconds=60, scopes=("a", "b")))
    assert (ticket.purpose, ticket.subject, ticket.expires_at, ticket.scopes) == (
        "upload", "file_1", clock.at + 60, ("a", "b"),
    )


def test_two_tickets_for_the_same_thing_differ(tickets):
    assert tickets.issue("a", "b", lasts_seconds=60) != tickets.issue("a", "b", lasts_seconds=60)


def test_ticket_ends_at_its_time(tickets, clock):
    text = tickets.issue("upload", "x", lasts_seconds=60)
    clock.at += 59.9
    tickets.read("upload", text)
    clock.at += 0.1
    with pytest.raises(TicketExpired):
        tickets.read("upload", text)


def test_ticket_opens_no_other_door(tickets):
    with pytest.raises(TicketTampered):
        tickets.read("session", tickets.issue("login", "operator", lasts_seconds=60))


def test_ticket_of_another_installation_is_refused(tickets, clock):
    with pytest.raises(TicketTampered):
        tickets.read("login", Tickets(b"x" * 32, clock).issue("login", "operator", lasts_seconds=60))


@given(st.data())
def test_no_changed_ticket_is_accepted(data):
    tickets = Tickets(SECRET, HandClock())
    text = tickets.issue("login", "operator", lasts_seconds=60)
    place = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.characters().filter(lambda letter: letter != text[place]))
    with pytest.raises(TicketRefused):
        tickets.read("login", text[:place] + letter + text[place + 1 :])


@given(st.text())
def test_no_text_at_all_breaks_the_reader(text):
    with pytest.raises(TicketTampered):
        Tickets(SECRET, HandClock()).read("login", text)


@pytest.mark.parametrize("text", [".", "a.", ".a", "é.é", "\ud800.x", "A" * 10_000 + ".x"])
def test_odd_texts_are_refused(tickets, text):
    with pytest.raises(TicketTampered):
        tickets.read("login", text)


async def test_of_many_at_once_one_redeems_a_single_use_ticket(valkey):
    tickets = Tickets(SECRET, SystemClock())
    text = tickets.issue("login", "operator", lasts_seconds=60, once=True)

    async def try_once():
        try:
            return (await tickets.redeem(valkey, "login", text)).subject
        except TicketUsed:
            return None

    outcomes = await asyncio.gather(*(try_once() for _ in range(50)))
    assert [outcome for outcome in outcomes if outcome] == ["operator"]


async def test_mark_of_a_used_ticket_outlives_it_and_then_goes(valkey):
    tickets = Tickets(SECRET, SystemClock())
    text = tickets.issue("login", "operator", lasts_seconds=60, once=True)
    ticket = await tickets.redeem(valkey, "login", text)
    mark = TICKET_USED.at(sha256(ticket.uid.encode()).hexdigest())
    assert 30 < await mark.remaining_seconds(valkey) <= 61
    assert await valkey.keys() == [mark.name(valkey.layout)]


async def test_reusable_ticket_leaves_no_mark(valkey):
    tickets = Tickets(SECRET, SystemClock())
    text = tickets.issue("session", "operator", lasts_seconds=60)
    for _ in range(3):
        await tickets.redeem(valkey, "session", text)
    assert await valkey.dbsize() == 0


async def test_refused_ticket_is_not_used_up(valkey):
    tickets = Tickets(SECRET, SystemClock())
    text = tickets.issue("login", "operator", lasts_seconds=60, once=True)
    with pytest.raises(TicketTampered):
        await tickets.redeem(valkey, "session", text)
    await tickets.redeem(valkey, "login", text)


async def test_full_server_redeems_nothing_and_says_why(valkey):
    tickets = Tickets(SECRET, SystemClock())
    text = tickets.issue("login", "operator", lasts_seconds=60, once=True)
    await valkey.config_set("maxmemory", 1)
    try:
        with pytest.raises(Unavailable, match="memory full"):
            await tickets.redeem(valkey, "login", text)
    finally:
        await valkey.config_set("maxmemory", 0)
    await tickets.redeem(valkey, "login", text)


def test_single_use_ticket_cannot_outlive_its_mark(tickets):
    with pytest.raises(Invalid, match="lasts at most"):
        tickets.issue("login", "x", lasts_seconds=TICKET_MOST_SECONDS + 1, once=True)


def test_secret_is_made_once_and_belongs_to_its_owner(tmp_path):
    directory = tmp_path / "data"
    first = load_secret(directory)
    assert load_secret(directory) == first and len(first) == 32
    assert stat.S_IMODE((directory / SECRET_FILE).stat().st_mode) == 0o600
    assert [path.name for path in directory.iterdir()] == [SECRET_FILE]


async def test_processes_that_make_the_secret_at_once_get_the_same(tmp_path):
    secrets = await asyncio.gather(*(asyncio.to_thread(load_secret, tmp_path / "data") for _ in range(20)))
    assert len(set(secrets)) == 1


def test_secret_that_others_may_read_is_refused_with_the_mend(tmp_path):
    load_secret(tmp_path)
    (tmp_path / SECRET_FILE).chmod(0o644)
    with pytest.raises(Invalid, match="chmod 600"):
        load_secret(tmp_path)


def test_damaged_secret_is_refused(tmp_path):
    load_secret(tmp_path)
    (tmp_path / SECRET_FILE).write_bytes(b"short")
    with pytest.raises(Invalid, match="damaged"):
        load_secret(tmp_path)


def test_directory_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Invalid, match="file"):
        load_secret(tmp_path / "file" / "data")

"""Cookie or bearer token → caller."""

import asyncio
from collections.abc import Coroutine

import pytest

from keystead.clock import SystemClock
from keystead.edge import ANONYMOUS, Caller, CallerKind, Endings, Tickets, user_token
from keystead.operations import AdminKeys
from keystead.web.callers import OPERATOR, SESSION_PURPOSE, TOKEN_PURPOSE, cookie_name, ends_with_proof, identify

TICKETS = Tickets(bytes(32), SystemClock())
NAME = cookie_name(8400)


def cookie(value, name=NAME):
    return b"cookie", f"other=1; {name}={value}; more=2".encode()


def bearer(value, word="Bearer"):
    return b"authorization", f"{word} {value}".encode()


def session(**options):
    return TICKETS.issue(SESSION_PURPOSE, OPERATOR, **{"lasts_seconds": 60, **options})


def token(*scopes):
    return TICKETS.issue(TOKEN_PURPOSE, "prometheus", lasts_seconds=60, scopes=scopes)


def caller(*headers):
    return identify(headers, TICKETS, NAME).caller


def test_nothing_is_nobody():
    assert caller() == ANONYMOUS


def test_session_cookie_is_the_operator_until_it_ends():
    found = identify([cookie(session())], TICKETS, NAME)
    assert found.caller == Caller(CallerKind.OPERATOR, OPERATOR)
    assert found.by_cookie and found.expires_at is not None


@pytest.mark.parametrize("word", ["Bearer", "bearer", "BEARER"])
def test_token_is_a_program_with_its_scopes(word):
    found = identify([bearer(token("metrics"), word)], TICKETS, NAME)
    assert found.caller == Caller(CallerKind.PROGRAM, "prometheus", frozenset({"metrics"}))
    assert not found.by_cookie


def test_token_goes_before_cookie_and_a_bad_one_does_not_fall_back():
    assert caller(cookie(session()), bearer(token())).kind is CallerKind.PROGRAM
    assert caller(cookie(session()), bearer("nonsense")) == ANONYMOUS


@pytest.mark.parametrize("header", [
    cookie(""), cookie("nonsense"), cookie(session(lasts_seconds=-1)), cookie(session(), name="keystead_session_1"),
    cookie(token("keys")), bearer(session()), bearer(""), (b"authorization", b"Basic eDp5"), (b"cookie", b"\xff=\xfe"),
])
def test_what_does_not_count_is_nobody(header):
    assert caller(header) == ANONYMOUS


def test_a_token_of_a_person_is_that_person_until_it_ends():
    found = identify([bearer(user_token(TICKETS, "user_ada", lasts_seconds=60))], TICKETS, NAME)
    assert found.caller == Caller(CallerKind.USER, "user_ada") and found.expires_at is not None
    assert caller(bearer(user_token(TICKETS, "user_ada", lasts_seconds=-1))) == ANONYMOUS
    assert caller(cookie(user_token(TICKETS, "user_ada", lasts_seconds=60))) == ANONYMOUS


def test_for_whom_somebody_asks_is_written_down_wherever_the_header_stands():
    named = (b"x-user-sub", b" user_ada ")
    for headers in ([named, bearer(token("users"))], [bearer(token("users")), named]):
        assert identify(headers, TICKETS, NAME).caller.require_user() == "user_ada"
    assert caller(cookie(session()), named).acts_for == "user_ada"
    assert caller(named) == ANONYMOUS, "a name proves nothing"
    assert caller(named, named, bearer(token("users"))).acts_for == "user_ada user_ada"


def test_installations_on_one_machine_have_cookies_of_their_own():
    assert cookie_name(8400) != cookie_name(8401)


async def test_a_key_is_a_program_with_its_scopes_and_a_wrong_one_is_told(database):
    keys = await AdminKeys.open(database, SystemClock())
    made = await keys.create("shop", ["users"])
    found = identify([bearer(made.text)], TICKETS, NAME, keys)
    assert found.caller == Caller(CallerKind.PROGRAM, f"key:{made.id}", frozenset({"users"})) and not found.wrong_key
    wrong = identify([bearer(made.text + "x")], TICKETS, NAME, keys)
    assert wrong.caller == ANONYMOUS and wrong.wrong_key
    assert not identify([bearer("nonsense")], TICKETS, NAME, keys).wrong_key
    everything = await keys.create("town", ["*"])
    assert identify([bearer(everything.text)], TICKETS, NAME, keys).caller.may("jobs")


@pytest.mark.parametrize("by_cookie", [True, False])
async def test_log_out_and_a_token_taken_back_close_what_was_opened(valkey, monkeypatch, by_cookie):
    monkeypatch.setattr("keystead.web.callers.KEY_LOOK_SECONDS", 0.01)
    endings = await Endings.open(valkey, SystemClock(), keeps_seconds=60)
    tickets = Tickets(bytes(32), SystemClock(), endings)
    text = tickets.issue(SESSION_PURPOSE if by_cookie else TOKEN_PURPOSE, OPERATOR, lasts_seconds=60)
    found = identify([(b"cookie", f"c={text}".encode()) if by_cookie else bearer(text)], tickets, "c")
    assert found.ticket is not None
    opened = asyncio.Event()

    async def watch() -> None:
        async with asyncio.timeout(None) as limit:
            with ends_with_proof(limit, found, tickets, None):
                opened.set()
                await asyncio.Event().wait()

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(_ends(watch()))
        await opened.wait()
        await asyncio.sleep(0.1)
        assert not watching.done()
        await (endings.end if by_cookie else endings.end_token)(found.ticket.uid)
        await watching


async def _ends(work: Coroutine[None, None, None]) -> None:
    with pytest.raises(TimeoutError):
        await work

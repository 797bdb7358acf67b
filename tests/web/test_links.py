"""Links and tokens that let people and programs in."""

import socket
import stat
from urllib.parse import parse_qs, urlsplit

import pytest

from keystead.app import App
from keystead.edge import TOKEN_MOST_SECONDS, TicketUsed
from keystead.errors import Invalid, Unavailable
from keystead.settings import load_settings
from keystead.web.callers import LOGIN_PURPOSE, OPERATOR, TOKEN_PURPOSE, identify
from keystead.web.links import forget_address, login_link, program_token, read_address, token_id, write_address


@pytest.fixture
def app(tmp_path):
    return App(load_settings({"valkey.url": f"embedded://{tmp_path}"}, environment={}))


async def test_link_opens_the_running_installation_once(app, tmp_path, valkey):
    write_address(tmp_path, "http://127.0.0.1:4711")
    link = urlsplit(login_link(app))
    assert f"{link.scheme}://{link.netloc}{link.path}" == "http://127.0.0.1:4711/login"
    ticket = parse_qs(link.query)["ticket"][0]
    assert (await app.tickets().redeem(valkey, LOGIN_PURPOSE, ticket)).subject == OPERATOR
    with pytest.raises(TicketUsed):
        await app.tickets().redeem(valkey, LOGIN_PURPOSE, ticket)


def test_no_link_where_nothing_runs(app, tmp_path):
    with pytest.raises(Unavailable, match="keystead up"):
        login_link(app)
    write_address(tmp_path, "http://127.0.0.1:4711")
    forget_address(tmp_path, "http://127.0.0.1:4711")
    forget_address(tmp_path, "http://127.0.0.1:4711")
    with pytest.raises(Unavailable):
        read_address(tmp_path)


def test_first_who_answers_is_remembered_until_it_ends(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as first:
        address = f"http://127.0.0.1:{first.getsockname()[1]}"
        write_address(tmp_path, address)
        write_address(tmp_path, "http://127.0.0.1:4711")
        forget_address(tmp_path, "http://127.0.0.1:4711")
        assert read_address(tmp_path) == address
    write_address(tmp_path, "http://127.0.0.1:4711")  # the first was killed and could not take its note away
    assert read_address(tmp_path) == "http://127.0.0.1:4711"


def test_damaged_note_is_as_good_as_none(tmp_path):
    for content in ("", "[]", "{}", "null"):
        (tmp_path / "http.json").write_text(content)
        with pytest.raises(Unavailable):
            read_address(tmp_path)


def test_token_is_a_program_with_its_scopes(app, tmp_path):
    token = program_token(app, "prometheus", ("metrics",), lasts_seconds=60)
    caller = identify([(b"authorization", f"Bearer {token}".encode())], app.tickets(), "c").caller
    assert caller.subject == "prometheus" and caller.may("metrics") and not caller.may("keys")
    assert stat.S_IMODE((tmp_path / "ticket.secret").stat().st_mode) == 0o600


@pytest.mark.parametrize(("name", "scopes", "seconds"), [
    ("", ("keys",), 60), ("operator", ("keys",), 60), ("x", ("everything",), 60), ("x", ("keys",), 0),
    ("key:n2dackdfvhhu", ("keys",), 60),
    ("x", ("keys",), TOKEN_MOST_SECONDS + 1),
])
def test_tokens_that_make_no_sense_are_refused(app, name, scopes, seconds):
    with pytest.raises(Invalid):
        program_token(app, name, scopes, lasts_seconds=seconds)


def test_id_of_a_token_is_that_of_its_ticket_and_never_looks_like_an_option(app, tmp_path):
    token = program_token(app, "prometheus", ("metrics",), lasts_seconds=60)
    id = token_id(app, token)
    assert id == app.tickets().read(TOKEN_PURPOSE, token).uid and id.isalnum() and token_id(app, id) == id
    session = app.tickets().issue(LOGIN_PURPOSE, OPERATOR, lasts_seconds=60)
    for wrong in (session, token[:-1], id[:-1], "", "--help"):
        with pytest.raises(Invalid, match="nothing to take back"):
            token_id(app, wrong)

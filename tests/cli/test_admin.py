"""``keystead admin``: keys, sessions, tokens."""

import asyncio
import json

import pytest

from .command import keystead


def test_a_key_is_shown_once_listed_and_taken_back(tmp_path):
    scopes = ("--scope", "jobs", "--scope", "users")
    made = keystead("admin", "key", "create", "shop", *scopes, "--days", "30", cwd=tmp_path)
    assert made.code == 0, made.err
    text = made.out.strip()
    assert text.startswith("ksk_") and "only time" in made.err and text not in made.err
    id, _, secret = text.removeprefix("ksk_").partition("_")
    listed = keystead("admin", "key", "list", "--format", "json", cwd=tmp_path)
    (key,) = json.loads(listed.out)
    assert (key["id"], key["name"], key["scopes"], key["state"]) == (id, "shop", ["jobs", "users"], "active")
    assert round(key["expires_at"] - key["created_at"]) == 30 * 86400
    assert secret not in listed.out + keystead("admin", "key", "list", cwd=tmp_path).out
    assert keystead("admin", "key", "revoke", text, cwd=tmp_path).code == 0
    (key,) = json.loads(keystead("admin", "key", "list", "--format", "json", cwd=tmp_path).out)
    assert key["state"] == "revoked"


def test_what_makes_no_sense_is_one_line(tmp_path):
    for arguments in (("create", "shop", "--scope", "everything"), ("create", "shop", "--scope", "jobs", "--days", "0"),
                      ("revoke", "nobody")):
        assert keystead("admin", "key", *arguments, cwd=tmp_path).refused()


@pytest.mark.parametrize("arguments", [("list",), ("revoke", "nobody")])
def test_who_looks_for_keys_begins_no_installation(tmp_path, arguments):
    refused = keystead("admin", "key", *arguments, "--data", "nowhere", cwd=tmp_path).refused()
    assert "no installation in nowhere" in refused
    assert not list(tmp_path.iterdir())


def test_no_key_is_made_where_a_restore_has_not_ended(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "restoring.json").write_text("{}")
    refused = keystead("admin", "key", "create", "shop", "--scope", "jobs", "--data", "data", cwd=tmp_path).refused()
    assert "has not ended" in refused


async def test_all_sessions_are_ended_at_once(valkey, server):
    from keystead.clock import SystemClock
    from keystead.edge import Endings, TicketExpired, Tickets
    from keystead.web.callers import OPERATOR, SESSION_PURPOSE

    issued = Tickets(bytes(32), SystemClock()).issue(SESSION_PURPOSE, OPERATOR, lasts_seconds=600)
    assert keystead("admin", "end-sessions", "--url", server.url).code == 0
    tickets = Tickets(bytes(32), SystemClock(), await Endings.open(valkey, SystemClock(), keeps_seconds=600))
    with pytest.raises(TicketExpired):
        tickets.read(SESSION_PURPOSE, issued)
    await asyncio.sleep(1)  # hosts may differ by a moment
    assert tickets.read(SESSION_PURPOSE, tickets.issue(SESSION_PURPOSE, OPERATOR, lasts_seconds=600))


async def test_token_is_taken_back_by_its_id_and_by_itself(valkey, server, tmp_path):
    from keystead.app import App
    from keystead.clock import SystemClock
    from keystead.edge import Endings
    from keystead.settings import load_settings
    from keystead.web.callers import identify

    place = {"KEYSTEAD_INSTALLATION_SECRET": "s" * 32, "KEYSTEAD_VALKEY_URL": server.url}
    made = [keystead("token", "prometheus", "--scope", "metrics", cwd=tmp_path, **place) for _ in range(3)]
    _, by_itself, kept = texts = [each.out.strip() for each in made]
    assert not any(text in each.err for text in texts for each in made)
    id = made[0].err.partition("revoke-token ")[2].split()[0]
    for given in (id, by_itself):
        assert keystead("admin", "revoke-token", given, cwd=tmp_path, **place).code == 0
    for wrong in (kept + "x", "prometheus", id[1:]):
        assert "nothing to take back" in keystead("admin", "revoke-token", wrong, cwd=tmp_path, **place).refused()
    app = App(load_settings({}, environment=place))
    tickets = app.tickets(endings=await Endings.open(valkey, SystemClock(), keeps_seconds=600))
    assert [identify([(b"authorization", f"Bearer {text}".encode())], tickets, "c").caller.known for text in texts] \
        == [False, False, True]

"""``keystead admin key``."""

import json

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

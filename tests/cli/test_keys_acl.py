"""``keystead keys acl``, as a user types it."""

import json
from pathlib import Path

from keystead.testing.server import LocalServer

from .command import keystead
from .test_keys_erase import shop

__all__ = ["shop"]


def test_lines_are_written_and_checked(shop: Path, valkey_server: LocalServer) -> None:
    done = keystead("keys", "acl", "--check", valkey_server.tcp_url, cwd=shop)
    assert done.code == 0, done.err
    shop_line, mailer_line = (line for line in done.out.splitlines() if line.startswith("ACL SETUSER"))
    assert "~cart:*" in shop_line and "%R~visitors" in mailer_line and "cart" not in mailer_line
    assert "all 2 users can do what they need, and nothing else" in done.err


def test_one_service_as_json(shop: Path) -> None:
    told = json.loads(keystead("keys", "acl", "--only", "mailer", "--format", "json", cwd=shop).out)
    assert [each["user"] for each in told["users"]] == ["mailer"] and told["checked"] is False


def test_unknown_service_is_refused(shop: Path) -> None:
    assert "names no service mailman; it names shop, mailer" in keystead(
        "keys", "acl", "--only", "mailman", cwd=shop).refused()
    assert "--by takes service or section" in keystead("keys", "acl", "--by", "room", cwd=shop).refused()

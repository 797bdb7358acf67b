"""``keystead keys export``, as a user types it."""

import json
from pathlib import Path

from keystead.testing.server import LocalServer

from .command import keystead
from .test_keys_erase import ANN, shop

__all__ = ["shop"]


def test_export_is_json(shop: Path, valkey_server: LocalServer) -> None:
    done = keystead("keys", "export", "--person", ANN, valkey_server.tcp_url, cwd=shop)
    assert done.code == 0, done.err
    told = {each["key"]: each["value"] for each in json.loads(done.out)["keys"]}
    assert told == {f"cart:{ANN}": {"apples": "3"}, "visitors": [ANN]}
    assert "2 of 3 keys hold something of them" in done.err

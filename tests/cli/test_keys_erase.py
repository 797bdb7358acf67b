"""``keystead keys erase``, as a user types it."""

import json
from pathlib import Path

import pytest

from keystead.inventory import Entry, Fact, Inventory, write_inventory
from keystead.testing.server import LocalServer

from .command import keystead

ANN = "user-4711"


@pytest.fixture
def shop(tmp_path: Path, valkey_server: LocalServer) -> Path:
    """A folder with an inventory, and a server with Ann on it."""
    (tmp_path / "keystead.toml").write_text(write_inventory(Inventory("keystead.toml", (
        Entry("cart:{user_id}", type=Fact("hash"), purpose=Fact("what they want to buy"), writers=(Fact("shop"),)),
        Entry("visitors", type=Fact("set"), personal=Fact(True), writers=(Fact("shop"),), readers=(Fact("mailer"),)),
        Entry("page:{number}", type=Fact("string"), writers=(Fact("shop"),)),
    ))))
    valkey_server.ensure_running()
    valkey_server.call("FLUSHALL")
    valkey_server.call("HSET", f"cart:{ANN}", "apples", "3")
    valkey_server.call("SADD", "visitors", ANN, "user-1")
    valkey_server.call("SET", "page:1", "nothing about her")
    return tmp_path


def test_dry_run_says_what_would_be_done(shop: Path, valkey_server: LocalServer) -> None:
    done = keystead("keys", "erase", "--person", ANN, valkey_server.tcp_url, cwd=shop)
    assert done.code == 0, done.err
    assert f"cart:{ANN}" in done.out and "removed 1 member" in done.out
    assert "nothing was changed; add --really" in done.err
    assert valkey_server.call("EXISTS", f"cart:{ANN}") == 1


def test_erasure_writes_a_receipt_once(shop: Path, valkey_server: LocalServer) -> None:
    command = ("keys", "erase", "--person", ANN, "--really", "--receipt", "r.json", valkey_server.tcp_url)
    done = keystead(*command, "--format", "json", cwd=shop)
    assert done.code == 0, done.err
    receipt = json.loads((shop / "r.json").read_text())
    assert receipt == json.loads(done.out) and len(receipt["acts"]) == 2 and ANN not in done.out
    assert valkey_server.call("EXISTS", f"cart:{ANN}") == 0 and valkey_server.call("SCARD", "visitors") == 1
    assert "a receipt is never written over" in keystead(*command, cwd=shop).refused()


def test_leftovers_are_the_exit_code(shop: Path, valkey_server: LocalServer) -> None:
    valkey_server.call("SET", "page:1", f"about {ANN}")
    done = keystead("keys", "erase", "--person", ANN, "--really", valkey_server.tcp_url, cwd=shop)
    assert done.code == 1 and "Still there" in done.out and "page:1" in done.out
    everywhere = ("--really", "--everywhere", valkey_server.tcp_url)
    assert keystead("keys", "erase", "--person", ANN, *everywhere, cwd=shop).code == 0


def test_short_identifier_is_refused(shop: Path, valkey_server: LocalServer) -> None:
    assert "too short" in keystead("keys", "erase", "--person", "7", valkey_server.tcp_url, cwd=shop).refused()


def test_receipt_that_cannot_be_written_is_known_before_anything_is_erased(
    shop: Path, valkey_server: LocalServer
) -> None:
    done = keystead("keys", "erase", "--person", ANN, "--really", "--receipt", "nowhere/r.json",
                    valkey_server.tcp_url, cwd=shop)
    assert "cannot be written" in done.refused() and valkey_server.call("EXISTS", f"cart:{ANN}") == 1

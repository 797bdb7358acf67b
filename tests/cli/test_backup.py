"""``keystead backup`` and ``keystead restore`` as a user runs them."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest

from .command import environment, keystead


@pytest.fixture
def installation(tmp_path):
    """A data directory that was started once."""
    import asyncio

    from keystead.app import App
    from keystead.settings import load_settings

    async def start() -> None:
        app = App(load_settings({"valkey.url": f"embedded://{tmp_path / 'data'}"}, environment={}))
        async with app.running(start_server=True) as running:
            await running.valkey.set("mark", "1")

    asyncio.run(start())
    return tmp_path


def test_a_backup_is_taken_checked_and_restored(installation):
    taken = keystead("backup", "one.backup", "--data", "data", cwd=installation)
    assert taken.code == 0 and re.search(r"writes held +\d+\.\d ms", taken.out), taken
    assert (installation / "one.backup").stat().st_mode & 0o777 == 0o600
    checked = keystead("backup", "--check", "one.backup", cwd=installation)
    assert checked.code == 0 and "is whole and can be restored" in checked.out, checked
    restored = keystead("restore", "one.backup", "--data", "new", "--hold-sending", "--format", "json",
                        cwd=installation)
    assert restored.code == 0, restored
    told = json.loads(restored.out)
    assert told["sending_held"] and told["waiting"] == {"touches": 0, "push": 0, "sms": 0, "email": 0}
    again = keystead("restore", "one.backup", "--data", "new", cwd=installation)
    assert "not empty" in again.refused()


def test_sending_is_held_until_somebody_lets_it_go_on(installation):
    import asyncio

    from keystead.engine import EmbeddedServer, connect

    keystead("backup", "one.backup", "--data", "data", cwd=installation)
    keystead("restore", "one.backup", "--data", "new", "--hold-sending", cwd=installation)

    async def look() -> tuple[set[bytes], set[bytes]]:
        async with EmbeddedServer.start(installation / "new") as server:
            valkey = await connect(server.url)
            try:
                before = {raw async for raw in valkey.scan_iter("*:paused")}
                went_on = await asyncio.to_thread(keystead, "message", "resume", "all", "--url", server.url)
                assert went_on.code == 0 and "goes on: push, sms, email" in went_on.err
                return before, {raw async for raw in valkey.scan_iter("*:paused")}
            finally:
                await valkey.aclose()

    before, after = asyncio.run(look())
    assert before == {b"push:paused", b"sms:paused", b"email:paused"} and after == set()


def test_a_directory_keeps_the_newest(installation):
    for _ in range(2):
        done = keystead("backup", "--to", "kept", "--keep", "1", "--data", "data", "--format", "json", cwd=installation)
        assert done.code == 0, done
    told = json.loads(done.out)
    assert [str(each) for each in (installation / "kept").iterdir()] == [told["path"]]


def test_a_passphrase_seals_it(installation):
    (installation / "phrase").write_text("correct horse battery\n")
    (installation / "wrong").write_text("another horse battery\n")
    keystead("backup", "one.backup", "--data", "data", "--passphrase-file", "phrase", cwd=installation)
    assert keystead("backup", "--check", "one.backup", "--passphrase-file", "phrase", cwd=installation).code == 0
    for given in ((), ("--passphrase-file", "wrong"), ("--passphrase-file", "none")):
        refused = keystead("restore", "one.backup", "--data", "new", *given, cwd=installation).refused()
        assert "passphrase" in refused
    assert not (installation / "new").exists()


@pytest.mark.parametrize(("arguments", "says"), [
    (("backup",), "say where"),
    (("backup", "one", "--to", "dir"), "say where"),
    (("backup", "one", "--keep", "3"), "--keep"),
    (("backup", "--check", "--to", "dir"), "say which archive"),
    (("backup", "--check", "none.backup"), "cannot be read"),
    (("backup", "one", "--data", "nowhere"), "no server runs"),
    (("backup", "nowhere/one", "--data", "data"), "cannot be written"),
    (("backup", "--to", "data/keystead.sqlite", "--data", "data"), "cannot be made"),
    (("restore", "none.backup", "--data", "new"), "cannot be read"),
    (("restore", "one.backup", "--data", "one.backup", "--replace"), "is a file"),
    (("restore", "data/keystead.sqlite", "--data", "new"), "no backup of Keystead"),
    (("message", "resume", "pigeon"), "there is no channel"),
])
def test_what_cannot_be_done_is_one_line(installation, arguments, says):
    if "one.backup" in arguments:
        keystead("backup", "one.backup", "--data", "data", cwd=installation)
    assert says in keystead(*arguments, cwd=installation).refused()


def test_a_backup_of_nothing_makes_no_directory(installation):
    assert "no server runs" in keystead("backup", "--to", "new", "--data", "nowhere", cwd=installation).refused()
    assert [each.name for each in installation.iterdir()] == ["data"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_backup_that_is_stopped_leaves_nothing_half_written(installation, number):
    done = subprocess.Popen(
        [sys.executable, "-m", "keystead.cli", "backup", "one.backup", "--data", "data"], cwd=installation,
        env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while not list(installation.glob("*.backup*")) and time.monotonic() < deadline:
        if list(installation.glob(".one.backup*")):
            break
        time.sleep(0.005)
    done.send_signal(number)
    out, err = done.communicate(timeout=60)
    assert done.returncode in (0, 130), (out, err)  # it may have been faster
    assert b"Traceback" not in err
    left = {path.name for path in installation.iterdir()}
    assert left == ({"data", "one.backup"} if done.returncode == 0 else {"data"})

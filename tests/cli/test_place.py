"""Every command that reaches an installation is told which one in the same words."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from keystead.app import App
from keystead.cli.docs import commands, parameters
from keystead.cli.entry import run
from keystead.cli.place import DEMO_DIRECTORY, DEMO_PROGRAM, DataOption, UrlOption, embedded_url, with_demo_program
from keystead.engine import EmbeddedServer
from keystead.settings import load_settings
from keystead.store import Database

from .command import keystead

NEED_NO_INSTALLATION = {  # they look at files and declarations, or name their servers themselves
    "keystead", "keystead keys list", "keystead keys show", "keystead keys docs", "keystead keys code",
    "keystead keys import", "keystead keys asyncapi", "keystead keys diff", "keystead keys move", "keystead keys acl",
    "keystead stats list",
}


def test_all_commands_that_reach_an_installation_take_the_same_options() -> None:
    data, url = DataOption.__metadata__[0], UrlOption.__metadata__[0]
    for path, _, function in commands():
        found = [info for _, info, _, _ in parameters(function)]
        assert (data in found) == (path not in NEED_NO_INSTALLATION), path
        assert (url in found) == (path not in NEED_NO_INSTALLATION | {"keystead demo"}), path
        spelled = [info.default for info in found]
        assert spelled.count("--data") + spelled.count("--url") <= 2, path


@pytest.fixture(scope="module")
def beside_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working directory in which a demonstration runs, and nothing else."""
    folder = tmp_path_factory.mktemp("beside")
    started, stop, loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        async with EmbeddedServer.start(folder / DEMO_DIRECTORY):
            settings = load_settings({"valkey.url": embedded_url(folder / DEMO_DIRECTORY)}, environment={})
            async with Database.open(App(settings).database_url) as database:
                await database.migrate()
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert started.wait(60)
        yield folder
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()


REACHING = (
    "jobs list", "jobs ended", "jobs recurring", "jobs pause", "jobs resume", "jobs tail --count 1",
    "alerts list", "alerts test", "stats show touch_send", "stats rotate", "message dead",
    "message pause sms", "message resume sms",
    "keys top --wait 0", "keys learn", "keys watch --for 0.2", "keys explain jobs:hot",
    "keys export --user user-1234567", "keys erase --user user-1234567", "keys audit --fail-on never",
    "admin key list", "admin end-sessions", f"admin revoke-token {24 * 'a'}", "backup there.backup",
)


@pytest.mark.parametrize("line", REACHING)
def test_demo_is_reached_by_its_directory_and_told_of_where_nothing_runs(
    beside_demo: Path, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(beside_demo)
    assert run(line.split()) == 2
    refusal = capsys.readouterr().err
    assert refusal.count("\n") == 1 and refusal.endswith("add --data .keystead-demo to reach it\n"), refusal
    assert not (beside_demo / ".keystead").exists(), "a refusal begins no installation"
    assert run([*line.split(), "--data", ".keystead-demo"]) == 0, capsys.readouterr().err


def test_token_is_not_signed_for_an_installation_that_is_not_there(
    beside_demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(beside_demo)
    assert run(["token", "x", "--scope", "jobs"]) == 2
    assert "--data .keystead-demo" in capsys.readouterr().err
    assert run(["token", "x", "--scope", "jobs", "--data", ".keystead-demo"]) == 0


def test_flag_wins_over_set_environment_and_file(beside_demo: Path, tmp_path: Path) -> None:
    (tmp_path / "keystead.toml").write_text('[valkey]\nurl = "embedded://of-the-file"\n')
    demo = str(beside_demo / DEMO_DIRECTORY)
    shown = keystead("--set", "valkey.url=embedded://of-set", "config", "show", "valkey.url", "--data", demo,
                     cwd=tmp_path, KEYSTEAD_VALKEY_URL="embedded://of-the-environment")
    assert demo in shown.out and " flag " in shown.out


@pytest.mark.parametrize(("line", "says"), [
    ("jobs list --data here --url valkey://127.0.0.1:1", "--data is the directory"),
    ("keys top valkey://127.0.0.1:1 --data here", "named twice"),
    ("demo --url valkey://127.0.0.1:1", "HTTP address"),
    ("up --demo --url valkey://127.0.0.1:1", "leave out --url"),
])
def test_two_places_and_the_wrong_kind_are_refused(
    line: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(line.split()) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(("given", "both"), [
    ("", DEMO_PROGRAM), ("shop", f"shop,{DEMO_PROGRAM}"), (f"shop, {DEMO_PROGRAM}", f"shop, {DEMO_PROGRAM}"),
])
def test_program_of_a_demonstration_stands_beside_that_of_somebody(given: str, both: str) -> None:
    assert with_demo_program(given) == both

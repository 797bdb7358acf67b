import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from keystead.cli.place import DEMO_DEFAULTS
from keystead.cli.session import connected, run_settings, wait_for
from keystead.errors import Unavailable
from keystead.pace import PACE_FILE

from .command import keystead


def settings_of(*arguments: str, **flags: object):
    """What a command run with these root arguments reads."""
    found = []
    program = typer.Typer()

    @program.callback()
    def start(context: typer.Context, config: str = "") -> None:
        context.obj = Path(config) if config else None

    @program.command()
    def look(context: typer.Context) -> None:
        found.append(run_settings(context, **flags))

    @program.command()
    def other() -> None: ...

    CliRunner().invoke(program, [*arguments, "look"], catch_exceptions=False)
    return found[0]


def test_flags_win_and_missing_flags_do_not(monkeypatch):
    monkeypatch.setenv("KEYSTEAD_HTTP_PORT", "9100")
    assert settings_of(http_port=9200).http.port == 9200
    assert settings_of(http_port=None).http.port == 9100


def test_settings_file_of_the_command_line_is_read(tmp_path):
    (tmp_path / "here.toml").write_text("[http]\nlogin_link_seconds = 7\n")
    assert settings_of("--config", str(tmp_path / "here.toml")).http.login_link_seconds == 7


def test_server_of_the_settings_is_used(server, tmp_path):
    server.call("SET", "stray", "x")
    (tmp_path / "keystead.toml").write_text(f'[valkey]\nurl = "{server.url}"\n')
    assert json.loads(keystead("keys", "audit", "--format", "json", cwd=tmp_path).out)["keys_not_in_inventory"] == 1


def test_connection_is_closed_after_the_command(server):
    async def look() -> int:
        async with connected(settings_of(valkey_url=server.url)) as valkey:
            await valkey.ping()
            return len(await valkey.client_list())

    before = server.call("CLIENT", "LIST").count(b"\n")
    assert wait_for(look()) >= before
    assert server.call("CLIENT", "LIST").count(b"\n") == before


def test_what_the_work_raises_comes_through():
    async def fail() -> None:
        raise Unavailable("away")

    with pytest.raises(Unavailable):
        wait_for(fail())


def test_demonstration_has_defaults_of_its_own_and_what_somebody_set_wins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".keystead").mkdir()
    assert settings_of().origin("messaging.trace_seconds").kind == "default"
    (tmp_path / ".keystead" / PACE_FILE).write_text("{}")
    there = settings_of()
    for name, value in DEMO_DEFAULTS.items():
        assert (there.value(name), str(there.origin(name))) == (value, "demonstration")
    assert there.clock.speed == 1.0, "how fast it runs is said when it is begun"
    monkeypatch.setenv("KEYSTEAD_MESSAGING_TRACE_SECONDS", "77")
    assert settings_of(reminders_youngest_seconds=5).value("reminders.youngest_seconds") == 5
    there = settings_of()
    assert (there.messaging.trace_seconds, there.reminders.youngest_seconds) == (77, 0)
    assert there.origin("messaging.trace_seconds").kind == "environment"
    elsewhere = settings_of(valkey_url="valkey://localhost")
    assert elsewhere.origin("reminders.youngest_seconds").kind == "default"

import json
from pathlib import Path

import pytest

from keystead.settings import all_settings

from .command import keystead


def test_every_setting_is_shown_with_its_value_and_where_it_came_from(tmp_path: Path) -> None:
    (tmp_path / "keystead.toml").write_text("[http]\nport = 9999\n")
    outcome = keystead("--set", "http.session_seconds=60", "config", "show", "--format", "json", cwd=tmp_path,
                       KEYSTEAD_LOG_LEVEL="debug")
    facts = json.loads(outcome.out)
    assert list(facts) == [setting.name for setting in all_settings()]
    given = {name: one for name, one in facts.items() if one["from"] != "default"}
    assert {name: (one["value"], one["from"], one["where"]) for name, one in given.items()} == {
        "http.port": (9999, "file", "keystead.toml:2"),
        "http.session_seconds": (60, "flag", "flag"),
        "log.level": ("debug", "environment", "KEYSTEAD_LOG_LEVEL"),
    }
    assert facts["http.host"]["value"] == facts["http.host"]["default"] == "127.0.0.1"
    shown = keystead("config", "show", cwd=tmp_path)
    assert any(line.split()[:3] == ["http.port", "9999", "keystead.toml:2"] for line in shown.out.splitlines())
    assert "KEYSTEAD_HTTP_PORT" in shown.out


def test_one_name_one_section_and_only_what_was_changed(tmp_path: Path) -> None:
    (tmp_path / "keystead.toml").write_text("[http]\nport = 9999\n")
    one = json.loads(keystead("config", "show", "log.level", "embedded", "--format", "json", cwd=tmp_path).out)
    assert set(one) == {"log.level", "embedded.fsync", "embedded.memory_bytes", "embedded.port"}
    changed = keystead("config", "show", "--changed", "--format", "json", cwd=tmp_path)
    assert set(json.loads(changed.out)) == {"http.port"}
    assert "did you mean http.port" in keystead("config", "show", "http.prot", cwd=tmp_path).refused()


@pytest.mark.parametrize(("name", "value", "shown"), [
    ("KEYSTEAD_VALKEY_URL", "valkey://ann:hunter2@example:6380/1", "valkey://ann:***@example:6380/1"),
    ("KEYSTEAD_STORE_URL", "postgresql://ann:hunter2@db.example/app", "postgresql://***@db.example/app"),
    ("KEYSTEAD_STORE_FILES_URL", "s3://bucket?secret=hunter2", "s3://bucket?***"),
    ("KEYSTEAD_SMS_AUTH_TOKEN", "hunter2hunter2", "***"),
    ("KEYSTEAD_INSTALLATION_SECRET", "hunter2" * 8, "***"),
])
def test_what_is_secret_is_not_shown(tmp_path: Path, name: str, value: str, shown: str) -> None:
    for format in ("table", "json"):
        outcome = keystead("config", "show", "--format", format, cwd=tmp_path, **{name: value})
        assert outcome.code == 0
        assert "hunter2" not in outcome.out + outcome.err
        assert shown in outcome.out


def test_name_in_the_environment_that_is_no_setting_is_told_once(tmp_path: Path) -> None:
    outcome = keystead("config", "show", cwd=tmp_path, KEYSTEAD_HTTP_PROT="8500")
    assert outcome.code == 0
    assert outcome.err == ("keystead: KEYSTEAD_HTTP_PROT in the environment is no setting; "
                           "did you mean KEYSTEAD_HTTP_PORT?\n")


@pytest.mark.parametrize(("given", "says"), [("http.port", "NAME=VALUE"), ("http.port=x", "no whole number"),
                                             ("http.prot=1", "did you mean http.port")])
def test_set_takes_settings_alone(tmp_path: Path, given: str, says: str) -> None:
    assert says in keystead("--set", given, "config", "show", cwd=tmp_path).refused()


def test_file_that_is_broken_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "keystead.toml").write_text("[http\n")
    assert "not valid TOML" in keystead("up", cwd=tmp_path).refused()

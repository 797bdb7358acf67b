import json

from keystead.settings import all_settings

from .command import keystead


def test_every_setting_is_shown_with_its_value(tmp_path):
    (tmp_path / "keystead.toml").write_text("[http]\nport = 9999\n")
    values = json.loads(keystead("config", "show", "--format", "json", cwd=tmp_path, KEYSTEAD_LOG_LEVEL="debug").out)
    assert list(values) == [setting.name for setting in all_settings()]
    assert (values["http.port"], values["log.level"], values["http.host"]) == (9999, "debug", "127.0.0.1")
    shown = keystead("config", "show", cwd=tmp_path)
    assert any(line.split()[:3] == ["http.port", "9999", "set"] for line in shown.out.splitlines())
    assert "KEYSTEAD_HTTP_PORT" in shown.out


def test_password_in_an_address_is_not_shown():
    outcome = keystead("config", "show", KEYSTEAD_VALKEY_URL="valkey://ann:hunter2@example:6380/1")
    assert "hunter2" not in outcome.out + outcome.err
    assert "valkey://ann:***@example:6380/1" in outcome.out

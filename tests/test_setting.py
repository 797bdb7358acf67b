"""One setting: where its value came from, and names that are nearly right."""

from pathlib import Path

import pytest

from keystead.errors import Invalid
from keystead.setting import Origin, strangers
from keystead.settings import all_settings, load_settings


def test_every_value_says_where_it_came_from(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("# ours\n[http]\nhost = '10.0.0.1'\nport = 1\n\n[log]\n  level = 'debug'\n")
    environment = {"KEYSTEAD_LOG_LEVEL": "error"}
    resolved = load_settings({"http.port": 3, "store.url": None}, environment=environment, file=file)
    assert resolved.origin("http.host") == Origin("file", f"{file}:3")
    assert resolved.origin("http.port") == Origin("flag", "flag")
    assert resolved.origin("log.level") == Origin("environment", "KEYSTEAD_LOG_LEVEL")
    assert resolved.origin("store.url") == Origin("default")
    assert (resolved.value("http.host"), resolved.value("http.port")) == ("10.0.0.1", 3)


@pytest.mark.parametrize(("text", "line"), [
    ("http.port = 5\n", 1), ("\n[ http ]\n\n'port' = 5\n", 4), ("[log]\nlevel = 'info'\n[http]\nport=5 # here\n", 4),
    ("http = {port = 5}\n", 1), ("[sms]\nurl = ''\n[http]\n# port = 4\nport = 5\n", 5),
])
def test_line_of_the_file_is_found_however_it_is_written(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    resolved = load_settings(environment={}, file=file)
    assert (resolved.value("http.port"), resolved.origin("http.port").where) == (5, f"{file}:{line}")


@pytest.mark.parametrize(("flags", "says"), [
    ({"http.prot": 1}, "did you mean http.port"), ({"zz": 1}, "no setting zz"),
])
def test_flag_for_no_setting_is_refused(flags: dict[str, object], says: str) -> None:
    with pytest.raises(Invalid, match=says):
        load_settings(flags, environment={})


def test_names_that_only_look_like_settings_are_told_with_the_nearest_one() -> None:
    found = strangers(
        ["PATH", "KEYSTEAD_HTTP_PORT", "KEYSTEAD_HTTP_PROT", "KEYSTEAD_QQQ", "KEYSTEAD_PARENT"], all_settings(),
        ("KEYSTEAD_PARENT",),
    )
    assert found == {"KEYSTEAD_HTTP_PROT": "KEYSTEAD_HTTP_PORT", "KEYSTEAD_QQQ": ""}

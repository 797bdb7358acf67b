"""Settings: precedence, refusals, and that the tree documents itself."""

from pathlib import Path

import pytest

from keystead.errors import Invalid
from keystead.settings import Settings, all_settings, load_settings


def test_defaults_stand_when_nothing_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings(environment={}) == Settings()


def test_flags_win_over_environment_over_file(tmp_path: Path) -> None:
    file = tmp_path / "keystead.toml"
    file.write_text("[http]\nport = 1\nhost = 'from-file'\n[log]\nlevel = 'debug'\n")
    settings = load_settings(
        {"http.port": 3, "log.level": None},
        environment={"KEYSTEAD_HTTP_PORT": "2", "KEYSTEAD_HTTP_HOST": "from-environment"},
        file=file,
    )
    assert (settings.http.port, settings.http.host, settings.log.level) == (3, "from-environment", "debug")


def test_a_file_in_the_working_directory_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keystead.toml").write_text("[http]\nport = 4242\n")
    monkeypatch.chdir(tmp_path)
    assert load_settings(environment={}).http.port == 4242


@pytest.mark.parametrize(
    ("flags", "environment", "says"),
    [
        ({}, {"KEYSTEAD_HTTP_PORT": "eighty"}, "KEYSTEAD_HTTP_PORT: 'eighty' is no whole number"),
        ({}, {"KEYSTEAD_LOG_LEVEL": "loud"}, "is not one of debug, info, warning, error"),
        ({"http.port": -1}, {}, "must not be negative"),
        ({"http.port": 1.5}, {}, "is no whole number"),
    ],
)
def test_a_bad_value_is_refused_with_its_source(
    flags: dict[str, object], environment: dict[str, str], says: str
) -> None:
    with pytest.raises(Invalid, match=says):
        load_settings(flags, environment=environment)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[http]\nprot = 1\n", "there is no setting http.prot"),
        ("port = 1\n", "outside a table"),
        ("[http\n", "is not valid TOML"),
    ],
)
def test_a_bad_file_is_refused_with_its_name(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(Invalid, match=says) as caught:
        load_settings(environment={}, file=file)
    assert "mine.toml" in str(caught.value)


def test_a_missing_file_that_was_named_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="cannot be read"):
        load_settings(environment={}, file=tmp_path / "none.toml")


def test_every_setting_says_what_it_does() -> None:
    for setting in all_settings():
        assert setting.says, setting.name
        assert setting.environment_name == "KEYSTEAD_" + setting.name.replace(".", "_").upper()


def test_an_inventory_may_stand_in_the_same_file(tmp_path):
    file = tmp_path / "keystead.toml"
    file.write_text('[inventory]\nname = "ours"\n\n[[key]]\npattern = "a:{id}"\n\n[http]\nport = 8511\n')

    assert load_settings(environment={}, file=file).http.port == 8511

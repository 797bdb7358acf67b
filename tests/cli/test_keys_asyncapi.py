"""Channels for the tools that read AsyncAPI."""

import json
from pathlib import Path

import pytest
import yaml

from .command import keystead

KEYS = """
[[channel]]
pattern = "news:{id}"
purpose = "fresh news"
writers = ["press"]
readers = ["web"]

[[key]]
pattern = "user:{id}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "keystead.toml").write_text(KEYS)
    return tmp_path


def test_document_is_written_as_yaml_or_json(folder: Path) -> None:
    shown = keystead("keys", "asyncapi", cwd=folder)
    assert shown.code == 0, shown.err
    document = yaml.safe_load(shown.out)
    assert document["asyncapi"] == "3.0.0"
    assert document["channels"]["news_id"]["address"] == "news:{id}"

    written = keystead("keys", "asyncapi", "--format", "json", "-o", "api.json", "--title", "Newsroom", cwd=folder)
    assert written.err == "keystead: wrote 1 channels to api.json\n"
    assert json.loads((folder / "api.json").read_text())["info"]["title"] == "Newsroom"


def test_what_has_no_channel_is_refused(folder: Path) -> None:
    assert keystead("keys", "asyncapi", "--service", "nobody", cwd=folder).refused() == (
        "nobody writes or reads no channel; these do: press, web")
    (folder / "keystead.toml").write_text('[[key]]\npattern = "a"\n')
    assert "describes no channel" in keystead("keys", "asyncapi", cwd=folder).refused()


def test_service_of_channels_that_name_nobody_is_refused_with_the_reason(tmp_path):
    (tmp_path / "keystead.toml").write_text('[[channel]]\npattern = "orders:paid"\n')
    told = keystead("keys", "asyncapi", "--service", "billing", cwd=tmp_path)
    assert "does not say who writes or reads its channels" in told.refused()

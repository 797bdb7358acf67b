"""Everything that a user can set or type is written down, and what is written down is current."""

import inspect
import re

from keystead.cli import docs
from keystead.settings import all_settings

from .source import PROJECT

DOCS = PROJECT / "docs"
# The last word of a number's name: a unit, or the thing that is counted.
UNITS = {
    "seconds", "ms", "bytes", "items", "keys", "port", "wires", "requests", "second", "messages", "hour", "workers",
    "lanes", "replicas", "retries", "clicks", "share", "streak", "jobs", "speed", "files",
}


def test_generated_pages_are_current():
    assert docs.stale_pages(DOCS) == [], "run make docs"


def test_every_setting_says_what_it_means_and_has_a_line():
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    for setting in all_settings():
        assert setting.says and setting.says == setting.says.strip(), setting.name
        assert f"`{setting.name}`" in page and f"`{setting.environment_name}`" in page, setting.name


def test_every_number_among_the_settings_names_its_unit():
    bare = [setting.name for setting in all_settings()
            if setting.type in (int, float) and re.split(r"[._]", setting.name)[-1] not in UNITS]
    assert not bare


def test_every_command_and_option_says_what_it_does_and_is_documented():
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    commands = list(docs.commands())
    assert {"keystead", "keystead up", "keystead keys audit"} <= {path for path, _, _ in commands}
    silent = []
    for path, says, function in commands:
        assert f"## `{path}`" in page
        silent += [path] if not says.strip() else []
        described = {name for name, info, _, _ in docs.parameters(function) if info.help}
        wanted = set(inspect.signature(function).parameters) - {"context"}
        silent += [f"{path} {name}" for name in wanted - described]
    assert not silent, "commands or options without help"


def test_every_word_is_defined_once():
    words = re.findall(r"^\| ([a-z ]+) \| ", (DOCS / "words.md").read_text(encoding="utf-8"), re.MULTILINE)
    words = [word for word in words if word != "word"]
    assert len(words) > 20
    assert len(words) == len(set(words))

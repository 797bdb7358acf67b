"""One setting: how it is called, what may be given for it, and where a value came from."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keystead.errors import Invalid

ENVIRONMENT_PREFIX: Final = "KEYSTEAD_"
# An inventory of keys may stand in the same file: these tables are read by ``keystead.inventory``.
INVENTORY_TABLES: Final = (
    "inventory", "key", "keys", "channel", "channels", "opaque", "section", "sections", "note", "notes",
)

_KINDS: Final = {int: "whole number", float: "number", str: "text"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as documentation and error messages show it."""

    name: str
    type: type
    default: object
    says: str
    choices: tuple[str, ...]
    secret: bool

    @property
    def environment_name(self) -> str:
        return ENVIRONMENT_PREFIX + self.name.replace(".", "_").upper()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from: ``kind`` is default, demo, file, environment or flag; ``where`` is the place in it."""

    kind: str = "default"
    where: str = ""

    def __str__(self) -> str:
        return self.where or self.kind


@dataclass(frozen=True, slots=True)
class Given:
    """A value as it was given, and how messages call the place where it was."""

    value: object
    origin: Origin
    source: str


def checked(setting: Setting, given: Given) -> object:
    """The value as the setting's own type. Refuses with ``Invalid``, naming where it was given; shows no secret."""
    value, source = given.value, given.source
    shown = "the given value" if setting.secret else repr(value)
    try:
        if setting.type is int and isinstance(value, float | bool):
            raise ValueError
        converted: object = setting.type(value)
    except (TypeError, ValueError):
        raise Invalid(f"{source}: {shown} is no {_KINDS.get(setting.type, setting.type.__name__)}") from None
    if setting.choices and converted not in setting.choices:
        raise Invalid(f"{source}: {shown} is not one of {', '.join(setting.choices)}")
    if isinstance(converted, int | float) and converted < 0:
        raise Invalid(f"{source}: {shown} must not be negative")
    return converted


def from_file(path: Path, known: Mapping[str, Setting]) -> dict[str, Given]:
    """What a settings file gives. Refuses one that cannot be read, and names that are no settings."""
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise Invalid(f"settings file {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"settings file {path} is not valid TOML: {error}") from error
    found: dict[str, Given] = {}
    for section, table in document.items():
        if section in INVENTORY_TABLES:
            continue
        if not isinstance(table, dict):
            raise Invalid(f"{path}: {section} stands outside a table; settings live in tables such as [http]")
        for entry, value in table.items():
            name = f"{section}.{entry}"
            if name not in known:
                raise Invalid(f"{path}: there is no setting {name}{hint(name, known)}; docs/settings.md lists them all")
            line = _line(text, section, entry)
            found[name] = Given(value, Origin("file", f"{path}:{line}" if line else str(path)), f"{path}: {name}")
    return found


def from_environment(environment: Mapping[str, str], known: Mapping[str, Setting]) -> dict[str, Given]:
    """What the environment gives; names that are no settings are left to ``strangers``."""
    return {
        setting.name: Given(environment[setting.environment_name], Origin("environment", setting.environment_name),
                            setting.environment_name)
        for setting in known.values() if setting.environment_name in environment
    }


def from_flags(flags: Mapping[str, object], known: Mapping[str, Setting]) -> dict[str, Given]:
    """What flags give; ``None`` is nothing."""
    found: dict[str, Given] = {}
    for name, value in flags.items():
        if value is None:
            continue
        if name not in known:
            raise Invalid(f"there is no setting {name}{hint(name, known)}; docs/settings.md lists them all")
        found[name] = Given(value, Origin("flag", "flag"), f"flag for {name}")
    return found


def from_demo(defaults: Mapping[str, object]) -> dict[str, Given]:
    """What stands in place of the defaults in a demonstration."""
    return {name: Given(value, Origin("demo", "demonstration"), f"{name} of a demonstration")
            for name, value in defaults.items()}


def strangers(environment: Iterable[str], known: Iterable[Setting], also: Iterable[str] = ()) -> dict[str, str]:
    """Names in the environment that look like settings and are none, each with the nearest real name, or nothing."""
    real = {*(setting.environment_name for setting in known), *also}
    return {
        name: next(iter(difflib.get_close_matches(name, real, 1, 0.75)), "")
        for name in sorted(environment) if name.startswith(ENVIRONMENT_PREFIX) and name not in real
    }


def hint(name: str, known: Iterable[str]) -> str:
    """``; did you mean ...`` where some known name is like this one."""
    near = difflib.get_close_matches(name, known, 1, 0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _line(text: str, section: str, entry: str) -> int:
    """The line on which a setting stands in a TOML document; 0 if it is written in a way that is not looked for."""
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([\w.\"' -]+?)\s*\]", line):
            table = header[1].replace('"', "").replace("'", "")
        elif key := re.match(r"\s*([\w.\"'-]+(?:\s*\.\s*[\w\"'-]+)?)\s*=", line):
            name = re.sub(r"[\"'\s]", "", key[1])
            if (table, name) == (section, entry) or (not table and name in (f"{section}.{entry}", section)):
                return number
    return 0

"""``keystead config show``: the settings that commands in this place would use."""

from typing import TYPE_CHECKING

import typer

from keystead.cli.output import Format, FormatOption, printable, table, write, write_json
from keystead.cli.session import run_settings

if TYPE_CHECKING:
    from keystead.settings import Setting, Settings


def show(context: typer.Context, format: FormatOption = Format.TABLE) -> None:
    """Show every setting and its value here; passwords are not shown."""
    from keystead.settings import all_settings

    settings = run_settings(context)
    values = {setting.name: _value(settings, setting) for setting in all_settings()}
    if format is Format.JSON:
        write_json(values)
        return
    shown = table("setting", "value", "", "environment")
    for setting in all_settings():
        value = values[setting.name]
        changed = "" if value == setting.default else "set"
        shown.add_row(setting.name, printable(str(value)), changed, setting.environment_name)
    write(shown)


def _value(settings: "Settings", setting: "Setting") -> object:
    section, _, entry = setting.name.partition(".")
    value: object = getattr(getattr(settings, section), entry)
    if not setting.secret or value == setting.default:
        return value
    from keystead.engine import parse

    # The only secrets among the settings are passwords inside addresses.
    return parse(str(value)).display

"""``keystead config show``: the settings that commands in this place would use, and where each came from."""

from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.output import Format, FormatOption, note, printable, table, write, write_json
from keystead.cli.session import run_settings
from keystead.errors import NotFound

if TYPE_CHECKING:
    from keystead.setting import Setting
    from keystead.settings import Settings

HIDDEN = "***"


def show(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", show_default="all", help="A setting such as http.port, or a section such "
                                                                   "as http."),
    ] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only what is not as it is by default.")] = False,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show what is in force here, and where each value came from: a default, the file, the environment or a flag.

    Flags win over the environment, the environment over the file, the file over the defaults. Secrets and passwords
    are not shown.
    """
    settings = run_settings(context)
    wanted = _wanted(names or ())
    if changed:
        wanted = [setting for setting in wanted if settings.origin(setting.name).kind != "default"]
    if format is Format.JSON:
        write_json({setting.name: _facts(settings, setting) for setting in wanted})
        return
    if not wanted:
        note("nothing is set; everything is as it is by default")
        return
    shown = table("setting", "value", "from", "environment")
    for setting in wanted:
        value = shown_value(setting, settings.value(setting.name))
        shown.add_row(setting.name, printable(str(value)), printable(str(settings.origin(setting.name))),
                      setting.environment_name)
    write(shown)


def _wanted(names: "list[str] | tuple[str, ...]") -> "list[Setting]":
    from keystead.setting import hint
    from keystead.settings import all_settings

    everything = list(all_settings())
    if not names:
        return everything
    known = {setting.name for setting in everything} | {setting.name.partition(".")[0] for setting in everything}
    for name in names:
        if name not in known:
            raise NotFound(f"there is no setting or section {printable(name)}{hint(name, known)}; `keystead config "
                           "show` lists them all")
    return [setting for setting in everything
            if setting.name in names or setting.name.partition(".")[0] in names]


def _facts(settings: "Settings", setting: "Setting") -> dict[str, object]:
    origin = settings.origin(setting.name)
    return {
        "value": shown_value(setting, settings.value(setting.name)), "from": origin.kind, "where": origin.where,
        "default": setting.default, "environment": setting.environment_name, "says": setting.says,
    }


def shown_value(setting: "Setting", value: object) -> object:
    """The value, without what is secret in it: of an address the password, of anything else all."""
    if not setting.secret or value == setting.default:
        return value
    text = str(value)
    if not setting.name.endswith("url"):
        return HIDDEN
    from keystead.engine import parse
    from keystead.errors import KeysteadError

    try:
        return parse(text).display
    except KeysteadError:
        return _without_password(text)


def _without_password(url: str) -> str:
    """An address of another kind: scheme, host and path; a user's name and password, and the query, are hidden."""
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        return HIDDEN
    place, asked, _ = rest.partition("?")
    host, path = (place.rpartition("@")[2] if "@" in place else place), f"{HIDDEN}@" if "@" in place else ""
    return f"{scheme}://{path}{host}" + (f"?{HIDDEN}" if asked else "")

"""Which installation a command is for: ``--data`` and ``--url``, the same for every command that reaches one."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from keystead.errors import Invalid, KeysteadError, NotFound, Unavailable

if TYPE_CHECKING:
    from keystead.settings import Settings

DEMO_DIRECTORY = Path(".keystead-demo")
DEMO_PROGRAM = "keystead.demo.program"
# In place of the defaults in every demonstration. Nobody watches for half a day of the town until its people are old
# enough to be reminded; and traces last in real time, so its keys stay few however long it runs only if they are short.
DEMO_DEFAULTS = {
    "reminders.youngest_seconds": 0, "messaging.trace_seconds": 4 * 3600, "program.modules": DEMO_PROGRAM,
}
PLACE = "keystead.place"  # where the address that was given lies in the context

DataOption = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", show_default=".keystead, or setting valkey.url",
                 help="Data directory of an installation with a server of its own."),
]
UrlOption = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", show_default="setting valkey.url",
                 help="Server of the installation, such as valkey://localhost:6379; instead of --data."),
]


def placed(command: Callable[..., None], *, by_url: bool = True) -> Callable[..., None]:
    """The command with ``--data`` and ``--url`` behind its own options; ``run_settings`` then goes by them.

    Where nothing runs, its refusal also says how to reach a demonstration that does. ``by_url=False`` is for a command
    whose ``--url`` means something else.
    """
    options = {"place_data": DataOption, "place_url": UrlOption} if by_url else {"place_data": DataOption}

    @wraps(command)
    def run(
        context: typer.Context, place_data: Path | None = None, place_url: str | None = None, **given: object
    ) -> None:
        if place_data is not None and place_url is not None:
            raise Invalid("--data is the directory of the embedded server and --url names another server; give one of "
                          "them")
        context.meta[PLACE] = embedded_url(place_data) if place_data is not None else place_url
        try:
            command(context, **given)
        except Unavailable as error:
            if way := _way_to_demo(context):
                raise Unavailable(f"{error}; {way}") from error
            raise

    ours = inspect.signature(command)
    added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
             for name, kind in options.items()]
    run.__signature__ = ours.replace(parameters=[*ours.parameters.values(), *added])  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, **options}
    return run


def embedded_url(directory: Path) -> str:
    """The address of the server that an installation runs in its data directory."""
    return f"embedded://{quote(str(directory))}"


def given_url(context: typer.Context) -> str | None:
    """The address that ``--data`` or ``--url`` named, if one of them was given."""
    url: str | None = context.meta.get(PLACE)
    return url


def place_options(context: typer.Context) -> list[str]:
    """What a command hands on to processes that run the same command, so that they reach the same installation."""
    url = given_url(context)
    return [] if url is None else ["--url", url]


def is_demo(settings: "Settings") -> bool:
    """Whether these settings are of a place that holds a demonstration."""
    if not settings.valkey.url.startswith("embedded://"):
        return False
    from keystead.app import App
    from keystead.pace import is_demonstration

    try:
        return is_demonstration(App(settings).data_directory)
    except (KeysteadError, OSError):  # no directory can be called so, or looked into; whoever needs one says it
        return False


def with_demo_program(modules: str) -> str:
    """The modules of a program, as a setting has them, and that of the demonstration."""
    named = [name for name in modules.split(",") if name.strip()]
    return ",".join([*named, *(() if DEMO_PROGRAM in map(str.strip, named) else (DEMO_PROGRAM,))])


def refuse_beside_demo(context: typer.Context, settings: "Settings") -> None:
    """For commands that would begin a new installation: refuse where none was named and only a demonstration runs."""
    from keystead.app import App

    directory = App(settings).data_directory
    if not directory.exists() and (way := _way_to_demo(context)):
        raise NotFound(f"there is no installation in {directory}; {way}")


def _way_to_demo(context: typer.Context) -> str | None:
    """How to reach the demonstration that runs here, if no place was named and nothing runs in the usual one."""
    from keystead.cli.session import run_settings

    try:
        settings = run_settings(context)
        if given_url(context) is None and settings.valkey.url.startswith("embedded://") \
                and not _runs(settings.valkey.url) and _runs(embedded_url(DEMO_DIRECTORY)):
            return f"a demonstration runs here: add --data {DEMO_DIRECTORY} to reach it"
    except KeysteadError:
        pass
    return None


def _runs(url: str) -> bool:
    from keystead.engine import attach, parse

    try:
        attach(parse(url))
    except KeysteadError:
        return False
    return True

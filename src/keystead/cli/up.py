"""``keystead up``, and the ways in: ``keystead login-link`` and ``keystead token``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from keystead.cli.modules import users_program
from keystead.cli.output import console, emit, fact_grid, human_seconds, write
from keystead.cli.session import run_settings, wait_for
from keystead.errors import Conflict, Invalid, KeysteadError

if TYPE_CHECKING:
    from keystead.app import App
    from keystead.settings import Settings
    from keystead.web import Ready

DataOption = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", show_default=".keystead",
                 help="Directory of the embedded server and its data."),
]


def up(
    context: typer.Context,
    data: DataOption = None,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", show_default=False,
                     help="Use this server instead of starting one, such as valkey://localhost:6379."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", show_default="setting http.host, 127.0.0.1", help="Address to listen on."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", show_default="setting http.port, 8400",
                     help="Port to listen on; 0 takes a free one."),
    ] = None,
    program: Annotated[
        list[str] | None,
        typer.Option("--program", metavar="MODULE", show_default="setting program.modules",
                     help="Module of your program, such as shop.stats: its keys are shown, and what its families "
                          "count is rotated and charted. May be given several times."),
    ] = None,
    dashboard: Annotated[bool, typer.Option("--dashboard/--no-dashboard", help="Serve the dashboard as well.")] = True,
) -> None:
    """Run everything: server, HTTP API and dashboard, until Ctrl-C.

    Starts a Valkey of its own under the data directory unless a server is named, and prints a one-time link that
    opens the dashboard. Other commands find the running server by themselves.
    """
    settings = run_settings(
        context, valkey_url=_server(data, url), http_host=host, http_port=port,
        program_modules=",".join(program) if program else None,
    )
    _require_server_extra(dashboard)
    from keystead.app import App
    from keystead.telemetry import configure_logging

    configure_logging(settings.log.level, settings.log.format)
    app = App(settings, users_program(settings.program.modules))
    _refuse_second(app, settings)
    wait_for(_serve(app, settings, dashboard))


def _refuse_second(app: "App", settings: "Settings") -> None:
    """Say so if the same installation already runs; its port would be taken too, and that would mislead."""
    from keystead.engine import attach
    from keystead.web import login_link

    if not settings.valkey.url.startswith("embedded://"):
        return
    try:
        attach(app.data_directory)
        address = login_link(app).partition("/login")[0]
    except KeysteadError:
        return
    raise Conflict(f"keystead up already runs in {app.data_directory}, at {address}; `keystead login-link` prints a "
                   "link to it, and --data DIR --port 0 runs another one beside it")


async def _serve(app: "App", settings: "Settings", dashboard: bool) -> None:
    from keystead.web import serve

    messages = console(stderr=True)
    spinner = messages.status("Starting…")
    if messages.is_terminal:
        spinner.start()

    def announce(ready: "Ready") -> None:
        spinner.stop()
        _print_banner(app, settings, ready, dashboard)

    try:
        await serve(app, dashboard=dashboard, on_ready=announce)
    finally:
        spinner.stop()
    messages.print("Stopped.")


def _print_banner(app: "App", settings: "Settings", ready: "Ready", dashboard: bool) -> None:
    from rich.padding import Padding
    from rich.text import Text

    facts = [("server", _server_line(app, settings)), ("HTTP", f"{ready.url} (/health, /docs, /metrics)"),
             ("stop", "Ctrl-C")]
    write("", Text("Keystead is up", style="bold green"), "", Padding(fact_grid(facts), (0, 2), expand=False), "")
    if dashboard:
        lasts = human_seconds(settings.http.login_link_seconds)
        write(f"Dashboard link (works once, within {lasts}; `keystead login-link` prints another):", "")
        # Not wrapped: a link with line breaks in it cannot be copied.
        console().print(Text(f"{ready.login_url}\n", style="cyan"), soft_wrap=True)


def _server_line(app: "App", settings: "Settings") -> str:
    from keystead.engine import parse

    if settings.valkey.url.startswith("embedded://"):
        return f"Valkey in {app.data_directory} (data survives a restart)"
    return parse(settings.valkey.url).display


def login_link(context: typer.Context, data: DataOption = None) -> None:
    """Print a new one-time link to the dashboard of a running `keystead up`."""
    settings = run_settings(context, valkey_url=_server(data, None))
    _require_server_extra(False)
    from keystead.app import App
    from keystead.web import login_link as new_link

    emit(new_link(App(settings)) + "\n")


def token(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The program that will hold it, such as prometheus.")],
    scope: Annotated[
        list[str], typer.Option(help="What it may reach: blocks, jobs, keys, messaging, metrics, stats or users. "
                                     "Give it once for each.")
    ],
    days: Annotated[float, typer.Option(metavar="DAYS", help="How long it works.")] = 30,
    data: DataOption = None,
) -> None:
    """Print a bearer token for a program, such as the one that reads /metrics.

    Send it as `Authorization: Bearer TOKEN`. It cannot be taken back; it ends after its days.
    """
    if not 0 < days <= 3650:
        raise Invalid(f"a token works for a while: --days takes a number above 0 and up to 3650, not {days:g}")
    settings = run_settings(context, valkey_url=_server(data, None))
    _require_server_extra(False)
    from keystead.app import App
    from keystead.web import program_token

    emit(program_token(App(settings), name, tuple(scope), lasts_seconds=days * 86400) + "\n")


def _server(data: Path | None, url: str | None) -> str | None:
    if data is not None and url is not None:
        raise Invalid("--data is the directory of the embedded server and --url names another server; give one of them")
    return f"embedded://{quote(str(data))}" if data is not None else url


def _require_server_extra(dashboard: bool) -> None:
    from importlib.util import find_spec

    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise Invalid("the HTTP server is not installed; run: pip install 'keystead[dashboard]'")
    if dashboard and find_spec("nicegui") is None:
        raise Invalid("the dashboard is not installed; run: pip install 'keystead[dashboard]', or add --no-dashboard")

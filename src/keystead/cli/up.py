"""``keystead up``, and the ways in: ``keystead login-link`` and ``keystead token``."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keystead.cli.modules import users_program
from keystead.cli.output import console, emit, fact_grid, human_seconds, note, write
from keystead.cli.place import (
    DEMO_DEFAULTS,
    DEMO_DIRECTORY,
    embedded_url,
    given_url,
    refuse_beside_demo,
    with_demo_program,
)
from keystead.cli.session import run_settings, wait_for
from keystead.errors import Conflict, Invalid, KeysteadError

if TYPE_CHECKING:
    from keystead.app import App
    from keystead.settings import Settings
    from keystead.web import Beside, Ready

HostOption = Annotated[
    str | None,
    typer.Option("--host", metavar="ADDRESS", show_default="setting http.host, 127.0.0.1",
                 help="Address to listen on."),
]
PortOption = Annotated[
    int | None,
    typer.Option("--port", metavar="PORT", show_default="setting http.port, 8400",
                 help="Port to listen on; 0 takes a free one."),
]
ProgramOption = Annotated[
    list[str] | None,
    typer.Option("--program", metavar="MODULE", show_default="setting program.modules",
                 help="Module of your program, such as shop.jobs: its keys are shown, what its families count is "
                      "rotated and charted, and its jobs are run. May be given several times."),
]
_SANDBOX_SAYS = ("SNS asks to confirm a subscription", "a webhook was not reached")
DEMO_SPEED = 144.0  # a day lasts ten minutes


def up(
    context: typer.Context,
    host: HostOption = None,
    port: PortOption = None,
    program: ProgramOption = None,
    dashboard: Annotated[bool, typer.Option("--dashboard/--no-dashboard", help="Serve the dashboard as well.")] = True,
    demo: Annotated[
        bool, typer.Option("--demo", help="Fill it with life: a town of simulated people who get reminders, click "
                                          "links and come back or not. In a data directory of its own, .keystead-demo.")
    ] = False,
    speed: Annotated[
        float | None,
        typer.Option("--speed", metavar="FACTOR", show_default="144 with --demo: a day lasts ten minutes",
                     help="How many seconds of the town pass in a real one; only with --demo."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="NUMBER", show_default="1",
                     help="The same number gives the same town again; only with --demo."),
    ] = None,
) -> None:
    """Run everything: server, HTTP API, dashboard, workers and schedule, until Ctrl-C.

    Starts a Valkey of its own under the data directory unless a server is named, and prints a one-time link that
    opens the dashboard. Other commands find the running server by themselves. In production each part also runs
    alone: `keystead api` and `keystead worker`.
    """
    if not demo and (speed is not None or seed is not None):
        raise Invalid("--speed and --seed are for the town of --demo; add --demo")
    place = given_url(context)
    if demo and place is not None and not place.startswith("embedded://"):
        raise Invalid("--demo fills a server of its own; leave out --url")

    def read(modules: str | None) -> "Settings":
        return run_settings(
            context, valkey_url=embedded_url(DEMO_DIRECTORY) if demo and place is None else None, http_host=host,
            http_port=port, program_modules=modules, clock_speed=speed,
            demo={**DEMO_DEFAULTS, "clock.speed": DEMO_SPEED} if demo else None,
        )

    settings = read(",".join(program) if program else None)
    if demo and (modules := with_demo_program(settings.program.modules)) != settings.program.modules:
        settings = read(modules)  # beside the town's, the program that somebody named
    if not demo and settings.clock.speed != 1.0:
        raise Invalid(f"clock.speed is {settings.clock.speed:g}, and only the time of a demonstration runs faster; "
                      "leave it at 1, or add --demo")
    require_server_extra(dashboard)
    from keystead.app import App
    from keystead.telemetry import configure_logging

    configure_logging(settings.log.level, settings.log.format, expected=_of_the_demo if demo else None)
    app = App(settings, users_program(settings.program.modules))
    if demo and place is not None and settings.clock.speed != 1.0:
        _refuse_real(app.data_directory)
    _refuse_second(app, settings)
    beside = None
    if demo:
        from keystead.cli.up_demo import town

        beside = town(seed)
    wait_for(serve_with_banner(app, settings, dashboard, beside=beside))


def _of_the_demo(line: Mapping[str, Any]) -> bool:
    """Jobs of the demonstration fail on purpose, and its sandbox talks to itself, to the last second; on the terminal
    that would drown what the town says."""
    return str(line.get("job", "")).startswith("demo.") or line.get("event") in _SANDBOX_SAYS


def _refuse_real(directory: Path) -> None:
    """Refuse to let the days of an installation pass quickly whose people are real: that could not be undone."""
    from keystead.installation import MARK_FILE
    from keystead.pace import is_demonstration

    if (directory / MARK_FILE).exists() and not is_demonstration(directory):
        raise Invalid(f"{directory} holds an installation whose time is the real one; --demo fills a directory of its "
                      "own: leave out --data, or name a new one")


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
    raise Conflict(f"keystead up already runs in {app.data_directory}, at {address}; `keystead "
                   f"login-link{_where(app)}` prints a link to it, and --data DIR --port 0 runs another one beside it")


async def serve_with_banner(
    app: "App", settings: "Settings", dashboard: bool, *, works: bool = True, beside: "Beside | None" = None,
) -> None:
    """Serve until told to stop, with what is begun shown on a terminal, and a banner once requests are answered."""
    from keystead.web import serve

    messages = console(stderr=True)
    spinner = messages.status("Starting…")
    if messages.is_terminal:
        spinner.start()

    def announce(ready: "Ready") -> None:
        spinner.stop()
        _print_banner(app, settings, ready, dashboard, works)

    try:
        await serve(app, dashboard=dashboard, works=works, on_ready=announce, beside=beside,
                    on_step=lambda step: spinner.update(f"{step}…"))
    finally:
        spinner.stop()
    messages.print("Stopped.")


def _print_banner(app: "App", settings: "Settings", ready: "Ready", dashboard: bool, works: bool) -> None:
    from rich.padding import Padding
    from rich.text import Text

    facts = [("server", _server_line(app, settings)), ("HTTP", f"{ready.url} (/health, /docs, /metrics)")]
    if not works:
        facts.append(("work", "none here: jobs and messages are for `keystead worker`"))
    facts.append(("stop", "Ctrl-C"))
    write("", Text("Keystead is up", style="bold green"), "", Padding(fact_grid(facts), (0, 2), expand=False), "")
    if dashboard:
        lasts = human_seconds(settings.http.login_link_seconds)
        another = f"; `keystead login-link{_where(app)}` prints another"
        another = another if settings.valkey.url.startswith("embedded") else ""
        write(f"Dashboard link (works once, within {lasts}{another}):", "")
        # Not wrapped: a link with line breaks in it cannot be copied.
        console().print(Text(f"{ready.login_url}\n", style="cyan"), soft_wrap=True)


def _where(app: "App") -> str:
    """The option with which other commands find this installation; none where they look by themselves."""
    from keystead.app import DEFAULT_DATA_DIRECTORY

    return "" if str(app.data_directory) == DEFAULT_DATA_DIRECTORY else f" --data {app.data_directory}"


def _server_line(app: "App", settings: "Settings") -> str:
    from keystead.engine import parse

    if settings.valkey.url.startswith("embedded://"):
        return f"Valkey in {app.data_directory} (data survives a restart)"
    return parse(settings.valkey.url).display


def login_link(context: typer.Context) -> None:
    """Print a new one-time link to the dashboard of a running `keystead up`."""
    settings = run_settings(context)
    require_server_extra(False)
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
    days: Annotated[float, typer.Option(metavar="DAYS", help="How long it works, up to 365.")] = 30,
) -> None:
    """Print a bearer token for a program, such as the one that reads /metrics.

    Send it as `Authorization: Bearer TOKEN`. It ends after its days, or when it is taken back with
    `keystead admin revoke-token`.
    """
    settings = run_settings(context)
    refuse_beside_demo(context, settings)
    require_server_extra(False)
    from keystead.app import App
    from keystead.web import program_token, token_id

    app = App(settings)
    text = program_token(app, name, tuple(scope), lasts_seconds=days * 86400)
    emit(text + "\n")
    note(f"Kept nowhere. Take it back with: keystead admin revoke-token {token_id(app, text)}{_where(app)}")


def require_server_extra(dashboard: bool) -> None:
    """Refuse, with what to install, when the HTTP server or the dashboard is not there."""
    from importlib.util import find_spec

    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise Invalid("the HTTP server is not installed; run: pip install 'keystead[dashboard]'")
    if dashboard and find_spec("nicegui") is None:
        raise Invalid("the dashboard is not installed; run: pip install 'keystead[dashboard]', or add --no-dashboard")

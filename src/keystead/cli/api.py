"""``keystead api``: the HTTP server alone, for an installation whose jobs are run by ``keystead worker``."""

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.modules import users_program
from keystead.cli.output import note
from keystead.cli.place import place_options
from keystead.cli.session import common_options, run_settings, wait_for
from keystead.cli.up import HostOption, PortOption, ProgramOption, require_server_extra, serve_with_banner
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.app import App
    from keystead.settings import Settings


def api(
    context: typer.Context,
    host: HostOption = None,
    port: PortOption = None,
    program: ProgramOption = None,
    dashboard: Annotated[
        bool, typer.Option("--dashboard/--no-dashboard", help="Serve the dashboard as well.")
    ] = False,
    processes: Annotated[
        int, typer.Option(min=1, metavar="COUNT", help="How many processes share the port; more than one serve no "
                                                       "dashboard.")
    ] = 1,
) -> None:
    """Answer HTTP until SIGTERM or Ctrl-C, and work on nothing: jobs, calendar and messages are for `keystead worker`.

    What providers call us with is queued, links in messages lead on, and with the sandbox its outbox is shown and its
    webhooks are called from here. Several machines may do this behind a balancer; give them the same
    installation.secret and store.url.
    """
    settings = run_settings(
        context, http_host=host, http_port=port, program_modules=",".join(program) if program else None,
    )
    require_server_extra(dashboard)
    from keystead.jobs.processes import PARENT

    if processes > 1:
        if dashboard:
            raise Invalid("the dashboard keeps its pages in one process: leave out --processes, or serve it by another "
                          "`keystead api --dashboard` on a port of its own")
        command = place_options(context) + [part for name in program or () for part in ("--program", name)]
        raise typer.Exit(asyncio.run(_supervise(context, settings, processes, command)))
    from keystead.app import App
    from keystead.telemetry import configure_logging

    configure_logging(settings.log.level, settings.log.format)
    app = App(settings, users_program(settings.program.modules))
    if PARENT in os.environ:
        wait_for(_share(app))
    else:
        wait_for(serve_with_banner(app, settings, dashboard, works=False))


async def _supervise(context: typer.Context, settings: "Settings", processes: int, options: list[str]) -> int:
    """Keep so many processes of the command running, on a port that is held meanwhile."""
    from keystead.jobs.processes import Processes
    from keystead.web.serving import base_url, held

    command = [sys.executable, "-m", "keystead.cli", *common_options(context)]
    with held(settings.http) as port:
        command += ["api", "--host", settings.http.host, "--port", str(port), *options]
        note(f"{processes} processes answer at {base_url(settings.http.host, port)}; Ctrl-C stops")
        return await Processes(command, processes, say=note).run(signals=True)


async def _share(app: "App") -> None:
    """One of several processes on a port; ends with whoever started it."""
    from keystead.jobs.processes import stop_without_parent
    from keystead.web import serve

    stop = asyncio.Event()
    stop_without_parent(stop.set)
    await serve(app, dashboard=False, works=False, shares_port=True, stop=stop)

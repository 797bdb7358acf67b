"""``keystead demo``: a load of requests like the town's, or the town itself, against a running installation."""

import asyncio
import contextlib
import re
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.output import Format, FormatOption, console, note, printable, write, write_json
from keystead.cli.place import DEMO_DIRECTORY, embedded_url, given_url
from keystead.cli.session import run_settings, wait_for
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.demo.load import Outcome, Tally

KEY_VARIABLE = "KEYSTEAD_DEMO_KEY"
SCOPES = ("jobs", "messaging", "stats", "users")
KEY_SECONDS = 86_400.0
MOST_RATE = 20_000.0
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def demo(
    context: typer.Context,
    rate: Annotated[float, typer.Option("--rate", metavar="NUMBER", help="Requests a second.")] = 100.0,
    lasts: Annotated[str, typer.Option("--for", metavar="TIME", help="How long, such as 60s or 5m.")] = "30s",
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", show_default="the one that runs in the data directory",
                     help="Address of the installation, such as http://127.0.0.1:8400."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="KEY", envvar=KEY_VARIABLE, show_default="made for this run",
                     help="An admin key with the scopes jobs, messaging, stats and users."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="NUMBER", help="The same number does the same again.")] = 1,
    town: Annotated[
        bool, typer.Option("--town", help="Live as the town of `keystead up --demo` does, until Ctrl-C, instead.")
    ] = False,
    format: FormatOption = Format.TABLE,
) -> None:
    """Send requests like the town's to a running installation, at a steady rate, and report how they fared.

    People, reads, visits, messages and clicks are mixed as in the town. Requests leave when they are due, whether or
    not those before were answered, and their time counts from then. Exit code 1 if any of them failed. Against the
    installation of this data directory nothing needs to be given.
    """
    seconds = _seconds(lasts)
    if not 0 < rate <= MOST_RATE:
        raise Invalid(f"--rate takes a number of requests a second above 0 and up to {MOST_RATE:g}, not {rate:g}")
    address, secret = _reached(context, url, key)
    if town:
        wait_for(_live(address, secret, seed))
        return
    outcome = wait_for(_load(address, secret, rate=rate, seconds=seconds, seed=seed))
    from keystead.demo.load import as_dict

    if format is Format.JSON:
        write_json(as_dict(outcome))
    else:
        _show(outcome)
    if outcome.errors:
        raise typer.Exit(1)


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    seconds = float(found[1]) * _UNITS[found[2] or "s"] if found else 0.0
    if not 0 < seconds <= 24 * 3600:
        raise Invalid(f"--for takes a time such as 60s, 5m or 1h, up to a day, not {printable(text)}")
    return seconds


def _reached(context: typer.Context, url: str | None, key: str | None) -> tuple[str, str]:
    """Where to send, and with what; whoever may read the data directory needs neither to be told."""
    if url is not None and not url.startswith(("http://", "https://")):
        raise Invalid(f"--url takes the HTTP address of an installation, such as http://127.0.0.1:8400, not "
                      f"{printable(url)}; --data DIR names one on this machine")
    if url is not None and key is not None:
        return url, key
    from importlib.util import find_spec

    if find_spec("fastapi") is None:
        raise Invalid("the HTTP server is not installed here, so give --url and --key of one that runs elsewhere")
    from keystead.app import App
    from keystead.errors import NotFound, Unavailable
    from keystead.web.links import program_token, read_address

    others = [] if given_url(context) is not None else [embedded_url(DEMO_DIRECTORY)]
    apps = [App(run_settings(context, valkey_url=place)) for place in (None, *others)]
    for app in apps:
        try:
            address = url or read_address(app.data_directory)
        except Unavailable:
            continue
        return address, key or program_token(app, "demo", SCOPES, lasts_seconds=KEY_SECONDS)
    places = " or ".join(str(app.data_directory) for app in apps)
    raise NotFound(f"nothing runs in {places}; start it with: keystead up --demo, or give --url and --key")


async def _live(address: str, key: str, seed: int) -> None:
    """Until Ctrl-C or SIGTERM; either lets the town put right what it told the providers to do wrong."""
    from keystead.demo import Client, Refusal, Town
    from keystead.jobs.processes import stop_without_parent

    loop, living = asyncio.get_running_loop(), asyncio.current_task()
    assert living is not None
    with contextlib.suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGTERM, living.cancel)

    def leave() -> None:
        living.cancel()

    stop_without_parent(leave)  # whose server was killed ends with it
    try:
        async with Client(address, key) as client:
            await Town(client, seed, lambda line: note(f"town: {printable(line)}")).live()
    except asyncio.CancelledError:
        return
    except Refusal as refusal:
        raise Invalid(f"the town cannot live here: {refusal}") from None


async def _load(address: str, key: str, *, rate: float, seconds: float, seed: int) -> "Outcome":
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from keystead.demo import Away, Client, Refusal
    from keystead.demo.load import Load, prepare

    try:
        async with Client(address, key) as client:
            ground = await prepare(client, seed)
    except (Away, Refusal) as error:
        raise Invalid(f"the load cannot begin at {printable(address)}: {error}") from None
    if not ground.links:
        note("nobody was sent a link yet, so nobody clicks; reads, visits and messages make up the whole load")
    load, screen = Load(address, key, ground, rate=rate, seconds=seconds, seed=seed), console(stderr=True)
    if not screen.is_terminal:
        return await load.run()
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as progress:
        task = progress.add_task("sending", total=seconds, told="")

        def beat(so_far: "Outcome") -> None:
            told = f"{so_far.sent:,} sent, {so_far.rate:,.0f}/s, {so_far.errors:,} failed"
            progress.update(task, completed=so_far.seconds, told=told)

        return await load.run(beat)


def _show(outcome: "Outcome") -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("kind")
    for name in ("sent", "per second", "p50 ms", "p95 ms", "p99 ms", "max ms", "failed"):
        table.add_column(name, justify="right")
    for kind, tally in [*outcome.kinds.items(), ("all", outcome.everything())]:
        table.add_row(*_row(kind, tally, outcome.seconds))
    write(table)
    for kind, tally in outcome.kinds.items():
        for status, count in sorted(tally.errors.items()):
            write(f"{count:,} of {kind}: {status}")
    if not outcome.reached:
        note(f"{outcome.wanted_rate:g} requests a second were asked for and {outcome.rate:,.1f} sent: {outcome.late:,} "
             f"left late, since this machine was busy, and {outcome.held_back:,} not at all, since too many were "
             "unanswered; the figures are of a smaller load")


def _row(kind: str, tally: "Tally", seconds: float) -> list[str]:
    spread = tally.latencies
    figures = [spread.percentile(50), spread.percentile(95), spread.percentile(99), spread.max_seconds]
    return [kind, f"{tally.sent:,}", f"{tally.sent / seconds:,.1f}", *(f"{figure * 1000:,.1f}" for figure in figures),
            f"{tally.errors.total():,}"]

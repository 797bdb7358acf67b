"""``keystead alerts``: what somebody should look at, and whether somebody is reached."""

import getpass
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from keystead.cli.output import Format, FormatOption, human_seconds, note, printable, table, write, write_json
from keystead.cli.session import connected, run_settings, wait_for

if TYPE_CHECKING:
    from keystead.operations import Alert, Alerts

T = TypeVar("T")

FINDINGS = 1



def _ask(context: typer.Context, ask: "Callable[[Alerts], Awaitable[T]]") -> T:
    from keystead.alerting import alert_rules
    from keystead.app import App
    from keystead.engine import sync_clock
    from keystead.operations import Alerts

    settings = run_settings(context)

    async def answer() -> T:
        async with connected(settings) as valkey:
            clock = App(settings).clock()
            await sync_clock(valkey, clock)
            return await ask(Alerts(valkey, clock, alert_rules(settings)))

    return wait_for(answer())


def list_alerts(
    context: typer.Context,
    recent: Annotated[
        int, typer.Option("--recent", min=0, max=200, metavar="COUNT", help="Also the last so many changes.")
    ] = 0,
    format: FormatOption = Format.TABLE,
) -> None:
    """List open alerts, critical ones first. Exit code 1 while any is open."""
    from msgspec import to_builtins

    async def look(alerts: "Alerts") -> "tuple[list[Alert], list[object], float]":
        changes = list(await alerts.recent(recent)) if recent else []
        return await alerts.open(), [to_builtins(change) for change in changes], alerts.now()

    found, changes, now = _ask(context, look)
    if format is Format.JSON:
        write_json({"open": [to_builtins(alert) for alert in found], "recent": changes})
    else:
        _show(found, changes, now)
    if found:
        raise typer.Exit(FINDINGS)


def _show(found: "list[Alert]", changes: list[object], now: float) -> None:
    if found:
        shown = table("severity", "kind", "subject", "open for", "told", "what", right=("told",))
        for alert in found:
            known = f"{alert.told}, known" if alert.acked_at is not None else str(alert.told)
            shown.add_row(alert.severity, alert.kind, printable(alert.subject), human_seconds(now - alert.opened_at),
                          known, printable(alert.says))
        write(shown)
    else:
        note("No alert is open.")
    if changes:
        shown = table("before", "event", "kind", "subject", "what")
        for change in changes:
            assert isinstance(change, dict)
            shown.add_row(human_seconds(now - change["at"]), change["event"], change["kind"],
                          printable(change["subject"]), printable(change["says"]))
        write(shown)


def acknowledge(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="As `keystead alerts list` shows it.")],
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="Of what, as the list shows it.")],
) -> None:
    """Say that you know: nobody is told again until the alert clears or becomes critical."""
    _ask(context, lambda alerts: alerts.acknowledge(kind, subject, by=_who()))
    note(f"Nobody is told of {kind} ({subject}) again until it clears.")


def test(context: typer.Context) -> None:
    """Send a test by every way that is set. Nothing is opened; a running installation delivers it."""

    async def send(alerts: "Alerts") -> tuple[str, ...]:
        await alerts.test()
        return alerts.rules.ways

    ways = _ask(context, send)
    note(f"A test goes out by {', '.join(ways)}, as soon as an installation runs here.")


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "cli"

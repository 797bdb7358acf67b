"""``keystead message``: write to a person, see the latest messages, follow one, and see what was given up."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from keystead.cli.output import Format, FormatOption, note, printable, table, write, write_json
from keystead.cli.session import run_settings, wait_for
from keystead.errors import Invalid, NotFound

if TYPE_CHECKING:
    from rich.table import Table

    from keystead.messaging.touches import LatestTouches, TraceEvent
    from keystead.patterns import DeadLetter
    from keystead.switchboard import Switchboard

T = TypeVar("T")

MOST_LETTERS = 1000
MOST_SHOWN = 20


def send(
    context: typer.Context,
    user: Annotated[str, typer.Argument(metavar="USER", help="The person, by the sub of their account.")],
    event: Annotated[str, typer.Argument(metavar="EVENT", help="The touch point, such as daily_reminder.")],
    channel: Annotated[
        str | None, typer.Option(metavar="NAME", show_default="every one that reaches them", help="push, sms or email.")
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", show_default=False,
                     help="What the event is told. JSON where it can be read as such, else text. May be repeated."),
    ] = None,
    lane: Annotated[str, typer.Option(metavar="NAME", help="high for codes and security, normal, or low.")] = "normal",
) -> None:
    """Tell a person of an event, and print the uid of each touch; `keystead message trace UID` follows it."""
    given = dict(_parameter(each) for each in parameter or ())

    async def ask(board: "Switchboard") -> tuple[str, ...]:
        if channel is not None and channel not in board.outlets:
            raise Invalid(f"there is no channel {channel!r}; there are {', '.join(board.outlets)}")
        return await board.messaging.touch(user, event, channel=channel, parameters=given, lane=lane)  # type: ignore[arg-type]

    for uid in _with_board(context, ask):
        write(printable(uid))


def list_latest(
    context: typer.Context,
    channel: Annotated[
        str | None, typer.Option(metavar="NAME", show_default="all", help="Only this channel: push, sms or email.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only what went wrong, the last to do so first.")] = False,
    most: Annotated[int, typer.Option(min=1, max=1000, metavar="COUNT", help="List no more than this.")] = 50,
    before: Annotated[
        int | None, typer.Option(min=1, max=2**63 - 1, metavar="NUMBER", show_default=False,
                                 help="Go on where a list ended; it says with which number.")
    ] = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """List the latest messages of everybody and what became of each, newest first; no words and no addresses."""

    async def ask(board: "Switchboard") -> "LatestTouches":
        if channel is not None and channel not in board.outlets:
            raise Invalid(f"there is no channel {channel!r}; there are {', '.join(board.outlets)}")
        return await board.history.latest(most=most, before=before, channel=channel, failed=failed)  # type: ignore[arg-type]

    found = _with_board(context, ask)
    if format is Format.JSON:
        write_json({"touches": [asdict(touch) for touch in found.touches], "before": found.before})
        return
    if found.touches:
        write(_listed(found))
    else:
        write("Nothing is found." if channel or failed or before else "Nothing was sent yet.")
    if found.before is not None:
        note(f"more follow: --before {found.before}")


def trace(
    context: typer.Context,
    uid: Annotated[str, typer.Argument(metavar="UID", help="Of a touch, or of one push message, text or email.")],
    format: FormatOption = Format.TABLE,
) -> None:
    """Show the whole life of a message: its steps, calls of the provider, rows, counts, and where it is now."""
    events = _with_board(context, lambda board: board.tracer.trace(uid))
    if not events:
        raise NotFound(f"nothing is known of {uid}; traces are kept for the setting messaging.trace_seconds")
    if format is Format.JSON:
        write_json([{"at": event.at, "about": event.about, "source": event.source, "what": event.what,
                     "facts": dict(event.facts)} for event in events])
        return
    write(_life(events))


def dead(
    context: typer.Context,
    replay: Annotated[
        int, typer.Option(min=0, metavar="COUNT", help="Let so many of the oldest of each queue be tried again.")
    ] = 0,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show what was given up, grouped by queue and reason; with --replay, let it be tried again."""
    from keystead.web.dead_places import PLACES

    async def ask(board: "Switchboard") -> dict[str, "list[DeadLetter]"]:
        found, now = {}, board.ground.clock.now()
        for name, place in PLACES.items():
            lanes = place.lanes(board.ground.valkey)
            if replay and (again := sum([await place.replay(lane, replay, now) for lane in lanes])):
                note(f"{again} of {name} are tried again")
            found[name] = [letter for lane in lanes for letter in await place.dead.range(lane, -MOST_LETTERS, -1)]
        return found

    found = _with_board(context, ask)
    if format is Format.JSON:
        write_json([{"queue": name, "error": letter.error, "dead_at": letter.dead_at, "attempts": letter.attempts}
                    for name, letters in found.items() for letter in letters])
        return
    from rich.text import Text

    groups = Counter((name, letter.error) for name, letters in found.items() for letter in letters)
    if not groups:
        write("Nothing was given up.")
        return
    shown = table("queue", "letters", "reason", right=("letters",))
    for (name, error), count in groups.most_common(MOST_SHOWN):
        shown.add_row(name, str(count), Text(printable(error[:200])))
    write(shown)
    note("`keystead message dead --replay 100` lets them be tried again, once the reason is mended")


def work(
    context: typer.Context,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="COUNT", show_default="setting messaging.workers",
                                 help="Couriers of each channel.")
    ] = None,
) -> None:
    """Run couriers, batch jobs and the calendar of our own rooms, beside a running `keystead up`, until Ctrl-C.

    Any number of processes may do so, on any number of hosts; what one of them held when it died, another takes over.
    """
    from keystead.cli.worker_rooms import work as work_for_rooms
    from keystead.telemetry import configure_logging

    settings = run_settings(context, messaging_workers=workers)
    configure_logging(settings.log.level, settings.log.format)
    wait_for(work_for_rooms(settings, grace_seconds=30.0))


def _listed(found: "LatestTouches") -> "Table":
    from rich.text import Text

    shown = table("time", "channel", "event", "person", "state", "reason", "uid")
    for touch in found.touches:
        at = datetime.fromtimestamp(touch.at).strftime("%Y-%m-%d %H:%M:%S")
        facts = (touch.channel, touch.event, touch.user_sub, touch.status, touch.reason[:200], touch.uid)
        shown.add_row(at, *(Text(printable(fact)) for fact in facts))
    return shown


def _life(events: "list[TraceEvent]") -> "Table":
    from rich.text import Text

    first = next((event.at for event in events if event.at is not None), 0.0)
    shown = table("time", "seconds", "from", "about", "what", "facts", right=("seconds",))
    for event in events:
        at, after = "now", ""
        if event.at is not None:
            at, after = datetime.fromtimestamp(event.at).strftime("%H:%M:%S.%f")[:-3], f"+{event.at - first:.3f}"
        facts = "  ".join(f"{name}={value}" for name, value in event.facts.items() if value != "")
        texts = (Text(printable(each)) for each in (event.about, event.what, facts))
        shown.add_row(at, after, event.source, *texts)
    return shown


def _parameter(text: str) -> tuple[str, Any]:
    name, given, value = text.partition("=")
    if not given or not name:
        raise Invalid(f"a parameter is written NAME=VALUE, not {text[:60]!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _with_board(
    context: typer.Context, ask: "Callable[[Switchboard], Awaitable[T]]"
) -> T:
    from keystead.app import App

    settings = run_settings(context)

    async def answer() -> T:
        async with App(settings).running() as running:
            return await ask(running.switchboard)

    return wait_for(answer())

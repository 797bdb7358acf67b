"""``keystead keys watch``: what changes on a server right now, by pattern."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.inventories import InventoryOption, chosen_inventory
from keystead.cli.keys_looking import (
    KEYS_PER_SECOND,
    PrimaryOption,
    RateOption,
    UrlArgument,
    looking,
    plain,
    stride,
    tell,
)
from keystead.cli.output import Format, FormatOption, console, emit, table
from keystead.cli.session import run_settings, wait_for

if TYPE_CHECKING:
    from rich.table import Table

    from keystead.inventory import Inventory
    from keystead.settings import Settings
    from keystead.survey import Frame


def watch(
    context: typer.Context,
    url: UrlArgument = None,
    inventory: InventoryOption = None,
    every: Annotated[float, typer.Option(min=0.2, metavar="SECONDS", help="Tell what happened every so often.")] = 2.0,
    seconds: Annotated[
        float | None,
        typer.Option("--for", min=0.2, metavar="SECONDS", show_default="until interrupted", help="Then end."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="ROWS", help="Show so many patterns.")] = 25,
    keys_per_second: RateOption = KEYS_PER_SECOND,
    primary: PrimaryOption = False,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show live what is written, deleted and expires, by pattern.

    Listens to the server's keyspace events if they are on, and never switches them on: `CONFIG SET
    notify-keyspace-events KA` does, and costs the server something for every write. Otherwise looks again and again,
    and tells how many keys came and went. On a terminal one table that refreshes; otherwise a line for each pattern
    and turn, or a line of JSON for each turn.
    """
    settings = run_settings(context, valkey_url=url)
    described = chosen_inventory(inventory)
    wait_for(_watch(settings, described, every, seconds, limit, keys_per_second, primary, format))


async def _watch(
    settings: "Settings", inventory: "Inventory | None", every: float, seconds: float | None, limit: int,
    keys_per_second: int, primary: bool, format: Format,
) -> None:
    from contextlib import aclosing, nullcontext

    from keystead.clock import SystemClock
    from keystead.survey import watch

    clock = SystemClock()
    ends_at = None if seconds is None else clock.now() + seconds
    screen = console()
    live = screen.is_terminal and format is Format.TABLE
    async with looking(settings, primary) as look:
        for says in look.notes:
            tell(says)
        with _Refreshing(screen) if live else nullcontext() as shown:
            told = changed = False
            async with aclosing(watch(look, inventory=inventory, every_seconds=every,
                                      stride=stride(keys_per_second))) as frames:
                async for frame in frames:
                    if not told and not frame.by_events:
                        tell("keyspace events are off, so looks are compared: only keys that come and go are seen")
                    told, changed = True, changed or bool(frame.busiest())
                    if shown is not None:
                        shown.show(frame, limit)
                    elif format is Format.JSON:
                        emit(json.dumps({"at": round(clock.now(), 3)} | frame.as_dict(), ensure_ascii=True) + "\n")
                    else:
                        emit("".join(_lines(frame, limit, clock.now())))
                    if ends_at is not None and clock.now() >= ends_at:
                        if not changed:
                            tell("nothing changed in that time")
                        return


class _Refreshing:
    """One table on the terminal, written anew in its place."""

    def __init__(self, screen: object) -> None:
        from rich.live import Live

        self._live = Live(console=screen, auto_refresh=False)  # type: ignore[arg-type]

    def __enter__(self) -> "_Refreshing":
        self._live.__enter__()
        return self

    def __exit__(self, *what: object) -> None:
        self._live.__exit__(None, None, None)

    def show(self, frame: "Frame", limit: int) -> None:
        self._live.update(_table(frame, limit), refresh=True)


def _table(frame: "Frame", limit: int) -> "Table":
    how = "keyspace events" if frame.by_events else "looks compared"
    missed = f", {frame.missed:,} events missed" if frame.missed else ""
    rows = table("pattern", "written/s", "gone/s", "of them expired/s", "most", title=f"{how}{missed}",
                 right=("written/s", "gone/s", "of them expired/s"))
    for pattern, each in frame.busiest()[:limit]:
        rates = [f"{count / frame.seconds:,.1f}" if count else "" for count in (each.written, each.gone, each.expired)]
        rows.add_row(plain(pattern), *rates, plain(", ".join(kind for kind, _ in each.kinds.most_common(3))))
    return rows


def _lines(frame: "Frame", limit: int, now: float) -> list[str]:
    from datetime import UTC, datetime

    from keystead.cli.output import printable

    at = datetime.fromtimestamp(now, UTC).strftime("%H:%M:%S")
    lines = [f"{at} {printable(pattern)} written={each.written} gone={each.gone} expired={each.expired} "
             f"in {frame.seconds:.1f} s\n" for pattern, each in frame.busiest()[:limit]]
    if frame.missed:
        lines.append(f"{at} {frame.missed} events came too fast and were not counted\n")
    return lines

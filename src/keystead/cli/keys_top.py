"""``keystead keys top``: which patterns are large, and which grow."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.inventories import InventoryOption, chosen_inventory
from keystead.cli.keys_looking import (
    KEYS_PER_SECOND,
    MatchOption,
    PrimaryOption,
    RateOption,
    UrlArgument,
    counted,
    looking,
    plain,
    progress,
    stride,
    tell,
)
from keystead.cli.output import Format, FormatOption, human_bytes, human_seconds, note, table, write, write_json
from keystead.cli.session import run_settings, wait_for

if TYPE_CHECKING:
    from rich.console import RenderableType

    from keystead.inventory import Inventory
    from keystead.settings import Settings
    from keystead.survey import Growth, Snapshot


class By(StrEnum):
    """What comes first."""

    GROWTH = "growth"
    MEMORY = "memory"
    KEYS = "keys"


def top(
    context: typer.Context,
    url: UrlArgument = None,
    inventory: InventoryOption = None,
    since: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Compare with this snapshot instead of looking twice."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default=False, help="Keep what is seen now as a snapshot.")
    ] = None,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Time between the two looks; 0 looks once.")
    ] = 10.0,
    by: Annotated[By, typer.Option(help="What comes first.")] = By.GROWTH,
    limit: Annotated[int, typer.Option(min=1, metavar="ROWS", help="Show so many patterns.")] = 30,
    match: MatchOption = None,
    keys_per_second: RateOption = KEYS_PER_SECOND,
    primary: PrimaryOption = False,
    format: FormatOption = Format.TABLE,
) -> None:
    """Say which patterns grow: keys and memory of each, and how much is added in a minute.

    Looks twice, or once and compares with a snapshot that was kept before. Patterns are those of the inventory, if
    there is one, or of the snapshot, and what the keys themselves look like. Only reads.
    """
    from keystead.survey import growth, read_snapshot, write_snapshot

    settings = run_settings(context, valkey_url=url)
    # What a snapshot is compared with must be counted by the same patterns.
    described = chosen_inventory(inventory) if inventory or since is None else None
    before = read_snapshot(since) if since is not None else None
    before, now = wait_for(_two_looks(settings, described, before, wait, match, keys_per_second, primary))
    if save is not None:
        write_snapshot(now, save)
        note(f"snapshot of {counted(len(now.inventory.entries), 'pattern')} kept in {save}")
    grown = growth(before, now)
    if by is not By.GROWTH:
        grown.sort(key=lambda each: -(each.memory_now if by is By.MEMORY else each.keys_now))
    if format is Format.JSON:
        write_json({"server": now.server, "at": now.at, "seconds": round(now.at - before.at, 3),
                    "partial": now.inventory.partial or before.inventory.partial,
                    "patterns": [_row(each) for each in grown]})
    else:
        write(*_shown(grown, now.at - before.at, limit))
    for says in dict.fromkeys(each.says for each in now.inventory.notes if each.says != now.inventory.partial):
        tell(says)
    for snapshot in (before, now) if before is not now else (now,):
        if snapshot.inventory.partial:
            tell(f"this is not all: {snapshot.inventory.partial}")


async def _two_looks(
    settings: "Settings", inventory: "Inventory | None", before: "Snapshot | None", wait: float, match: str | None,
    keys_per_second: int, primary: bool,
) -> "tuple[Snapshot, Snapshot]":
    import asyncio

    from keystead.clock import SystemClock
    from keystead.survey import take

    clock = SystemClock()
    async with looking(settings, primary) as look:
        if before is None:
            with progress("First look") as told:
                before = await take(look, clock.now(), inventory=inventory, match=match, stride=stride(keys_per_second),
                                    progress=told)
            if not wait:
                return before, before
            await asyncio.sleep(wait)
        with progress("Looking") as told:
            now = await take(look, clock.now(), inventory=inventory or before.inventory, match=match,
                             stride=stride(keys_per_second), progress=told)
    return before, now


def _row(grown: "Growth") -> dict[str, object]:
    return {"pattern": grown.pattern, "keys": grown.keys_now, "memory_bytes": grown.memory_now,
            "keys_before": grown.keys_before, "memory_bytes_before": grown.memory_before,
            "keys_per_minute": round(grown.keys_per_minute, 3), "bytes_per_minute": round(grown.memory_per_minute, 3)}


def _shown(grown: "list[Growth]", seconds: float, limit: int) -> "Iterator[RenderableType]":
    numbers = ("keys", "memory", "keys/min", "memory/min")
    rows = table("pattern", *numbers, right=numbers)
    there = [each for each in grown if each.keys_now or each.keys_before]
    for each in there[:limit]:
        rate = each.memory_per_minute
        rows.add_row(plain(each.pattern), f"{each.keys_now:,}", human_bytes(each.memory_now),
                     f"{each.keys_per_minute:+,.0f}" if each.keys_per_minute else "",
                     f"{'+' if rate > 0 else '-'}{human_bytes(abs(rate))}" if rate else "")
    yield rows
    keys, memory = sum(each.keys_now for each in there), sum(each.memory_now for each in there)
    more = f"; {len(there) - limit:,} more are not shown" if len(there) > limit else ""
    apart = f", two looks {human_seconds(seconds)} apart" if seconds > 0 else ""
    yield f"{counted(len(there), 'pattern')}, {counted(keys, 'key')}, {human_bytes(memory)}{apart}{more}"

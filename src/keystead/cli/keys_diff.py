"""``keystead keys diff``: two servers, two snapshots, or one of each."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.inventories import InventoryOption, chosen_inventory
from keystead.cli.keys_looking import (
    KEYS_PER_SECOND,
    MatchOption,
    PrimaryOption,
    RateOption,
    counted,
    looking,
    plain,
    progress,
    stride,
    tell,
)
from keystead.cli.output import Format, FormatOption, human_bytes, table, write, write_json
from keystead.cli.session import run_settings, wait_for

if TYPE_CHECKING:
    from rich.console import RenderableType

    from keystead.inventory import Inventory, Observation
    from keystead.settings import Settings
    from keystead.survey import Difference

DIFFERENT = 1


def diff(
    context: typer.Context,
    first: Annotated[str, typer.Argument(metavar="A", help="A server's URL, or a snapshot kept by `keys top --save`.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The same.")],
    inventory: InventoryOption = None,
    all_patterns: Annotated[bool, typer.Option("--all", help="Show patterns that are the same, too.")] = False,
    match: MatchOption = None,
    keys_per_second: RateOption = KEYS_PER_SECOND,
    primary: PrimaryOption = False,
    format: FormatOption = Format.TABLE,
) -> None:
    """Compare what two servers hold, or a server with what it held before.

    Patterns that only one side has, other types, expiries there and not here, other values; and how many keys and how
    much memory each pattern has on both sides. Patterns are those of the inventory, if there is one. Leaves with 0 if
    they are the same, whatever their numbers, and with 1 if not. Only reads.
    """
    from keystead.survey import differences

    settings = run_settings(context)
    described = chosen_inventory(inventory)
    one, other = wait_for(_both(settings, first, second, described, match, keys_per_second, primary))
    found = differences(one, other)
    unlike = [each for each in found if each.says]
    if format is Format.JSON:
        write_json({"first": one.name, "second": other.name, "same": not unlike,
                    "partial": [side.partial for side in (one, other)],
                    "patterns": [{"pattern": each.pattern, "says": list(each.says), "first": _numbers(each.first),
                                  "second": _numbers(each.second)} for each in (found if all_patterns else unlike)]})
    else:
        write(*_shown(one.name, other.name, found, all_patterns))
    for side in (one, other):
        if side.partial:
            tell(f"{side.name} was not seen whole: {side.partial}")
    if unlike:
        raise typer.Exit(DIFFERENT)


async def _both(
    settings: "Settings", first: str, second: str, described: "Inventory | None", match: str | None,
    keys_per_second: int, primary: bool,
) -> "tuple[Inventory, Inventory]":
    """Both sides. A server is counted by the patterns of the other side, so that the same keys have the same names."""
    from keystead.clock import SystemClock
    from keystead.survey import read_snapshot, take

    async def side(place: str, known: "Inventory | None") -> "Inventory":
        if "://" not in place:
            return replace(read_snapshot(Path(place)).inventory, name=place)
        there = replace(settings, valkey=replace(settings.valkey, url=place))
        async with looking(there, primary) as look:
            with progress("Looking") as told:
                snapshot = await take(look, SystemClock().now(), inventory=known, match=match,
                                      stride=stride(keys_per_second), progress=told)
        return snapshot.inventory

    if "://" in first and "://" not in second:
        other = await side(second, None)
        return await side(first, other), other
    one = await side(first, described)
    return one, await side(second, one if "://" in second else None)


def _numbers(seen: "Observation | None") -> dict[str, object] | None:
    if seen is None:
        return None
    return {"keys": seen.keys, "memory_bytes": seen.memory_bytes, "types": dict(seen.types),
            "without_expiry": seen.without_expiry}


def _shown(first: str, second: str, found: "list[Difference]", everything: bool) -> "Iterator[RenderableType]":
    unlike = [each for each in found if each.says]
    rows = table("pattern", "keys A", "keys B", "memory A", "memory B", "difference",
                 right=("keys A", "keys B", "memory A", "memory B"))
    for each in found if everything else unlike:
        sides = (each.first, each.second)
        rows.add_row(plain(each.pattern), *(f"{seen.keys:,}" if seen else "" for seen in sides),
                     *(human_bytes(seen.memory_bytes) if seen else "" for seen in sides), plain("; ".join(each.says)))
    if rows.row_count:
        yield rows
    yield f"A {plain(first)}, B {plain(second)}"
    same = len(found) - len(unlike)
    alike = f"{counted(same, 'pattern')} on both sides"
    yield f"{counted(len(unlike), 'difference')}, {alike}" if unlike else f"no difference, {alike}"

"""``keystead keys learn``: a draft inventory from nothing but a live server."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.keys_looking import (
    KEYS_PER_SECOND,
    MatchOption,
    PrimaryOption,
    RateOption,
    SampleOption,
    UrlArgument,
    counted,
    looking,
    plain,
    progress,
    stride,
    tell,
)
from keystead.cli.output import Format, FormatOption, emit, human_bytes, note, table, write
from keystead.cli.session import run_settings, wait_for
from keystead.errors import Invalid

if TYPE_CHECKING:
    from rich.console import RenderableType

    from keystead.inventory import Entry, Inventory
    from keystead.settings import Settings


def learn(
    context: typer.Context,
    url: UrlArgument = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False,
                     help="Write the inventory into this file: .toml, .yaml or .json."),
    ] = None,
    sample: SampleOption = 1_000_000,
    match: MatchOption = None,
    values: Annotated[
        bool, typer.Option("--values/--no-values", help="Read a little of a few values of each pattern.")
    ] = True,
    keys_per_second: RateOption = KEYS_PER_SECOND,
    primary: PrimaryOption = False,
    format: FormatOption = Format.TABLE,
) -> None:
    """Learn which patterns the keys of a server form, and draft an inventory of them.

    Needs no declarations and no document. Concrete keys are put together by what stands in them: numbers, dates,
    identifiers, addresses, and words where there are too many to be names. Types, expiries, sizes, encodings and the
    shape of values are noted beside each pattern; what is a guess is marked as one. Only reads, gently, from a replica
    if there is one. Leaves with 2 if it could not run; what was seen before a server went away is kept and said.
    """
    from keystead.inventory import write_inventory

    ending = _ending(out) if out is not None else "toml"
    inventory = wait_for(_learn(run_settings(context, valkey_url=url), match, sample, values, keys_per_second, primary))
    if out is not None:
        try:
            out.write_text(write_inventory(inventory, ending), encoding="utf-8")
        except OSError as error:
            raise Invalid(f"{out} cannot be written: {error.strerror}") from error
        note(f"{counted(len(inventory.entries), 'pattern')} written to {out}")
    elif format is Format.JSON:
        emit(write_inventory(inventory, "json"))
    else:
        write(*_shown(inventory))
    for each in inventory.notes:
        tell(each.says)
    if inventory.partial:
        tell(f"this is not all: {inventory.partial}")


def _ending(out: Path) -> str:
    endings = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}
    if out.suffix.lower() not in endings:
        raise Invalid(f"{out} has no known ending; an inventory is written as .toml, .yaml or .json")
    return endings[out.suffix.lower()]


async def _learn(
    settings: "Settings", match: str | None, sample: int, values: bool, keys_per_second: int, primary: bool
) -> "Inventory":
    from keystead.survey import learn

    async with looking(settings, primary) as look:
        with progress("Learning") as told:
            return await learn(look, match=match, sample=sample, values=values, stride=stride(keys_per_second),
                               progress=told)


def _shown(inventory: "Inventory") -> "Iterator[RenderableType]":
    rows = table("pattern", "type", "keys", "memory", "expires", "values", right=("keys", "memory"))
    for entry in sorted(inventory.entries, key=lambda each: -(each.observed.memory_bytes if each.observed else 0)):
        seen = entry.observed
        if seen is not None:
            rows.add_row(plain(entry.pattern), entry.type.value if entry.type else "", f"{seen.keys:,}",
                         human_bytes(seen.memory_bytes), _expires(entry), plain(seen.shape))
    yield rows
    keys = sum(each.observed.keys for each in inventory.entries if each.observed)
    yield f"{counted(len(inventory.entries), 'pattern')}, {counted(keys, 'key')}"


def _expires(entry: "Entry") -> str:
    from keystead.inventory import spell_expiry

    if entry.ttl is None:
        return ""
    return spell_expiry(entry.ttl.value) + ("" if entry.ttl.sure else " ?")

"""``keystead keys erase``: take one person out of a server."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.inventories import InventoryOption, load_inventory
from keystead.cli.keys_looking import UrlArgument, progress
from keystead.cli.output import Format, FormatOption, fact_grid, note, table, write, write_json
from keystead.cli.registries import RegistryOption
from keystead.cli.session import run_settings, wait_for
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.custody import Erasure
    from keystead.engine import Valkey
    from keystead.inventory import Inventory
    from keystead.settings import Settings

_MOST_ROWS = 200

PersonOption = Annotated[
    list[str],
    typer.Option("--person", "--user", metavar="ID",
                 help="An identifier of the person: a user id, an address, a number. May be given several times."),
]
EverywhereOption = Annotated[
    bool,
    typer.Option("--everywhere", help="Also keys that are not marked personal, or not in the inventory at all."),
]
RateOption = Annotated[
    int, typer.Option("--keys-per-second", min=1, metavar="KEYS", help="Look at no more keys than this in a second.")
]


def erase(
    context: typer.Context,
    person: PersonOption,
    url: UrlArgument = None,
    really: Annotated[bool, typer.Option("--really", help="Do it. Without this, only say what would be done.")] = False,
    everywhere: EverywhereOption = False,
    receipt: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False,
                     help="Write a receipt (JSON) that names patterns and hashes, and nothing of the person."),
    ] = None,
    keys_per_second: RateOption = 20_000,
    inventory: InventoryOption = None,
    registry: RegistryOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Remove one person from every key that may hold them. A dry run unless --really is given.

    A key whose name bears the identifier goes whole; of others only the fields, members, elements and entries that hold
    it. Afterwards every value on the server is searched; what still holds the person is a leftover (exit code 1).
    """
    from keystead.custody import Person
    from keystead.custody.erasing import as_json

    who = Person(person)
    if receipt is not None and receipt.exists():
        raise Invalid(f"{receipt} is there already; a receipt is never written over")
    if receipt is not None and not os.access(receipt.parent, os.W_OK | os.X_OK):  # known before anything is erased
        raise Invalid(f"{receipt} cannot be written: {receipt.parent} is no folder that you may write to")
    known = load_inventory(inventory, registry)
    done = wait_for(_erase(run_settings(context, valkey_url=url), known, who.ids, really, everywhere, keys_per_second))
    if receipt is not None:
        receipt.write_text(as_json(done), encoding="utf-8")
        note(f"receipt written to {receipt}")
    if format is Format.JSON:
        write_json(done.receipt())
    else:
        _show(done)
    if done.partial:
        note(done.partial)
        raise typer.Exit(2)
    if any(act.failed for act in done.acts) or done.leftovers or (done.unreadable and really):
        raise typer.Exit(1)


async def _erase(settings: "Settings", inventory: "Inventory", ids: tuple[str, ...], really: bool, everywhere: bool,
                 keys_per_second: int) -> "Erasure":
    from keystead.custody import Erasing, Person

    valkey = await open_any(settings)
    work = Erasing(valkey, inventory, Person(ids), really=really, everywhere=everywhere,
                   server=valkey.address.display if valkey.address else "")
    try:
        with progress("Searching") as told:
            return await work.run(keys_per_second=keys_per_second, progress=told)
    except asyncio.CancelledError:  # Ctrl-C: what is gone by now must stand in the receipt
        return work.so_far("interrupted; run it again to finish")
    finally:
        await valkey.aclose()


async def open_any(settings: "Settings", url: str | None = None) -> "Valkey":
    """A connection to a server of any age, its primary where there is one."""
    from keystead.engine import connect

    return await connect(url or settings.valkey.url, settings=settings.valkey, only_looks=True)


def _show(done: "Erasure") -> None:
    from keystead.keys import spell_key

    rows = table("pattern", "key", "type", "done" if done.really else "would be done", "parts", right=("parts",))
    for act in done.acts[:_MOST_ROWS]:
        did = act.did.removeprefix("would have ")
        rows.add_row(act.pattern, spell_key(act.key), act.type, did, str(act.parts or ""))
    if done.acts:
        write(rows)
    if len(done.acts) > _MOST_ROWS:
        note(f"and {len(done.acts) - _MOST_ROWS} more; the receipt has them all")
    if done.leftovers:
        left = table("pattern", "key", "type", "holds", title="Still there, for somebody to judge")
        for holding in done.leftovers[:_MOST_ROWS]:
            count = len(holding.parts) + len(holding.unsure)
            holds = (f"{count} parts" if count != 1 else "1 part") if count else "in its name"
            holds += ", or looks like it" if holding.unsure else ""
            left.add_row(holding.pattern, spell_key(holding.key), holding.type, holds)
        write(left)
    write(fact_grid((
        ("searched", f"{done.searched_keys:,} keys"), ("acts", f"{len(done.acts):,}"),
        ("leftovers", f"{len(done.leftovers):,}" if done.leftovers else "none"),
        ("not readable", ", ".join(f"{name} {count}x" for name, count in done.unreadable.items())),
    )))
    for each in done.notes:
        note(each)
    if not done.really:
        note("nothing was changed; add --really to do it")

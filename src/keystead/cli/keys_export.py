"""``keystead keys export``: everything a server holds of one person."""

from typing import TYPE_CHECKING, Any

import typer

from keystead.cli.inventories import InventoryOption, load_inventory
from keystead.cli.keys_erase import EverywhereOption, PersonOption, RateOption, open_any
from keystead.cli.keys_looking import UrlArgument, progress
from keystead.cli.output import note, write_json
from keystead.cli.registries import RegistryOption
from keystead.cli.session import run_settings, wait_for

if TYPE_CHECKING:
    from keystead.inventory import Inventory
    from keystead.settings import Settings


def export(
    context: typer.Context,
    person: PersonOption,
    url: UrlArgument = None,
    everywhere: EverywhereOption = False,
    keys_per_second: RateOption = 20_000,
    inventory: InventoryOption = None,
    registry: RegistryOption = None,
) -> None:
    """Write everything that a server holds of one person, as JSON. Reads only.

    Whole values where the key is theirs; of others the fields, members, elements and entries that hold an identifier.
    """
    from keystead.custody import Person

    who = Person(person)
    known = load_inventory(inventory, registry)
    told = wait_for(_export(run_settings(context, valkey_url=url), known, who.ids, everywhere, keys_per_second))
    write_json(told)
    note(f"{len(told['keys'])} of {told['searched_keys']:,} keys hold something of them")
    if told["partial"]:
        note(told["partial"])
        raise typer.Exit(2)
    if told["unreadable"]:
        raise typer.Exit(1)


async def _export(settings: "Settings", inventory: "Inventory", ids: tuple[str, ...], everywhere: bool,
                  keys_per_second: int) -> dict[str, Any]:
    from keystead.custody import Person, export

    valkey = await open_any(settings)
    try:
        with progress("Searching") as told:
            return await export(valkey, inventory, Person(ids), everywhere=everywhere, keys_per_second=keys_per_second,
                                server=valkey.address.display if valkey.address else "", progress=told)
    finally:
        await valkey.aclose()

"""``keystead keys acl``: users of the server that may do no more than the inventory says."""

from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.inventories import InventoryOption, load_inventory
from keystead.cli.keys_erase import open_any
from keystead.cli.output import Format, FormatOption, emit, note, write_json
from keystead.cli.registries import RegistryOption
from keystead.cli.session import run_settings, wait_for
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.custody import Service
    from keystead.inventory import Inventory
    from keystead.settings import Settings


def acl(
    context: typer.Context,
    by: Annotated[
        str, typer.Option(metavar="WHAT", help="One user for each service (writers and readers), or for each section.")
    ] = "service",
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", show_default="all", help="Only this service; may be given several times."),
    ] = None,
    tagged: Annotated[bool, typer.Option("--tagged", help="Allow names behind a hash tag, as on a cluster.")] = False,
    check: Annotated[
        str | None,
        typer.Option(metavar="URL", show_default=False,
                     help="Have this server check the rules with ACL DRYRUN. Makes users that nobody can log in as, "
                     "and removes them again."),
    ] = None,
    inventory: InventoryOption = None,
    registry: RegistryOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Write ACL rules that give each service its own keys, commands and channels, and nothing else.

    Writers may read and write their keys, readers only read. For Redis 7 and Valkey. Nothing is set on any server:
    put in the passwords and run the lines yourself.
    """
    from keystead.custody import services, write_acl
    from keystead.custody.acl import reaches_everything

    if by not in ("service", "section"):
        raise Invalid(f"--by takes service or section, not {by}")
    known = load_inventory(inventory, registry)
    found = services(known, by_section=by == "section")
    if only:
        unknown = [name for name in only if not any(name in (each.name, each.user) for each in found)]
        if unknown:
            raise Invalid(f"the inventory names no service {unknown[0]}; it names {', '.join(e.name for e in found)}")
        found = tuple(each for each in found if each.name in only or each.user in only)
    lines = {each.user: write_acl(each, tagged=tagged) for each in found}
    troubles = wait_for(_check(run_settings(context), check, found, known, tagged)) if check else []
    if format is Format.JSON:
        write_json({"users": [{"service": each.name, "user": each.user, "line": lines[each.user]} for each in found],
                    "checked": check is not None, "troubles": troubles})
    else:
        emit("".join(f"# {' '.join(each.name.split())}: "  # a comment that stays on its line
                     f"writes {len(each.writes)} patterns, reads {len(each.reads)} more\n"
                     f"{lines[each.user]}\n" for each in found))
        for each in found:
            for pattern in reaches_everything(each):
                note(f"{each.user} reaches everything: {pattern} is nothing but a variable; give the pattern a prefix")
        for trouble in troubles:
            note(trouble)
        if check and not troubles:
            note(f"checked by ACL DRYRUN: all {len(found)} users can do what they need, and nothing else")
    if troubles:
        raise typer.Exit(1)


async def _check(settings: "Settings", url: str, found: "tuple[Service, ...]", inventory: "Inventory",
                 tagged: bool) -> list[str]:
    from keystead.custody import check_acl

    valkey = await open_any(settings, url)
    try:
        return [trouble for each in found for trouble in await check_acl(valkey, each, inventory, tagged=tagged)]
    finally:
        await valkey.aclose()

"""``keystead keys list``, ``show`` and ``docs``: what is declared or written down, with no server involved."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keystead.cli.inventories import InventoryOption, chosen_inventory
from keystead.cli.inventory_entries import list_entries, show_entry
from keystead.cli.output import Format, FormatOption, emit, fact_grid, note, table, write, write_json
from keystead.cli.registries import RegistryOption, load_registry
from keystead.errors import Invalid, NotFound

if TYPE_CHECKING:
    from keystead.keys import Declaration, Registry


def list_keys(
    room: Annotated[
        str | None,
        typer.Option(metavar="ROOM", help="Only what this room declares, or this section of an inventory lists.",
                     show_default=False),
    ] = None,
    personal: Annotated[bool, typer.Option("--personal", help="Only what carries personal data.")] = False,
    inventory: InventoryOption = None,
    registry: RegistryOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """List every key and channel that is declared or written down."""
    from keystead.keys import inventory_rows

    written = chosen_inventory(inventory, registry)
    if written is not None:
        list_entries(written, room, personal, format)
        return
    declared = _registry(registry)
    rooms = {declaration.room for declaration in declared}
    if room is not None and room not in rooms:
        raise NotFound(f"no room {room} declares anything; rooms are {', '.join(sorted(rooms))}")
    rows = [row for row in inventory_rows(declared)
            if (room is None or row["room"] == room) and (not personal or row["personal"])]
    if format is Format.JSON:
        write_json(rows)
        return
    shown = table("pattern", "type", "expires", "room", "purpose")
    for row in rows:
        shown.add_row(row["pattern"], row["type"], row["ttl"], row["room"], row["purpose"])
    write(shown)
    note(f"{len(rows)} declared; `keystead keys show PATTERN` tells all about one")


def show(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="The pattern as it is listed, or a part of it.")],
    inventory: InventoryOption = None,
    registry: RegistryOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show everything that is said of one pattern."""
    from keystead.keys import describe

    written = chosen_inventory(inventory, registry)
    if written is not None:
        show_entry(written, pattern, format)
        return
    row = describe(_find(_registry(registry), pattern))
    if format is Format.JSON:
        write_json(row)
        return
    from rich.text import Text

    write(Text(row["pattern"], style="bold cyan"), fact_grid(_facts(row)))


def docs(
    html: Annotated[bool, typer.Option("--html", help="Write HTML instead of Markdown.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file.", show_default="standard output"),
    ] = None,
    inventory: InventoryOption = None,
    registry: RegistryOption = None,
) -> None:
    """Write the inventory of all keys and channels as a document.

    One that is written down keeps its sections and their order, so that the page can take the place of the document
    that you kept by hand; `keystead keys import` reads it back.
    """
    from keystead.inventory import pages, pages_html
    from keystead.keys import to_html, to_markdown

    written = chosen_inventory(inventory, registry)
    if written is not None:
        page = (pages_html.to_html if html else pages.to_markdown)(written)
    else:
        page = (to_html if html else to_markdown)(_registry(registry))
    if output is None:
        emit(page)
        return
    try:
        output.write_text(page, encoding="utf-8")
    except OSError as error:
        raise Invalid(f"{output} cannot be written: {error.strerror}; name another file with -o") from error
    note(f"wrote {output}")


def _registry(sources: list[str] | None) -> "Registry":
    from keystead.keys import Layout

    return load_registry(sources, Layout.PLAIN)


def _find(registry: "Registry", wanted: str) -> "Declaration":
    """The declaration of a pattern, of a key that fits one, or the only one whose pattern holds the text."""
    exact = registry.find(wanted)
    if exact is not None:
        return exact
    match = registry.resolve_logical(wanted) or registry.resolve_channel(wanted.encode("utf-8", "surrogateescape"))
    if match is not None:
        return match.declaration
    near = [declaration for declaration in registry if wanted.lower() in declaration.pattern.lower()]
    if len(near) == 1:
        return near[0]
    if near:
        shown = ", ".join(declaration.pattern for declaration in near[:8]) + (", …" if len(near) > 8 else "")
        raise NotFound(f"{wanted} fits {len(near)} patterns: {shown}; give one of them whole")
    from difflib import get_close_matches

    close = get_close_matches(wanted, [declaration.pattern for declaration in registry], n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else "see `keystead keys list`"
    raise NotFound(f"no declared pattern is {wanted}; {hint}")


def _facts(row: dict[str, Any]) -> list[tuple[str, object]]:
    variables = "\n".join(f"{name}: {says}" for name, says in row["variables"].items())
    return [
        ("purpose", row["purpose"]), ("room", row["room"]), ("type", row["type"]), ("holds", row["payload"]),
        ("expires", row["ttl"]), ("variables", variables), ("tag", row["tag"]), ("writers", ", ".join(row["writers"])),
        ("readers", ", ".join(row["readers"])), ("scripts", ", ".join(row["scripts"])),
        ("personal data", ", ".join(row["personal"])), ("pairs with", row["pairs_with"]),
        ("if undecodable", row["dead_letter"]),
    ]

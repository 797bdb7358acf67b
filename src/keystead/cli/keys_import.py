"""``keystead keys import``: documents that people keep by hand become an inventory file."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.inventories import DEFAULT_FILE, load_inventory
from keystead.cli.output import console, emit, note, printable, table, write
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.inventory import Inventory, Source

DEFAULT_MODULE = "redis_keys.py"
MOST_SHOWN = 40


class FileFormat(StrEnum):
    """What an inventory is written as."""

    TOML = "toml"
    YAML = "yaml"
    JSON = "json"


def import_documents(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Documents (Markdown, text, HTML, CSV), folders or globs; inventories "
                       "are taken too, to put several together."),
    ],
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", show_default=f"{DEFAULT_FILE}, or {DEFAULT_MODULE} with --python",
                     help="Write to this file; - for standard output."),
    ] = None,
    format: Annotated[
        FileFormat | None,
        typer.Option("--format", help="Format of the file.", show_default="by the file's ending, otherwise toml"),
    ] = None,
    python: Annotated[
        bool, typer.Option("--python", help="Write a Python module of declarations instead of an inventory.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it is there.")] = False,
) -> None:
    """Read documents about Redis keys, kept by hand in any form, into an inventory.

    Every fact keeps the line it stands on. What is not plainly said is marked as implied or guessed, and listed at the
    end for you to look at.
    """
    from keystead.inventory import write_inventory
    from keystead.inventory.files import format_of
    from keystead.inventory.python import to_python

    target = out or (DEFAULT_MODULE if python else DEFAULT_FILE)
    if python and format is not None:
        raise Invalid("--python writes a module, so it takes no --format")
    if target != "-":
        _refuse_to_lose(Path(target), force)
    inventory = load_inventory(files)
    chosen = format.value if format is not None else format_of(target) or "toml"
    text = to_python(inventory) if python else write_inventory(inventory, chosen)
    if target == "-":
        emit(text)
    else:
        try:
            Path(target).write_text(text, encoding="utf-8")
        except OSError as error:
            raise Invalid(f"{target} cannot be written: {error.strerror}; name another file with --out") from error
    _summarise(inventory, to_screen=target != "-")
    if python:
        _tell_refusals(inventory)
    if target != "-":
        note(f"wrote {len(inventory.entries)} patterns to {target}")


def _refuse_to_lose(path: Path, force: bool) -> None:
    """Refuse to write over a file, and to write over settings even if asked to."""
    import tomllib

    from keystead.setting import INVENTORY_TABLES

    if not path.exists():
        return
    if not force:
        raise Invalid(f"{path} is there already; add --force to overwrite it, or name another file with --out")
    if path.suffix == ".toml":
        try:
            others = [name for name in tomllib.loads(path.read_text(encoding="utf-8")) if name not in INVENTORY_TABLES]
        except (OSError, ValueError):
            return
        if others:
            raise Invalid(f"{path} also holds settings ({', '.join(others[:3])}), which would be lost; "
                          "name another file with --out")


def _summarise(inventory: "Inventory", *, to_screen: bool) -> None:
    """How much was found, how sure it is, and what to look at."""
    from keystead.inventory import Certainty

    entries = inventory.entries
    shown = table("", *(certainty.value for certainty in Certainty), "not said",
                  right=("not said", *(certainty.value for certainty in Certainty)))
    keys = [entry for entry in entries if entry.kind == "key"]
    for name, facts in (
        ("type", [entry.type for entry in keys]), ("expiry", [entry.ttl for entry in keys]),
        ("purpose", [entry.purpose for entry in entries]), ("personal data", [entry.personal for entry in entries]),
        ("writers", [entry.writers[0] if entry.writers else None for entry in entries]),
        ("readers", [entry.readers[0] if entry.readers else None for entry in entries]),
    ):
        counts = [sum(fact is not None and fact.certainty is certainty for fact in facts) for certainty in Certainty]
        shown.add_row(name, *(str(count or "") for count in counts), str(sum(fact is None for fact in facts) or ""))
    doubts = list(_doubts(inventory))
    lines = [f"{printable(source)}  {printable(says)}" for source, says in doubts[:MOST_SHOWN]]
    lines += [f"… and {len(doubts) - MOST_SHOWN} more, marked in the file"] if len(doubts) > MOST_SHOWN else []
    kinds = [f"{count} {word}{'s' if count != 1 else ''}" for word, count in (
        ("key pattern", len(keys)), ("channel", sum(entry.kind == "channel" for entry in entries)),
        ("namespace of a library", sum(entry.kind == "opaque" for entry in entries))) if count]
    head = f"{', '.join(kinds)} in {printable(inventory.name)}"
    if to_screen:
        from rich.text import Text

        write(Text(head), shown, *map(Text, ["look at:", *(f"  {line}" for line in lines)] if lines else []))
    else:
        screen = console(stderr=True)
        for part in (head, shown, *lines):
            screen.print(part, markup=False)
    if inventory.partial:
        note(f"not the whole: {inventory.partial}")


def _doubts(inventory: "Inventory") -> Iterator[tuple[str, str]]:
    """What somebody should look at, with where it stands."""
    from keystead.inventory import spell_expiry

    for entry in inventory.entries:
        home = entry.sources[0] if entry.sources else None
        if entry.uncertain:
            yield _place(home), f"{entry.pattern}: {entry.uncertain}"
        if entry.type is None and entry.kind == "key":
            yield _place(home), f"{entry.pattern}: its type is not said"
        elif entry.type is not None and not entry.type.sure:
            yield _place(entry.type.source or home), f"{entry.pattern}: type {entry.type.value} is a guess" + (
                f" ({entry.type.words})" if entry.type.words else "")
        if entry.ttl is not None and not entry.ttl.sure:
            yield _place(entry.ttl.source or home), (
                f"{entry.pattern}: expiry {spell_expiry(entry.ttl.value)} is a guess"
                + (f" ({entry.ttl.words})" if entry.ttl.words else ""))
        if entry.personal is not None and entry.personal.value and not entry.personal.sure:
            yield _place(entry.personal.source or home), f"{entry.pattern}: personal data is a guess"
    for remark in inventory.notes:
        yield _place(remark.source), remark.says


def _place(source: "Source | None") -> str:
    return str(source) if source is not None else "?"


def _tell_refusals(inventory: "Inventory") -> None:
    from keystead.inventory.python import refusals

    refused = refusals(inventory)
    if refused:
        note(f"{len(refused)} of them are written as comments, because they cannot be declared as they stand")

"""``keystead keys code``: which keys does this source code use, and how?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.output import Format, FormatOption, console, note, printable, table, write, write_json
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.inventory import Entry, Inventory

_NOTES_SHOWN = 20


def code(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files or folders with source code.", show_default=False)
    ],
    guesses: Annotated[
        bool, typer.Option("--guesses/--no-guesses", help="Also text that only looks like a key, marked with '?'.")
    ] = True,
    tests: Annotated[bool, typer.Option("--tests", help="Also files of tests.")] = False,
    all_notes: Annotated[bool, typer.Option("--notes", help="Show every note, not only the first.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", show_default=False,
                     help="Write an inventory file, which other commands take with --inventory (.toml, .yaml, .json)."),
    ] = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Find the keys that source code uses: pattern, type, expiry, who writes, who reads, with file and line.

    Reads Python, Go, TypeScript, JavaScript, Java, Ruby and Lua scripts. Follows constants, helper functions and
    wrappers through the whole tree. A key that cannot be followed is a note that says where. Needs
    `pip install 'keystead[code]'`.
    """
    found = _read(paths, guesses, tests)
    if out is not None:
        _write_file(found, out)
    elif format is Format.JSON:
        write_json(_rows(found))
    else:
        _show(found, all_notes)


def _read(paths: list[Path], guesses: bool, tests: bool) -> "Inventory":
    from rich.progress import Progress

    from keystead.inventory.code import read_code

    screen = console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("reading code", total=None)
        return read_code(paths, guesses=guesses, tests=tests,
                         progress=lambda done, total: bar.update(task, completed=done, total=total))


def _write_file(found: "Inventory", out: Path) -> None:
    from keystead.inventory import write_inventory
    from keystead.inventory.files import format_of

    format = format_of(out.name)
    if format is None:
        raise Invalid(f"{out} says no format; end it in .toml, .yaml or .json")
    try:
        out.write_text(write_inventory(found, format), encoding="utf-8")
    except OSError as error:
        raise Invalid(f"{out} cannot be written: {error.strerror}; name another file with --out") from error
    note(f"wrote {len(found.entries)} patterns and {len(found.notes)} notes to {out}")


def _show(found: "Inventory", all_notes: bool) -> None:
    from keystead.inventory import spell_expiry

    shown = table("pattern", "type", "expires", "written by", "read by", "first seen")
    for entry in found.entries:
        kind = entry.type.value + ("" if entry.type.sure
                                   else " ?") if entry.type is not None else entry.kind.replace("key", "")
        ttl = spell_expiry(entry.ttl.value) + ("" if entry.ttl.sure else " ?") if entry.ttl is not None else ""
        shown.add_row(*(printable(each) for each in (
            entry.pattern + (" ?" if entry.uncertain else ""), kind, ttl, _people(entry, "writers"),
            _people(entry, "readers"),
            str(entry.sources[0]) if entry.sources else "")))
    write(shown)
    guessed = sum(bool(entry.uncertain) for entry in found.entries)
    note(f"{len(found.entries)} patterns" + (f", {guessed} of them to be looked at (?)" if guessed else ""))
    notes = found.notes if all_notes else found.notes[:_NOTES_SHOWN]
    for each in notes:
        note(f"{each.source}: {each.says}" if each.source is not None else each.says)
    if len(notes) < len(found.notes):
        note(f"{len(found.notes) - len(notes)} more notes; --notes shows all of them")


def _people(entry: "Entry", name: str) -> str:
    people = list(dict.fromkeys(fact.value for fact in getattr(entry, name)))
    return ", ".join(people[:2]) + (f" and {len(people) - 2} more" if len(people) > 2 else "")


def _rows(found: "Inventory") -> dict[str, object]:
    from keystead.inventory.rows import entry_row

    rows = []
    for entry in found.entries:
        row = entry_row(entry)
        for name in ("writers", "readers"):
            row[name] = [{"name": fact.value, "commands": fact.words.split(", "), "source": str(fact.source)}
                         for fact in getattr(entry, name)]
        rows.append(row)
    return {"name": found.name, "keys": rows,
            "notes": [{"says": each.says, "source": str(each.source) if each.source else None} for each in found.notes]}

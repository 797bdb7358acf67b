"""Which inventory a command works with: files and documents of the user's, or declarations."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.output import note
from keystead.cli.registries import load_registry
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.inventory import Entry, Inventory

DEFAULT_FILE = "keystead.toml"
# What is looked for in a folder.
_ENDINGS = {".toml", ".yaml", ".yml", ".json", ".md", ".markdown", ".mdx", ".rst", ".adoc", ".txt", ".html", ".htm",
            ".csv", ".tsv"}

InventoryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--inventory",
        metavar="FILE",
        envvar="KEYSTEAD_INVENTORY",
        help="What is written down about the keys: an inventory (TOML, YAML, JSON) or the document you keep by hand "
        "(Markdown, text, HTML, CSV); a folder or a glob takes every such file in it. May be given several times.",
        show_default=f"{DEFAULT_FILE}, if it lists keys",
    ),
]


def load_inventory(paths: Iterable[str | Path] | None, registry: Iterable[str] | None = None) -> "Inventory":
    """The inventory that was named, several as one; without a name that of ``keystead.toml``, or the declarations.

    A document is imported on the way. Refuses with ``Invalid`` what cannot be read and what holds no key.
    """
    chosen = chosen_inventory(paths, registry)
    if chosen is not None:
        return chosen
    from keystead.inventory import from_registry
    from keystead.keys import Layout

    return from_registry(load_registry(registry, Layout.PLAIN))


def chosen_inventory(
    paths: Iterable[str | Path] | None, registry: Iterable[str] | None = None
) -> "Inventory | None":
    """The same, but None where the command is to work with the declarations."""
    from keystead.inventory import merge_inventories

    named = [str(path) for path in paths or ()]
    if not named:
        default = Path(DEFAULT_FILE)
        if registry or not (_lists_keys(default) or _is_no_text(default)):
            return None
        named = [DEFAULT_FILE]
    found: list[Inventory] = []
    for name in named:
        files = _files(name)
        several = files != [Path(name)]
        read = [read_file(path, required=not several) for path in files]
        kept = [inventory for inventory in read if inventory is not None]
        if not kept:
            raise Invalid(f"{name}: none of its {len(files)} files describes a key")
        found += kept
    return merge_inventories(found) if len(found) > 1 or _says_twice(found[0]) else found[0]


def _says_twice(inventory: "Inventory") -> bool:
    """Whether a pattern is described more than once; what is said of it is then put together."""
    return len({(entry.kind, entry.pattern) for entry in inventory.entries}) < len(inventory.entries)


def read_file(path: Path, *, required: bool = True) -> "Inventory | None":
    """The inventory in one file, whatever its format; None if it holds no key and need not."""
    from keystead.inventory import read_inventory
    from keystead.inventory.documents import NotADocument, read_document
    from keystead.inventory.files import format_of

    format = format_of(path.name)
    if format is not None and (format == "toml" or _lists_keys(path)):
        if not required and not _lists_keys(path):
            return None
        return read_inventory(path)
    try:
        inventory = _read_page(path) or read_document(path)
    except NotADocument as error:
        if required:
            raise Invalid(str(error)) from None
        note(f"left out: {error}")
        return None
    if not inventory.entries:
        if required:
            raise Invalid(f"{path}: no key is described in it; is it the right document?")
        return None
    return _said_once(inventory)


def _said_once(inventory: "Inventory") -> "Inventory":
    """The inventory without what a document says twice.

    A heading that is nothing but the key is no section, and words about an expiry that the rule says already are kept
    with the fact alone.
    """
    from dataclasses import replace

    from keystead.inventory import Rule

    entries: list[Entry] = []
    dropped: set[tuple[str, ...]] = set()
    for entry in inventory.entries:
        if entry.section and entry.section[-1].strip("` :") in (entry.pattern, entry.spelling):
            dropped.add(entry.section)
            entry = replace(entry, section=entry.section[:-1])
        fact = entry.ttl
        if fact is not None and fact.value.rule not in (Rule.UNTIL, Rule.SOME) and (
                fact.words[:100] == fact.value.words[:100]):
            entry = replace(entry, ttl=replace(fact, value=replace(fact.value, words="")))
        entries.append(entry)
    used = {entry.section[:depth] for entry in entries for depth in range(1, len(entry.section) + 1)}
    sections = tuple((path, text) for path, text in inventory.sections if path not in dropped or path in used)
    return replace(inventory, entries=tuple(entries), sections=sections)


def _read_page(path: Path) -> "Inventory | None":
    """The inventory on a page that ``keystead keys docs`` wrote; None if it is another document."""
    from keystead.inventory.files import LARGEST_BYTES
    from keystead.inventory.pages_reading import is_page, read_page

    try:
        with path.open("rb") as file:
            beginning = file.read(1000)
        if not is_page(beginning.decode("utf-8-sig", "replace")) or path.stat().st_size > LARGEST_BYTES:
            return None
        return read_page(path.read_text(encoding="utf-8-sig"), str(path))
    except (OSError, UnicodeDecodeError):
        return None


def _lists_keys(path: Path) -> bool:
    """Whether a file is an inventory, as far as its top level tells."""
    import re

    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(4 * 1024 * 1024)
    except (OSError, UnicodeDecodeError):
        return False
    if path.suffix.lower() == ".toml":
        return re.search(r"^\s*\[+\s*(?:inventory|keys?|channels?|opaque)\s*\]", text, re.MULTILINE) is not None
    return re.search(r"^[\s{]*[\"']?(?:inventory|keys|channels)[\"']?\s*:", text, re.MULTILINE) is not None


def _is_no_text(path: Path) -> bool:
    """Whether a file is there that nobody can read as text; to pass over it in silence would help nobody."""
    try:
        path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        return True
    except OSError:
        return False
    return False


def _files(name: str) -> list[Path]:
    """The files that a name stands for: itself, those of a folder, or those that fit a glob."""
    path = Path(name)
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.suffix.lower() in _ENDINGS and each.is_file()
                       and not any(part.startswith(".") for part in each.relative_to(path).parts))
        if not files:
            raise Invalid(f"{name} holds no document; known endings are {', '.join(sorted(_ENDINGS))}")
        return files
    if not path.exists() and any(sign in name for sign in "*?["):
        anchor = Path(path.anchor) if path.is_absolute() else Path()
        pattern = name.removeprefix(path.anchor)
        files = sorted(each for each in anchor.glob(pattern) if each.is_file())
        if not files:
            raise Invalid(f"{name} fits no file")
        return files
    if not path.exists():
        raise Invalid(f"{name} is not there; name a file, a folder or a glob")
    return [path]

"""Small trees of source code for the tests."""

from pathlib import Path
from textwrap import dedent

from keystead.inventory import Entry, Inventory
from keystead.inventory.code import read_code
from keystead.inventory.code.project import Project
from keystead.inventory.code.reading import read_source
from keystead.inventory.code.resolving import Frame, Resolver

SAMPLES = Path(__file__).parent / "samples"


def written(folder: Path, **files: str) -> Path:
    """Files with these texts; ``__`` in a name is a folder, the last underscore the dot."""
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        path = folder / (stem.replace("__", "/") + "." + suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return folder


def read(folder: Path, *, guesses: bool = False, **files: str) -> Inventory:
    """What such a tree says."""
    return read_code([written(folder, **files)], guesses=guesses)


def facts(entry: Entry) -> tuple[str, str, str, float | None]:
    """Pattern, type, rule and seconds, shortly."""
    return (entry.pattern, entry.type.value if entry.type else "", entry.ttl.value.rule.value if entry.ttl else "",
            entry.ttl.value.seconds if entry.ttl else None)


def patterns(inventory: Inventory) -> list[str]:
    return [entry.pattern for entry in inventory.entries]


def forms(text: str, name: str, language: str = "python") -> list[str]:
    """What a name at the end of a file says."""
    from keystead.inventory.code.expressions import Name

    file = read_source(dedent(text).encode(), f"a.{language}", language)
    resolver = Resolver(Project([file]))
    return sorted(shape.pattern for shape in resolver.forms(Name(name), Frame(file.module, 10_000)))

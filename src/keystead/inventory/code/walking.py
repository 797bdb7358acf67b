"""The source files under a path: without what others wrote, what is ignored, generated or too large."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from keystead.errors import Invalid
from keystead.inventory.code.grammars import SUFFIXES
from keystead.inventory.models import Note, Source

LARGEST_BYTES: Final = 1_500_000
MOST_FILES: Final = 200_000
_SKIPPED: Final = frozenset((
    ".git", ".hg", ".svn", "node_modules", "vendor", "__pycache__", ".venv", "venv", ".tox", ".nox", "site-packages",
    "target",
    "dist", "bower_components", ".next", ".nuxt", ".mypy_cache", ".ruff_cache", ".pytest_cache", "third_party",
    ".idea", ".gradle",
    ".eggs", "coverage", ".terraform", "Pods", ".cache", ".yarn",
))
_TEST_FOLDERS: Final = frozenset(("test", "tests", "spec", "specs", "__tests__", "__mocks__", "testdata", "fixtures",
                                  "testing"))
_TEST_FILES: Final = re.compile(
    r"^(?:test_.*|.*_test|conftest)\.py$|_test\.go$|\.(?:test|spec|cy|stories)\.[cm]?[jt]sx?$|_(?:spec|test)\.rb$"
    r"|(?:Tests?|IT|TestCase)\.java$")
_GENERATED: Final = re.compile(
    r"\.min\.js$|\.d\.[cm]?ts$|_pb2(?:_grpc)?\.py$|\.pb\.go$|\.bundle\.js$|_generated\.\w+$|\.gen\.go$")


@dataclass(slots=True)
class Tree:
    """What a walk found. ``notes`` tell of what was left out and why."""

    files: list[tuple[Path, str]] = field(default_factory=list)  # where it is, and what it is called in sources
    notes: list[Note] = field(default_factory=list)
    tests: int = 0


def find_files(paths: list[Path], *, tests: bool = False) -> Tree:
    """The files of languages we read, in a stable order. A file that is named itself is always taken."""
    tree = Tree()
    seen: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise Invalid(f"{path} does not exist; name files or folders with source code")
        if path.is_file():
            if path.suffix not in SUFFIXES:
                raise Invalid(f"{path} is not Python, Go, TypeScript, JavaScript, Java, Ruby or Lua")
            if path.resolve() not in seen:
                seen.add(path.resolve())
                tree.files.append((path, _called(path, path.parent)))
            continue
        for found in _walk(path, path, [], tests, tree):
            if found.resolve() in seen:
                continue
            seen.add(found.resolve())
            tree.files.append((found, _called(found, path)))
            if len(tree.files) >= MOST_FILES:
                tree.notes.append(Note(f"more than {MOST_FILES:,} files; the rest was not read", Source(str(path))))
                return tree
    if tree.tests:
        tree.notes.append(Note(f"{tree.tests:,} files of tests were left out; --tests reads them too"))
    return tree


def read_bytes(path: Path, called: str) -> bytes | Note:
    """The bytes of a file, or why it was not read."""
    try:
        if path.stat().st_size > LARGEST_BYTES:
            return Note(f"larger than {LARGEST_BYTES / 1e6:g} MB; not read", Source(called))
        data = path.read_bytes()
    except OSError as error:
        return Note(f"cannot be read: {error.strerror or error}", Source(called))
    if b"\0" in data[:8192]:
        return Note("is not text; not read", Source(called))
    if len(data) > 20_000 and len(data) / (data.count(b"\n") + 1) > 800:
        return Note("has lines of hundreds of letters, as made by a packer; not read", Source(called))
    return data


def _walk(folder: Path, root: Path, rules: "list[_Rule]", tests: bool, tree: Tree) -> Iterator[Path]:
    rules = rules + _rules(folder)
    try:
        inside = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        tree.notes.append(Note(f"cannot be opened: {error.strerror}", Source(_called(folder, root))))
        return
    folders: list[Path] = []
    for entry in inside:
        place = Path(entry.path)
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            is_file = entry.is_file()
        except OSError:
            continue
        if is_folder:
            if entry.name not in _SKIPPED and not _ignored(place, rules, True):
                folders.append(place)
        elif is_file and place.suffix in SUFFIXES and not _GENERATED.search(entry.name) and not _ignored(place, rules,
                                                                                                         False):
            if not tests and _TEST_FILES.search(entry.name):
                tree.tests += 1
                continue
            yield place
    for place in folders:
        if not tests and place.name.lower() in _TEST_FOLDERS:
            tree.tests += sum(1 for each in place.rglob("*") if each.suffix in SUFFIXES)
            continue
        yield from _walk(place, root, rules, tests, tree)


def _called(path: Path, root: Path) -> str:
    """A file's name in sources: from the working directory if it lies there, else from the folder that was named."""
    full = path.resolve()
    here = Path.cwd()
    if full.is_relative_to(here):
        return full.relative_to(here).as_posix()
    top = root.resolve()
    return (Path(top.name) / full.relative_to(top)).as_posix() if full.is_relative_to(top) else full.as_posix()


# -- .gitignore, as far as most files of that name go ----------


@dataclass(frozen=True, slots=True)
class _Rule:
    home: Path
    pattern: str
    keeps: bool
    folders_only: bool
    anchored: bool


def _rules(folder: Path) -> list[_Rule]:
    try:
        lines = (folder / ".gitignore").read_text("utf-8", "replace").splitlines()[:2000]
    except OSError:
        return []
    rules: list[_Rule] = []
    for line in lines:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        keeps = text.startswith("!")
        text = text.lstrip("!")
        folders_only = text.endswith("/")
        text = text.rstrip("/")
        anchored = "/" in text
        rules.append(_Rule(folder, text.lstrip("/").replace("**/", "*").replace("/**", "/*"), keeps, folders_only,
                           anchored))
    return rules


def _ignored(path: Path, rules: list[_Rule], is_folder: bool) -> bool:
    ignored = False
    for rule in rules:
        if rule.folders_only and not is_folder:
            continue
        name = path.relative_to(rule.home).as_posix() if rule.anchored else path.name
        if fnmatch(name, rule.pattern):
            ignored = not rule.keeps
    return ignored

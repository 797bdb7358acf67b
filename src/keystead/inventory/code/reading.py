"""Source code of a whole tree, read into an inventory of the keys it uses."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from keystead.inventory.code.clients import speaks_redis, worth_reading
from keystead.inventory.code.collecting import collect
from keystead.inventory.code.grammars import SUFFIXES, parse
from keystead.inventory.code.loose import loose_keys
from keystead.inventory.code.lowering_go import GoReader
from keystead.inventory.code.lowering_java import JavaReader
from keystead.inventory.code.lowering_python import PythonReader
from keystead.inventory.code.lowering_ruby import RubyReader
from keystead.inventory.code.lowering_typescript import TypeScriptReader
from keystead.inventory.code.project import Project
from keystead.inventory.code.scopes import SourceFile
from keystead.inventory.code.scripts import file_script
from keystead.inventory.code.uses import UseFinder
from keystead.inventory.code.walking import find_files, read_bytes
from keystead.inventory.models import Inventory, Note, Source

if TYPE_CHECKING:
    from keystead.inventory.code.lowering import Reader

_READERS: "Final[dict[str, type[Reader]]]" = {
    "python": PythonReader, "go": GoReader, "java": JavaReader, "ruby": RubyReader, "typescript": TypeScriptReader,
    "tsx": TypeScriptReader,
}
_WORD: Final = re.compile(rb"[A-Za-z_]\w+")
_DEFINED: Final = re.compile(
    rb"\b(?:def|class|func|function|const|enum|interface|module|type|let|var|String) +(\w{4,})"
    rb"|\b(\w{4,})(?: *:[^=\n]{1,40})? *=(?!=)")
_MANY: Final = 2000  # files that wait; then one round must do
_ROUNDS: Final = 2  # of reading more files for names that the first ones use
_COMMON: Final = frozenset(word.encode() for word in (
    "get", "set", "delete", "exists", "keys", "find", "fetch", "read", "write", "update", "create", "remove", "load",
    "save",
    "main", "call", "send", "push", "pop", "init", "self", "execute", "run", "publish", "String", "Object", "List",
    "value",
    "format", "print", "None", "True", "False", "Exception", "Error", "Promise", "Date", "JSON", "Math", "Array",
    "Number",
    "constructor", "__init__", "initialize", "handle", "process", "store", "name", "string", "error", "type",
))


def read_code(
    paths: Sequence[str | Path], *, guesses: bool = True, tests: bool = False, name: str = "code",
    progress: Callable[[int, int], None] | None = None,
) -> Inventory:
    """What the source files under the paths say about keys.

    Each entry has the places that use it, and what their commands imply: its type, how long it lives, who writes and
    who reads. What cannot be followed is a note with its place. ``guesses`` adds text that only looks like a key,
    marked as uncertain. A file that cannot be read or understood is a note, and never stops the rest.
    """
    tree = find_files([Path(path) for path in paths], tests=tests)
    notes = list(tree.notes)
    project = Project()
    finder_notes: list[Note] = []
    waiting: list[tuple[Path, str]] = []
    for number, (path, called) in enumerate(tree.files):
        if progress is not None:
            progress(number, len(tree.files))
        data = read_bytes(path, called)
        if isinstance(data, Note):
            notes.append(data)
        elif worth_reading(data) or path.suffix == ".lua":
            _add(project, path, called, data, notes)
        else:
            waiting.append((path, called))
    finder = UseFinder(project)
    finder.find()
    for _ in range(_ROUNDS if len(waiting) < _MANY else 1):
        if not _read_more(project, waiting, notes):
            break
        finder = UseFinder(project)
        finder.find()
    scripts = [found for file in project.files.values() if file.language == "lua"
               for found in file_script(file, finder_notes)]
    loose = list(loose_keys(project, finder.resolver)) if guesses else []
    notes += [Note("is not understood whole; what was, is here", Source(file.path)) for file in project.files.values()
              if file.broken and any(use.source.file == file.path for use in finder.uses)]
    return collect(name, [*finder.uses, *scripts], [*notes, *finder.notes, *finder_notes], loose)


def read_source(data: bytes, called: str, language: str) -> SourceFile:
    """One file, taken apart."""
    file = SourceFile(called, language, data)
    file.speaks_redis = speaks_redis(data)
    if language != "lua":
        _READERS[language](file).read(parse(language, data))
    return file


def _add(project: Project, path: Path, called: str, data: bytes, notes: list[Note]) -> None:
    try:
        project.add(read_source(data, called, SUFFIXES[path.suffix]))
    except RecursionError:
        notes.append(Note("is nested too deeply; not read", Source(called)))


def _read_more(project: Project, waiting: list[tuple[Path, str]], notes: list[Note]) -> bool:
    """Read those of the waiting files that define a name that is used, or call a function that is passed keys.

    Whether there were any.
    """
    defined = {name.encode() for name in project.wanted if len(name) > 3} - _COMMON
    modules = _modules_of(project)
    called = [(name.encode(), hint.encode()) for name, hint in project.callers_wanted
              if name.encode() not in _COMMON]
    project.wanted, project.callers_wanted = set(), set()
    if not defined and not called and not modules:
        return False
    left: list[tuple[Path, str]] = []
    for place in waiting:
        data = read_bytes(*place)
        if isinstance(data, Note):
            continue
        if _stem(place[0]) in modules:
            _add(project, *place, data, notes)
            continue
        words = set(_WORD.findall(data))
        if any(name in words and hint in words for name, hint in called) or (not defined.isdisjoint(words)
                and not defined.isdisjoint(name for names in _DEFINED.findall(data) for name in names)):
            _add(project, *place, data, notes)
        else:
            left.append(place)
    found = len(left) < len(waiting)
    waiting[:] = left
    return found


def _modules_of(project: Project) -> set[str]:
    """The last words of the modules that wanted names are imported from: ``keys`` of ``import { keys } from "./keys"``.

    Such a name may be as common or as short as it likes.
    """
    found: set[str] = set()
    for file in project.files.values():
        for name, (module, there) in file.imports.items():
            if name in project.wanted or there in project.wanted:
                found.add(re.split(r"[./\\]", module)[-1])
                found.add(there)
    return found - {""}


def _stem(path: Path) -> str:
    return path.parent.name if path.stem in ("index", "__init__") else path.stem

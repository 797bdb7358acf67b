"""All files of a tree together: where a name that is used in one of them is defined in another."""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

from keystead.inventory.code.expressions import Name
from keystead.inventory.code.scopes import Assigned, CallSite, Scope, SourceFile

_CONSTRUCTORS: Final = ("__init__", "constructor", "initialize", "__new__")
_FAMILIES: Final = {"tsx": "typescript"}
_CONSTANT: Final = re.compile(r"^_?[A-Z][A-Za-z0-9_]{2,}$")
_LOCAL: Final = re.compile(r"^[a-z]+[A-Z]\w{3,}$")


class Project:
    """The index. It gathers names that were looked for in vain, so that more files may be read for them."""

    def __init__(self, files: Iterable[SourceFile] = ()) -> None:
        self.files: dict[str, SourceFile] = {}
        self.wanted: set[str] = set()
        self.callers_wanted: set[tuple[str, str]] = set()  # a function, and a word that its callers' files must hold
        self.wanting = False  # only while a key or an expiry is followed
        self._constants: dict[tuple[str, str], list[Scope]] = defaultdict(list)
        self._functions: dict[tuple[str, str], list[Scope]] = defaultdict(list)
        self._classes: dict[tuple[str, str], list[Scope]] = defaultdict(list)
        self._heirs: dict[tuple[str, str], list[Scope]] = defaultdict(list)
        self._calls: dict[str, list[CallSite]] = defaultdict(list)
        self._folders: dict[str, list[SourceFile]] = defaultdict(list)
        self._stems: dict[str, list[SourceFile]] = defaultdict(list)
        for file in files:
            self.add(file)

    def add(self, file: SourceFile) -> None:
        self.files[file.path] = file
        place = PurePosixPath(file.path)
        self._folders[str(place.parent)].append(file)
        stem = place.stem if place.stem not in ("__init__", "index", "mod") else place.parent.name
        self._stems[stem].append(file)
        if file.language == "go":
            self._stems[place.parent.name].append(file)
        family = _family(file)
        for scope in file.scopes:
            if scope.kind in ("module", "class"):
                for name in scope.names:
                    self._constants[family, name].append(scope)
                for name, functions in scope.functions.items():
                    self._functions[family, name] += functions
                for name, made in scope.classes.items():
                    self._classes[family, name].append(made)
                    for base in made.bases:
                        self._heirs[family, base].append(made)
        for site in file.calls:
            self._calls[site.call.method].append(site)

    # -- definitions ------------------------------------------------------------

    def classes(self, name: str, file: SourceFile) -> list[Scope]:
        """Classes of that name, the nearest first, only those of the nearest place."""
        return self._nearest(self._classes.get((_family(file), name), []), name, file)

    def functions(self, name: str, file: SourceFile) -> list[Scope]:
        """Functions of that name that this file may mean: its own, imported, of its folder, or the only one."""
        found = self._functions.get((_family(file), name), [])
        if not found:
            self._want(name, file)
        return self._nearest(found, name, file)

    def constants(self, name: str, file: SourceFile) -> list[Assigned]:
        """What a name outside this file's own scopes is given, if it is clear which one is meant."""
        homes = self._constants.get((_family(file), name), [])
        if not homes:
            self._want(name, file)
            return []
        near = self._nearest(homes, name, file)
        return [given for home in near for given in home.names[name]]

    def modules(self, name: str, file: SourceFile) -> list[Scope]:
        """The files that an imported name, or a package, stands for."""
        module, there = file.imports.get(name, ("", ""))
        if not module:
            return []
        stem = there if there and there != "default" and self._stems.get(there) else _tail(module)
        found = [each for each in self._stems.get(stem, []) if _family(each) == _family(file)]
        return [each.module for each in _best(found, module)]

    def heirs(self, scope: Scope) -> list[Scope]:
        return self._heirs.get((_family(scope.file), scope.name), [])

    def parents(self, scope: Scope) -> list[Scope]:
        return [found for base in scope.bases for found in self.classes(base, scope.file)]

    def siblings(self, scope: Scope) -> list[Scope]:
        """The same class as other files of the folder tell it (Go writes methods where it likes)."""
        if scope.file.language != "go":
            return []
        return [each for each in self._classes.get(("go", scope.name), [])
                if each is not scope and _folder(each.file) == _folder(scope.file)]

    def sites(self, scope: Scope) -> list[CallSite]:
        """Calls of a function or method; of a constructor, calls of its class."""
        name = scope.name
        if name in _CONSTRUCTORS:
            name = scope.class_name
            found = self._calls.get(name, [])
            found = found + [site for site in self._calls.get("new", [])
                             if isinstance(site.call.receiver, Name) and site.call.receiver.name == name]
        else:
            found = self._calls.get(name, [])
        if self.wanting and len(name) > 3:
            place = PurePosixPath(scope.file.path)
            stem = place.parent.name if place.stem in ("__init__",
                                                       "index") or scope.file.language == "go" else place.stem
            self.callers_wanted.add((name, scope.class_name or stem))
        return [site for site in found if _family(site.scope.file) == _family(scope.file) and site.scope is not scope]

    # -- which of several ------------------------------------------------------------

    def _nearest(self, found: list[Scope], name: str, file: SourceFile) -> list[Scope]:
        if not found:
            return []
        own = [scope for scope in found if scope.file is file]
        if own:
            return own
        module = file.imports.get(name, ("", ""))[0]
        if module:
            imported = _best([scope.file for scope in found], module, strict=True)
            if imported:
                return [scope for scope in found if scope.file in imported]
        beside = [scope for scope in found if _folder(scope.file) == _folder(file)]
        if beside:
            return beside
        return found if len({id(scope.file) for scope in found}) == 1 or len(found) <= 3 else []

    def _want(self, name: str, file: SourceFile) -> None:
        if not self.wanting:
            return
        if name in file.imports or _CONSTANT.match(name) or name.endswith(("_key", "Key", "_prefix")) \
                or (file.language == "go" and _LOCAL.match(name)):
            self.wanted.add(name)


def _family(file: SourceFile) -> str:
    return _FAMILIES.get(file.language, file.language)


def _folder(file: SourceFile) -> str:
    return str(PurePosixPath(file.path).parent)


def _tail(module: str) -> str:
    parts = [part for part in re.split(r"[./\\]", module.removesuffix(".js").removesuffix(".ts")) if part]
    return parts[-1] if parts else ""


def _best(files: list[SourceFile], module: str, strict: bool = False) -> list[SourceFile]:
    """Those whose path shares the longest end with the module's name."""
    wanted = [part for part in re.split(r"[./\\]", module) if part]
    scored: dict[int, list[SourceFile]] = defaultdict(list)
    for file in files:
        place = PurePosixPath(file.path)
        parts = [*place.parent.parts, place.stem]
        if place.stem in ("__init__", "index"):
            parts = parts[:-1]
        score = max(_common(parts, wanted), _common(list(place.parent.parts), wanted)
                    if file.language in ("go", "java") else 0)
        scored[score].append(file)
    if not scored or (strict and max(scored) == 0):
        return []
    return scored[max(scored)]


def _common(left: list[str], right: list[str]) -> int:
    count = 0
    for one, other in zip(reversed(left), reversed(right), strict=False):
        if one != other:
            break
        count += 1
    return count

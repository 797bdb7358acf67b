"""Where names live: files, classes and functions, and what is assigned in them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from keystead.inventory.code.expressions import Call, Expr


@dataclass(slots=True, eq=False)
class Assigned:
    """One assignment. ``path`` are the blocks around it: it certainly happened for whoever stands in the same ones."""

    expr: Expr
    scope: "Scope"
    line: int
    path: tuple[int, ...] = ()
    span: tuple[int, int] = (0, 0)


@dataclass(slots=True, eq=False)
class Param:
    """A parameter: its name, its default, and the words of its type."""

    name: str
    default: Expr | None = None
    type: str = ""
    rest: bool = False  # it takes all arguments that are left


@dataclass(slots=True, eq=False)
class Scope:
    """A file (``module``), a class or a function."""

    kind: str
    name: str
    file: "SourceFile"
    parent: "Scope | None" = None
    line: int = 0
    params: list[Param] = field(default_factory=list)
    names: dict[str, list[Assigned]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    returns: list[Assigned] = field(default_factory=list)
    functions: "dict[str, list[Scope]]" = field(default_factory=dict)
    classes: "dict[str, Scope]" = field(default_factory=dict)
    bases: list[str] = field(default_factory=list)
    owner: str = ""  # the class of a method that is written outside it
    path: tuple[int, ...] = ()

    @property
    def qualified(self) -> str:
        """``Class.method``; empty for a file."""
        names: list[str] = []
        scope: Scope | None = self
        while scope is not None and scope.kind != "module":
            if scope.name:
                names.append(scope.name)
            if scope.owner:
                names.append(scope.owner)
            scope = scope.parent
        return ".".join(reversed(names))

    def around(self) -> "Iterator[Scope]":
        """This scope and those around it, from within."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def param(self, name: str) -> Param | None:
        for param in self.params:
            if param.name == name:
                return param
        return None

    @property
    def class_name(self) -> str:
        """The class that ``self`` is of here; empty outside a class."""
        for scope in self.around():
            if scope.owner:
                return scope.owner
            if scope.kind == "class":
                return scope.name
        return ""


@dataclass(slots=True, eq=False)
class CallSite:
    """A call and where it stands."""

    call: Call
    scope: Scope
    path: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class SourceFile:
    """What one file says. ``imports`` gives for a name here the module and the name there (empty: the module)."""

    path: str
    language: str
    data: bytes
    module: Scope = field(init=False)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    calls: list[CallSite] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    speaks_redis: bool = False  # it imports or names a client of Redis
    broken: bool = False  # the grammar did not understand all of it

    def __post_init__(self) -> None:
        self.module = Scope("module", "", self)
        self.scopes.append(self.module)

    def text(self, span: tuple[int, int]) -> str:
        """The source of a span, on one line."""
        return " ".join(self.data[span[0] : span[1]].decode("utf-8", "replace").split())

"""Follows an expression to what it says: through variables, constants, members, functions and their parameters."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final

from keystead.inventory.code.expressions import (
    SELF,
    Arithmetic,
    Call,
    Choice,
    Expr,
    Index,
    Items,
    Joined,
    Lambda,
    Member,
    Name,
    Number,
    Opaque,
    Table,
    Text,
)
from keystead.inventory.code.project import Project
from keystead.inventory.code.scopes import Assigned, CallSite, Param, Scope
from keystead.inventory.code.shapes import Shape, Var, joined, literal, variable

_MOST: Final = 24  # forms of one key
_DEEPEST: Final = 24
_STEPS: Final = 800  # for one expression; a program can tie itself into knots
_CONSTRUCTORS: Final = ("__init__", "constructor", "initialize")
_KINDS: Final = {"int": "integer", "int64": "integer", "int32": "integer", "uint": "integer", "uint64": "integer",
                 "uint32": "integer", "long": "integer", "integer": "integer", "number": "integer", "uuid": "uuid",
                 "uuid.uuid": "uuid", "bigint": "integer"}

_DEFAULT: Final = -1  # the line of what a parameter is if nobody gives it

Value = tuple[Expr, "Frame"]


@dataclass(frozen=True, eq=False)
class Frame:
    """Where an expression stands. ``env`` holds what parameters of functions were given on the way here."""

    scope: Scope
    line: int = 0
    path: tuple[int, ...] = ()
    env: dict[tuple[Scope, str], "Value"] = field(default_factory=dict)

    def at(self, given: Assigned) -> "Frame":
        return Frame(given.scope, given.line, given.path, self.env)

    def given(self, env: dict[tuple[Scope, str], "Value"]) -> "Frame":
        return replace(self, env={**self.env, **env})


def frame_of(site: CallSite) -> Frame:
    """The frame that a call stands in."""
    return Frame(site.scope, site.call.line, site.path)


class Resolver:
    """Gives the forms that an expression may have. Never fails; what it cannot follow becomes a variable."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.assumed: dict[tuple[Scope, str], Value] = {}  # parameters, while a caller's view is taken
        self.taken = 0  # steps, of all expressions together
        self._steps = self._given = 0
        self._busy: set[tuple[int, int]] = set()

    def forms(self, expr: Expr, frame: Frame) -> list[Shape]:
        """All forms of a key, without repetitions."""
        self.refill()
        found = self.resolve(expr, frame, 0)
        return list({shape.parts: shape for shape in found}.values())[:_MOST]

    def refill(self, steps: int = _STEPS) -> None:
        """Begin anew: so many steps may be taken until the next time."""
        self.taken += min(self._given - self._steps, self._given)
        self._steps = self._given = steps
        self._busy.clear()

    def tired(self) -> bool:
        """Take one step. Whether all of them are taken."""
        self._steps -= 1
        return self._steps < 0

    def resolve(self, expr: Expr, frame: Frame, depth: int) -> list[Shape]:
        mark = (id(expr), id(frame.scope))
        if depth > _DEEPEST or self.tired() or mark in self._busy:
            return [variable(expr)]
        self._busy.add(mark)
        try:
            return self._resolve(expr, frame, depth + 1)[:_MOST]
        finally:
            self._busy.discard(mark)

    def _resolve(self, expr: Expr, frame: Frame, depth: int) -> list[Shape]:
        match expr:
            case Text(value):
                return [literal(value)]
            case Number(value):
                return [literal(f"{value:g}")]
            case Joined(parts):
                return self.concatenated(parts, frame, depth)
            case Name(name):
                return self._named(expr, self.values(name, frame), name, frame, depth)
            case Member(base, name):
                found = self._named(expr, self.members(base, name, frame, depth), name, frame, depth)
                if name in ("value", "val") and not any(shape.has_words for shape in found):
                    inner = self.resolve(base, frame, depth)
                    return inner if any(shape.has_words for shape in inner) else found
                return found
            case Arithmetic("+", left, right):
                return self.concatenated([left, right], frame, depth)
            case Arithmetic("%", left, right):
                from keystead.inventory.code.resolving_calls import filled

                arguments: list[Expr] = right.items if isinstance(right, Items) else [right]
                named = {key.value: value for key, value in right.pairs if isinstance(key, Text)} \
                    if isinstance(right, Table) else {}
                return filled(self, left, arguments, named, "percent", frame, depth)
            case Choice(options):
                return _worded([shape for option in options for shape in self.resolve(option, frame, depth)])
            case Index(base, key):
                return self._indexed(expr, base, key, frame, depth)
            case Call():
                from keystead.inventory.code.resolving_calls import called

                return called(self, expr, frame, depth)
            case Lambda(_, returns):
                return [shape for each in returns for shape in self.resolve(each, frame, depth)] or [variable(expr)]
        return [variable(expr)]

    def concatenated(self, parts: Iterable[Expr], frame: Frame, depth: int) -> list[Shape]:
        options = [self.resolve(part, frame, depth) for part in parts]
        many = 1
        for each in options:
            many *= len(each)
        if many > _MOST:  # too many together: keep the choice where it is smallest
            options = [each if len(each) <= 4 else each[:1] for each in options]
        return [joined(list(pieces)) for pieces in list(product(*options))[:_MOST]]

    def _named(self, expr: Expr, values: list[Value], name: str, frame: Frame, depth: int) -> list[Shape]:
        """What a name says: the text of its values, or a variable that is called after it."""
        found: list[Shape] = []
        asked: tuple[Scope, str] | None = None
        otherwise = ""
        for value, where in values:
            if isinstance(value, Opaque) and value.words.startswith("parameter "):
                asked = (where.scope, value.words.removeprefix("parameter "))
                continue
            for shape in self.resolve(value, where, depth):
                if where.line == _DEFAULT:
                    otherwise = otherwise or shape.text if len(shape.parts) == 1 else otherwise
                elif shape.text:
                    found.append(shape.followed())
                elif shape.parts and isinstance(first := shape.parts[0], Var):
                    asked, otherwise = asked or first.asked, otherwise or first.otherwise
        if found:
            return _worded(found)
        shape = variable(expr, self.kind_of(name, frame))
        if asked is None:
            return [shape]
        return [Shape(tuple(replace(part, asked=asked, otherwise=otherwise) if isinstance(part, Var) else part
                            for part in shape.parts))]

    def kind_of(self, name: str, frame: Frame) -> str:
        for scope in frame.scope.around():
            if name in scope.types:
                return _KINDS.get(scope.types[name].lower(), "")
        return ""

    def _indexed(self, expr: Expr, base: Expr, key: Expr, frame: Frame, depth: int) -> list[Shape]:
        for value, where in self.values_of(base, frame, depth):
            if isinstance(value, Table):
                words = {shape.text for shape in self.resolve(key, frame, depth)}
                chosen = [each for name, each in value.pairs if isinstance(name, Text) and name.value in words]
                found = [shape for each in chosen or [each for _, each in value.pairs]
                         for shape in self.resolve(each, where, depth) if shape.has_words]
                if found:
                    return [shape.followed() for shape in found]
            if isinstance(value, Items) and value.items:
                number = int(key.value) if isinstance(key, Number) else None
                picked = value.items if number is None or not -len(value.items) <= number < len(value.items) \
                    else [value.items[number]]
                found = [shape for each in picked for shape in self.resolve(each, where, depth) if shape.text]
                if found:
                    return [shape.followed() for shape in found]
        return [variable(expr)]

    # -- names ------------------------------------------------------------

    def values_of(self, expr: Expr, frame: Frame, depth: int = 0) -> list[Value]:
        """The expressions behind an expression: itself, unless it is a name or a member."""
        if depth > _DEEPEST or self.tired():
            return []
        if isinstance(expr, Name):
            return [found for value, where in self.values(expr.name, frame)
                    for found in (self.values_of(value, where, depth + 3) if value is not expr else [])]
        if isinstance(expr, Member):
            return [found for value, where in self.members(expr.base, expr.name, frame, depth + 1)
                    for found in self.values_of(value, where, depth + 3)]
        return [(expr, frame)]

    def values(self, name: str, frame: Frame) -> list[Value]:
        """What a name may have been given, where it is used."""
        for scope in frame.scope.around():
            bound = frame.env.get((scope, name)) or self.assumed.get((scope, name))
            if bound is not None and not _given_before(scope.names.get(name, []), frame):
                return [bound]
            here = scope.names.get(name, [])
            if here:
                found, whole = _reaching(here, frame) if scope is frame.scope else (here, True)
                values = [(given.expr, frame.at(given)) for given in found]
                param = None if whole else scope.param(name)
                if values or param is not None:
                    return [*values, *(_parameter(param, scope, frame) if param is not None else ())]
            param = scope.param(name)
            if param is not None:
                return list(_parameter(param, scope, frame))
        if frame.scope.file.language == "ruby" and (own := self._said_by_method(name, frame)):
            return own
        return [(given.expr, frame.at(given)) for given in self.imported(name, frame)]

    def _said_by_method(self, name: str, frame: Frame) -> list[Value]:
        """What a method of the same class gives: in Ruby one without arguments is called by its bare name."""
        around = self.objects(Name(SELF), frame, 0) if name != SELF else []
        return [(given.expr, frame.at(given)) for scope, _ in around for each in self.lineage(scope, name)
                for function in each.functions.get(name, []) if not function.params for given in function.returns]

    def imported(self, name: str, frame: Frame) -> list[Assigned]:
        file = frame.scope.file
        module, there = file.imports.get(name, ("", ""))
        if module and there and there != name:
            for scope in self.project.modules(name, file):
                if there in scope.names:
                    return scope.names[there]
            return self.project.constants(there, file)
        return self.project.constants(name, file)

    def members(self, base: Expr, name: str, frame: Frame, depth: int) -> list[Value]:
        """What a member of an object, class, module or table may hold."""
        found: list[Value] = []
        if self.tired():
            return found
        if isinstance(base, Name) and base.name != SELF:
            for module in self.project.modules(base.name, frame.scope.file):
                found += [(given.expr, frame.at(given)) for given in module.names.get(name, [])]
        for scope, env in self.objects(base, frame, depth):
            inside = frame.given(env)
            if (scope, name) in env:  # a field that no constructor is written for
                return [env[scope, name]]
            for each in self.lineage(scope, name):
                found += [(given.expr, inside.at(given)) for given in each.names.get(name, [])]
                found += [(given.expr, inside.at(given)) for function in each.functions.get(name, [])
                          if not function.params for given in function.returns]  # a property
            if found:
                return found
        for value, where in self.values_of(base, frame, depth + 1) if not found else ():
            if isinstance(value, Table):
                found += [(each, where) for key, each in value.pairs if isinstance(key, Text) and key.value == name]
        if not found and not (isinstance(base, Name) and base.name == SELF) and len(name) > 3:
            found = [(given.expr, frame.at(given)) for given in self.project.constants(name, frame.scope.file)
                     if isinstance(given.expr, Text | Joined | Number | Arithmetic | Call)]
        return found

    def objects(self, expr: Expr, frame: Frame, depth: int) -> list[tuple[Scope, dict[tuple[Scope, str], Value]]]:
        """The classes that an expression may be, or be an object of, with what its constructor was given."""
        file = frame.scope.file
        if depth > _DEEPEST or self.tired():
            return []
        if isinstance(expr, Name):
            if expr.name == SELF:
                name = frame.scope.class_name
                return [(scope, {}) for scope in (self.project.classes(name, file) if name else [])]
            classes = self.project.classes(file.imports.get(expr.name, ("", ""))[1] or expr.name, file)
            if classes:
                return [(scope, {}) for scope in classes]
        if isinstance(expr, Call):
            name = expr.method if expr.method != "new" or not isinstance(expr.receiver, Name) else expr.receiver.name
            return [(scope, self.constructed(scope, expr, frame)) for scope in self.project.classes(name, file)]
        if not isinstance(expr, Name | Member):
            return []
        found = [each for value, where in (self.values(expr.name, frame) if isinstance(expr, Name) else
                                           self.members(expr.base, expr.name, frame, depth + 2))
                 if value is not expr for each in self.objects(value, where, depth + 3)]
        if found:
            return found
        return [(scope, {}) for scope in self.project.classes(self.type_of(expr, frame, depth), file)]

    def type_of(self, expr: Expr, frame: Frame, depth: int = 0) -> str:
        """The bare name of a declared type: ``Store`` of ``*cache.Store``, ``Optional[Store]``, ``Promise<Store>``."""
        name = expr.name if isinstance(expr, Name | Member) else ""
        scopes = [scope for scope, _ in self.objects(expr.base, frame, depth + 4)] if isinstance(expr, Member) \
            else frame.scope.around()
        for scope in scopes:
            if name in scope.types:
                words = [word for word in scope.types[name].replace("[", " ").replace("]", " ").replace("<", " ")
                         .replace(">", " ").replace("|", " ").replace("*", " ").replace(".", " ").split() if word]
                return next((word for word in reversed(words) if word not in ("None", "null", "undefined")), "")
        return ""

    def constructed(self, scope: Scope, call: Call, frame: Frame) -> dict[tuple[Scope, str], Value]:
        """What the parameters of a class's constructor get from a call of it."""
        for each in self.lineage(scope, ""):
            for name in (*_CONSTRUCTORS, each.name):
                for function in each.functions.get(name, []):
                    if len(function.params) >= len(call.args):
                        return bindings(function, call, frame)
        if scope.file.language == "java":  # a record, or a constructor made by an annotation: fields in their order
            return {(scope, name): (arg, frame) for name, arg in zip(scope.types, call.args, strict=False)}
        return {}

    def lineage(self, scope: Scope, name: str) -> Iterator[Scope]:
        """The class, those it inherits from, and those that inherit from it: where a member may be defined."""
        seen: set[int] = set()
        for heir in self.project.heirs(scope):  # what is called on the object itself may be an heir's
            if name in heir.names or name in heir.functions:
                seen.add(id(heir))
                yield heir
        for level in ([scope], self.project.siblings(scope), self.project.parents(scope),
                      [above for each in self.project.parents(scope) for above in self.project.parents(each)],
                      self.project.heirs(scope)):
            defines = False
            for each in level:
                if id(each) not in seen:
                    seen.add(id(each))
                    defines = defines or name in each.names or name in each.functions
                    yield each
            if defines:
                return


def bindings(function: Scope, call: Call, frame: Frame) -> dict[tuple[Scope, str], Value]:
    """What each parameter of a function gets from a call, defaults included."""
    env: dict[tuple[Scope, str], Value] = {}
    for position, param in enumerate(function.params):
        if param.rest:
            env[function, param.name] = (Items(call.args[position:]), frame)
        elif position < len(call.args):
            env[function, param.name] = (call.args[position], frame)
        elif param.name in call.named:
            env[function, param.name] = (call.named[param.name], frame)
        elif param.default is not None:
            env[function, param.name] = (param.default, Frame(function))
    return env


def _parameter(param: Param, scope: Scope, frame: Frame) -> Iterator[Value]:
    if param.default is not None and not isinstance(param.default, Opaque):
        yield param.default, Frame(scope.parent or scope, _DEFAULT, (), frame.env)
    yield Opaque(f"parameter {param.name}"), Frame(scope, 0, (), frame.env)


def _given_before(given: list[Assigned], frame: Frame) -> bool:
    return any(each.line < frame.line for each in given)


def _reaching(given: list[Assigned], frame: Frame) -> tuple[list[Assigned], bool]:
    """The assignments that a use may see, and whether one of them certainly happened before it."""
    if not frame.line:
        return given, True
    before = [each for each in given if each.line < frame.line] or [each for each in given if each.line == frame.line]
    found: list[Assigned] = []
    for each in reversed(before):
        found.append(each)
        if frame.path[: len(each.path)] == each.path:
            return found, True
    return found or [each for each in given if each.line > frame.line], False


def _worded(shapes: list[Shape]) -> list[Shape]:
    """Those that say something, if any does: ``None`` and a key are a key."""
    return [shape for shape in shapes if shape.text] or shapes[:1]

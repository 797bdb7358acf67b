"""What calls give that make text: formatting, joining, and functions of the program itself."""

import re
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Final

from keystead.inventory.code.commands import Keys, command_of_method
from keystead.inventory.code.expressions import SELF, Call, Expr, Items, Lambda, Member, Name, Table, Text
from keystead.inventory.code.scopes import Scope
from keystead.inventory.code.shapes import Shape, Var, joined, literal, variable
from keystead.inventory.code.wishes import wishes_of

if TYPE_CHECKING:
    from keystead.inventory.code.resolving import Frame, Resolver, Value

# What gives the text it was given, or nearly: the case of a key's variable part does not matter here.
_SAME_ARGUMENT: Final = frozenset((
    "str", "string", "String", "bytes", "ByteString", "repr", "intern", "force_str", "force_text", "from", "Sprint",
    "valueOf",
    "smart_str", "SafeEncoder", "shared", "raw", "of", "copyFromUtf8", "to_bytes", "ensure_bytes", "key_bytes",
))
_SAME_RECEIVER: Final = frozenset((
    "encode", "decode", "freeze", "dup", "strip", "lower", "upper", "toString", "to_s", "trim", "to_str", "getBytes",
    "toLowerCase", "toUpperCase", "downcase", "upcase", "intern", "String", "html_safe", "rstrip", "lstrip", "value",
    "toJSON", "b", "valueOf", "to_sym", "force_encoding", "stringValue", "getValue", "squish",
))
_FORMATTERS: Final = frozenset(("format", "sprintf", "Sprintf", "formatted", "vsprintf", "Appendf", "fmt",
                                "format_map"))
_MAPPERS: Final = frozenset(("map", "flatMap", "collect", "flat_map", "stream", "toList", "to_a", "toArray", "list",
                             "tuple",
                             "set", "sorted", "asList", "of", "Set", "newHashSet", "newArrayList", "uniq", "compact"))
_ENVIRONMENT: Final = frozenset(("getenv", "get", "fetch", "env", "getOrDefault", "GetString", "config", "getProperty"))
_NAMES_KEYS: Final = re.compile(r"key|prefix|channel|topic|namespace|(?:^|_)ns(?:_|$)|queue|redis|lock|path", re.I)

_PERCENT: Final = re.compile(
    r"%%|%\((?P<name>\w+)\)[#0\- +]*\d*(?:\.\d+)?(?P<kind1>[a-zA-Z])"
    r"|%\{(?P<ruby>\w+)\}|%<(?P<angle>\w+)>[^a-zA-Z]*(?P<kind3>[a-zA-Z])"
    r"|%(?:\[(?P<go>\d+)\]|(?P<java>\d+)\$)?[#0\-+ ,]*\*?\d*(?:\.\d+)?(?P<kind2>t?[a-zA-Z])")
_BRACES: Final = re.compile(r"\{\{|\}\}|\{(?P<name>\w*)(?:[.\[][^{}:!]*)?(?:![rsa])?(?::[^{}]*)?\}")


def called(resolver: "Resolver", call: Call, frame: "Frame", depth: int) -> list[Shape]:
    """The forms of what a call gives."""
    method, receiver = call.method, call.receiver
    made = _text_made(resolver, call, method, receiver, frame, depth)
    if made is not None:
        return made
    found = _own_functions(resolver, call, frame, depth)
    if found:
        return found
    field = field_of_getter(call)
    if field is not None:
        return resolver.resolve(field, frame, depth)
    if method in _ENVIRONMENT and len(call.args) == 2 and isinstance(call.args[1], Text):
        return [shape.followed() for shape in resolver.resolve(call.args[1], frame, depth)]
    return [variable(call)]


def field_of_getter(call: Call) -> Member | None:
    """The field that ``getPrefix()`` gives, where no such method is written: an annotation made it."""
    method = call.method
    if call.args or call.receiver is None or not re.match(r"get[A-Z]", method):
        return None
    return Member(call.receiver, method[3].lower() + method[4:])


def _text_made(
    resolver: "Resolver", call: Call, method: str, receiver: Expr | None, frame: "Frame", depth: int
) -> list[Shape] | None:
    args = call.args
    if method == "each of" and args:
        items = elements(resolver, args[0], frame, depth)
        found = [shape for item, where in items for shape in resolver.resolve(item, where, depth)]
        return found or resolver.resolve(args[0], frame, depth)
    if method in _FORMATTERS:
        return _formatted(resolver, call, receiver, frame, depth)
    if method in ("join", "Join"):
        return _joined(resolver, receiver, args, frame, depth)
    if method in ("concat", "append", "plus") and receiver is not None and args:
        base = resolver.resolve(receiver, frame, depth)
        if any(shape.text for shape in base) or method == "append":
            return resolver.concatenated([receiver, *args], frame, depth)
    if method in ("StringBuilder", "StringBuffer"):
        return resolver.resolve(args[0], frame, depth) if args else [literal("")]
    if method == "Sprint" and len(args) > 1:
        return resolver.concatenated(args, frame, depth)
    if method in _SAME_ARGUMENT and args and (receiver is None or not _is_own(resolver, call, frame)):
        found = resolver.resolve(args[0], frame, depth)
        return found if any(shape.text for shape in found) or method != "of" else None
    if method in _SAME_RECEIVER and receiver is not None and not _is_own(resolver, call, frame):
        found = resolver.resolve(receiver, frame, depth)
        return found if any(shape.text for shape in found) else [variable(call)]
    if method in ("replace", "replaceAll", "removeprefix", "gsub", "sub") and receiver is not None and len(args) == 2:
        return _replaced(resolver, receiver, args, frame, depth)
    return None


def _is_own(resolver: "Resolver", call: Call, frame: "Frame") -> bool:
    return bool(functions_called(resolver, call, frame))


def _formatted(
    resolver: "Resolver", call: Call, receiver: Expr | None, frame: "Frame", depth: int
) -> list[Shape] | None:
    args = call.args
    module = isinstance(receiver, Name) and receiver.name in ("fmt", "String", "util", "Kernel", "MessageFormat",
                                                              "self")
    if receiver is None or module:  # format(template, …)
        if not args:
            return None
        braces = isinstance(receiver, Name) and receiver.name == "MessageFormat"
        return filled(resolver, args[0], args[1:], call.named, "braces" if braces else "percent", frame, depth)
    python = frame.scope.file.language == "python"
    template = resolver.resolve(receiver, frame, depth)
    if not any(shape.text for shape in template):
        return [variable(call)] if python else None
    return filled(resolver, receiver, args, call.named, "braces" if python else "percent", frame, depth)


def filled(
    resolver: "Resolver", template: Expr, args: list[Expr], named: dict[str, Expr], style: str, frame: "Frame",
    depth: int
) -> list[Shape]:
    """A template with its placeholders filled in."""
    expression = _PERCENT if style == "percent" else _BRACES
    found: list[Shape] = []
    for shape in resolver.resolve(template, frame, depth):
        options: list[list[Shape]] = []
        taken = 0
        for part in shape.parts:
            if isinstance(part, Var):
                options.append([Shape((part,))])
                continue
            at = 0
            for mark in expression.finditer(part):
                options.append([literal(part[at : mark.start()])])
                at = mark.end()
                if mark.group() in ("%%", "{{", "}}"):
                    options.append([literal(mark.group()[0])])
                    continue
                value, taken = _chosen(mark, args, named, taken)
                options.append(_value_forms(resolver, value, mark, frame, depth))
            options.append([literal(part[at:])])
        made = [joined(list(pieces)) for pieces in list(product(*options))[:24]]
        found += [each.followed() if shape.certainty != made[0].certainty else each for each in made]
    return found


def _chosen(mark: re.Match[str], args: list[Expr], named: dict[str, Expr], taken: int) -> tuple[Expr | str, int]:
    groups = {key: value for key, value in mark.groupdict().items() if value}
    name = groups.get("name") or groups.get("ruby") or groups.get("angle") or ""
    number = groups.get("go") or groups.get("java") or ""
    if name.isdigit():
        return (args[int(name)] if int(name) < len(args) else name), taken
    if name:
        return named.get(name, name), taken
    position = int(number) - 1 if number else taken
    return (args[position] if 0 <= position < len(args) else "value"), taken if number else taken + 1


def _value_forms(
    resolver: "Resolver", value: Expr | str, mark: re.Match[str], frame: "Frame", depth: int
) -> list[Shape]:
    letter = next((found for key in ("kind1", "kind2", "kind3") if (found := mark.groupdict().get(key))), "")
    kind = "integer" if letter in ("d", "i", "u") else ""
    if isinstance(value, str):
        return [Shape((Var(value.lower() if value and not value[0].isdigit() else "value", kind),))]
    forms = resolver.resolve(value, frame, depth)
    if any(shape.text for shape in forms):
        return forms
    return [Shape(tuple(replace(part, kind=part.kind or kind) if isinstance(part, Var) else part
                        for part in shape.parts)) for shape in forms[:1]]


def _joined(
    resolver: "Resolver", receiver: Expr | None, args: list[Expr], frame: "Frame", depth: int
) -> list[Shape] | None:
    """``":".join(parts)``, ``parts.join(":")``, ``strings.Join(parts, ":")`` and ``String.join(":", a, b)``."""
    if receiver is None:
        return None
    language = frame.scope.file.language
    separator: Expr | None
    pieces: list[tuple[Expr, Frame]]
    if language == "python" and args:
        separator, pieces = receiver, elements(resolver, args[0], frame, depth)
    elif language == "go" and len(args) == 2:
        separator, pieces = args[1], elements(resolver, args[0], frame, depth)
    elif language == "java" and len(args) >= 2:
        separator = args[0]
        pieces = [(arg, frame) for arg in args[1:]] if len(args) > 2 else elements(resolver, args[1], frame, depth)
    else:
        separator, pieces = args[0] if args else Text(""), elements(resolver, receiver, frame, depth)
    between = resolver.resolve(separator, frame, depth)[0] if separator is not None else literal("")
    if not between.text and not isinstance(separator, Text):
        return None
    if not pieces:
        return [variable(args[0] if language == "python" and args else receiver)]
    options: list[list[Shape]] = []
    for position, (piece, where) in enumerate(pieces):
        if position:
            options.append([between])
        options.append(resolver.resolve(piece, where, depth))
    return [joined(list(each)) for each in list(product(*options))[:24]]


def _replaced(
    resolver: "Resolver", receiver: Expr, args: list[Expr], frame: "Frame", depth: int
) -> list[Shape] | None:
    """``TEMPLATE.replace("{id}", id)``."""
    if not isinstance(args[0], Text):
        return None
    wanted = args[0].value
    found: list[Shape] = []
    for shape in resolver.resolve(receiver, frame, depth):
        pieces: list[Shape] = []
        for part in shape.parts:
            if isinstance(part, str) and wanted and wanted in part:
                first, *others = part.split(wanted)
                pieces.append(literal(first))
                for other in others:
                    pieces += [resolver.resolve(args[1], frame, depth)[0], literal(other)]
            else:
                pieces.append(Shape((part,)))
        found.append(joined(pieces))
    return found if any(shape.text for shape in found) else None


def elements(resolver: "Resolver", expr: Expr, frame: "Frame", depth: int) -> "list[Value]":
    """The items of a list, wherever it is written; of a mapped one what each item becomes; keys of a table."""
    if depth > 20:
        return []
    found: list[Value] = []
    for value, where in resolver.values_of(expr, frame, depth):
        if isinstance(value, Items):
            for item in value.items:
                many = elements(resolver, item.args[0], where, depth + 2) \
                    if isinstance(item, Call) and item.method == "each of" else []
                found += many or [(item, where)]
        elif isinstance(value, Table):
            found += [(key, where) for key, _ in value.pairs]
        elif isinstance(value, Call) and (command := command_of_method(value.method)) and command.keys is Keys.PATTERN:
            found += [(wish.expr, where) for wish in wishes_of(value, command, where.scope.file.language)]
        elif isinstance(value, Call) and value.method in _MAPPERS:
            found += _mapped(resolver, value, where, depth)
    return found


def _mapped(resolver: "Resolver", call: Call, frame: "Frame", depth: int) -> "list[Value]":
    function = call.block or next((arg for arg in call.args if isinstance(arg, Lambda)), None)
    if isinstance(function, Lambda) and call.method in ("map", "flatMap", "collect", "flat_map"):
        return [(each, frame) for each in function.returns]
    if call.receiver is not None and (not call.args or call.method in ("collect", "stream")):
        return elements(resolver, call.receiver, frame, depth + 1)
    if call.method in ("asList", "of", "newHashSet", "newArrayList") or (call.method in ("Set", "set")
                                                                         and len(call.args) > 1):
        return [(arg, frame) for arg in call.args]
    return elements(resolver, call.args[0], frame, depth + 1) if call.args else []


# -- functions of the program ----------


def _own_functions(resolver: "Resolver", call: Call, frame: "Frame", depth: int) -> list[Shape]:
    from keystead.inventory.code.resolving import bindings

    found: list[Shape] = []
    for function, env in functions_called(resolver, call, frame):
        inside = frame.given({**env, **bindings(function, call, frame)})
        for given in function.returns:
            found += resolver.resolve(given.expr, inside.at(given), depth)
    callee = call.callee
    for value, where in resolver.values_of(callee, frame, depth) if isinstance(callee,
                                                                               Name | Member) and not found else ():
        if isinstance(value, Lambda):
            at = Scope("function", "", where.scope.file, where.scope, params=[])
            env = {(at, name): (arg, frame) for name, arg in zip(value.params, call.args, strict=False)}
            inside = where.given(env)
            here = type(inside)(at, where.line, where.path, inside.env)
            found += [shape for each in value.returns for shape in resolver.resolve(each, here, depth)]
    worded = [shape.followed() for shape in found if shape.has_words]
    if not worded:  # a name that a caller may still fill in
        worded = [shape for shape in found if any(isinstance(part, Var) and part.asked for part in shape.parts)]
    return list({shape.parts: shape for shape in worded}.values())


def functions_called(
    resolver: "Resolver", call: Call, frame: "Frame"
) -> "list[tuple[Scope, dict[tuple[Scope, str], Value]]]":
    """The functions of the program that a call may mean, with what the object they belong to was made with."""
    method, base = call.method, call.receiver
    if not method:
        return []
    found: list[tuple[Scope, dict[tuple[Scope, str], Value]]] = []
    if base is None:
        for scope in frame.scope.around():
            here = scope.functions.get(method)
            if not here and scope.kind == "class":
                here = [each for above in resolver.lineage(scope, method) for each in above.functions.get(method, [])]
            if here:
                return [(each, {}) for each in _fitting(here, call)]
        there = frame.scope.file.imports.get(method, ("", ""))[1] or method
        return [(each, {}) for each in _fitting(resolver.project.functions(there, frame.scope.file), call)]
    if isinstance(base, Name) and base.name != SELF:
        for module in resolver.project.modules(base.name, frame.scope.file):
            found += [(each, {}) for each in module.functions.get(method, [])]
    if not found:
        for scope, env in resolver.objects(base, frame, 4):
            found += [(each, env) for above in resolver.lineage(scope, method)
                      for each in above.functions.get(method, [])]
    if not found and _NAMES_KEYS.search(method):
        found = [(each, {}) for each in resolver.project.functions(method, frame.scope.file)]
    chosen = _fitting([each for each, _ in found], call)
    return [(each, env) for each, env in found if each in chosen]


def _fitting(functions: list[Scope], call: Call) -> list[Scope]:
    """Of functions that share a name, those that take so many arguments, if there are such."""
    if len(functions) < 2:
        return functions
    many = len(call.args) + len(call.named)
    return [each for each in functions if len(each.params) == many] or functions

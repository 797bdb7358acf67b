"""Text that only looks like a key: no command was seen to use it. Kept apart, and always marked as a guess."""

import re
from collections.abc import Iterator
from typing import Final

from keystead.inventory.code.expressions import Arithmetic, Call, Expr, Joined, Lambda, Table, Text
from keystead.inventory.code.project import Project
from keystead.inventory.code.resolving import Frame, Resolver, frame_of
from keystead.inventory.code.scopes import SourceFile
from keystead.inventory.code.shapes import Part, Shape, Var, looks_like_a_key
from keystead.inventory.models import Source
from keystead.inventory.patterns import normalise

_NAMES: Final = re.compile(
    r"key(?!word|board|press|down|up|frame|error|s?trok|ring)|prefix|channel|redis|cache|lock(?!ed)"
    r"|queue|namespace", re.I)
_NOT_NAMES: Final = re.compile(
    r"log|error|message|msg|url|uri|path|css|class|style|sql|query|format|label|title|html|route|header|mime|host|addr|event"
    r"|scope|permission|role|public|private|ssh|api_key|secret|primary|foreign|import|registry", re.I)
_LOGGERS: Final = re.compile(
    r"^(?:log|logger|logging|console|print|puts|warn|info|debug|error|exception|raise|assert|expect|printf|println|fatal|panic"
    r"|errorf|new_?error|typeerror|t|translate|emit|on|once|require|import|describe|it|test)$|error|exception", re.I)
_FORMATS: Final = ("format", "Sprintf", "join", "Join", "sprintf", "formatted")


def loose_keys(project: Project, resolver: Resolver) -> Iterator[tuple[Shape, str, Source]]:
    """Forms that look like keys, where they stand, and the function they stand in."""
    for file in project.files.values():
        for name, expr, frame, line in _candidates(file):
            named = bool(_NAMES.search(name)) and not _NOT_NAMES.search(name)
            if not named and not (file.speaks_redis and not isinstance(expr, Text) and not _NOT_NAMES.search(name)):
                continue
            if not _has_colon(expr):
                continue
            for shape in _templates(resolver.forms(expr, frame)):
                if looks_like_a_key(shape) and (named or any(isinstance(part, Var) for part in shape.parts)):
                    yield shape, frame.scope.qualified, Source(file.path, line)


def _templates(shapes: list[Shape]) -> Iterator[Shape]:
    """Templates that nobody was seen to fill in, with variables for their placeholders."""
    for shape in shapes:
        parts: list[Part] = []
        for part in shape.parts:
            if isinstance(part, Var) or not re.search(r"[%{]", part):
                parts.append(part)
                continue
            pieces = re.split(r"\{([a-z_]\w*)\}", normalise(part).pattern)
            parts += [Var(piece) if position % 2 else piece for position, piece in enumerate(pieces) if piece]
        yield Shape(tuple(parts), shape.certainty)


def _candidates(file: SourceFile) -> Iterator[tuple[str, Expr, Frame, int]]:
    """Values of names, what functions return, and arguments: each with the name that tells what it is for."""
    for scope in file.scopes:
        for name, given in scope.names.items():
            for each in given:
                yield from _texts(name, each.expr, Frame(each.scope, each.line, each.path), each.line)
        if scope.kind == "function" and scope.name:
            for each in scope.returns:
                yield from _texts(scope.name, each.expr, Frame(scope, each.line, each.path), each.line)
    for site in file.calls:
        method = site.call.method
        if not method or _LOGGERS.search(method) or method in _FORMATS:
            continue
        for arg in site.call.args:
            if isinstance(arg, Joined | Arithmetic):
                yield method, arg, frame_of(site), site.call.line
        for name, arg in site.call.named.items():
            if isinstance(arg, Joined | Arithmetic | Text):
                yield name, arg, frame_of(site), site.call.line


def _texts(name: str, expr: Expr, frame: Frame, line: int) -> Iterator[tuple[str, Expr, Frame, int]]:
    if isinstance(expr, Text | Joined | Arithmetic) or (isinstance(expr, Call) and expr.method in _FORMATS):
        yield name, expr, frame, line
    elif isinstance(expr, Table) and len(expr.pairs) <= 300:
        for key, value in expr.pairs:
            inner = f"{name}.{key.value}" if isinstance(key, Text) else name
            for each in value.returns if isinstance(value, Lambda) else [value]:
                if isinstance(each, Text | Joined | Arithmetic):
                    yield inner, each, frame, line


def _has_colon(expr: Expr) -> bool:
    """Whether a colon stands in the expression itself: following all the others would take long and find little."""
    match expr:
        case Text(value):
            return ":" in value
        case Joined(parts):
            return any(_has_colon(part) for part in parts)
        case Arithmetic("+", left, right):
            return _has_colon(left) or _has_colon(right)
        case Arithmetic("%", left, _):
            return _has_colon(left) or not isinstance(left, Text)
        case Call():
            receiver = expr.receiver
            return any(_has_colon(arg) for arg in expr.args if isinstance(arg, Text | Joined)) \
                or (receiver is not None and _has_colon(receiver))
    return False

"""Calls that run a Lua script: the script's own commands, with the keys that the call gives it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from keystead.inventory.code.commands import Keys, command_of_method
from keystead.inventory.code.expressions import Call, Expr, Items, Number, Table, Text
from keystead.inventory.code.lua import is_script, named_keys, script_wishes, with_keys
from keystead.inventory.code.wishes import Wish
from keystead.inventory.models import Note, Source

if TYPE_CHECKING:
    from keystead.inventory.code.resolving import Frame, Resolver
    from keystead.inventory.code.scopes import SourceFile
    from keystead.inventory.code.uses import Use

_RUN: Final = frozenset(("run", "runro", "execute", "executesha", "exec", "call", "eval", "evalsha", "do", "runscript"))


def script_calls(call: Call, frame: "Frame", resolver: "Resolver") -> Iterator[Wish]:
    """What the script of a call does to the keys it is given; nothing if the call runs none."""
    found = _script_of(call, frame, resolver)
    if found is None:
        return
    text, keys, arguments = found
    for each in script_wishes(text):
        yield replace(each.wish, expr=with_keys(each.wish.expr, keys, arguments), span=None,
                      lasting=None if each.wish.lasting is None else
                      replace(each.wish.lasting, expr=with_keys(each.wish.lasting.expr, keys, arguments)))


def _script_of(call: Call, frame: "Frame", resolver: "Resolver") -> tuple[str, list[Expr], list[Expr]] | None:
    resolver.refill(500)
    command = command_of_method(call.method)
    args = call.args[1:] if frame.scope.file.language == "go" and call.args and not isinstance(call.args[0], Text) \
        else call.args
    if command is not None and command.keys is Keys.SCRIPT and args:
        text = _text(args[0], frame, resolver)
        if text:
            keys, arguments = _given(args[1:], call.named)
            return text, keys, arguments
        return None
    if "keys" in call.named:  # script(keys=[…], args=[…])
        text = _registered(call.callee, frame, resolver)
        if text:
            return text, _items(call.named["keys"]), _items(call.named.get("args"))
    if call.method.lower() in _RUN and call.receiver is not None:  # script.Run(ctx, rdb, []string{…}, …)
        listed = next((position for position, arg in enumerate(call.args) if isinstance(arg, Items | Call)
                       and _items(arg)), None)
        if listed is None:
            return None
        text = _registered(call.receiver, frame, resolver) or next(
            (found for arg in call.args[:listed] if (found := _registered(arg, frame, resolver))), "")
        if text:
            rest = call.args[listed + 1 :]
            return text, _items(call.args[listed]), _items(rest[0]) if len(rest) == 1 and isinstance(rest[0],
                                                                                                     Items) else rest
    return None


def _registered(expr: Expr, frame: "Frame", resolver: "Resolver") -> str:
    """The text of a script that a variable stands for: ``register_script(TEXT)``, ``NewScript(TEXT)``."""
    for value, where in resolver.values_of(expr, frame, 0):
        if isinstance(value, Call) and "script" in value.method.lower():
            for arg in value.args:
                text = _text(arg, where, resolver)
                if text:
                    return text
    return ""


def _text(expr: Expr, frame: "Frame", resolver: "Resolver") -> str:
    for value, _ in resolver.values_of(expr, frame, 0):
        if isinstance(value, Text) and is_script(value.value):
            return value.value
    return ""


def _given(args: list[Expr], named: dict[str, Expr]) -> tuple[list[Expr], list[Expr]]:
    """The keys and arguments of EVAL: a count and then all of them, two lists, or names."""
    if "keys" in named:
        return _items(named["keys"]), _items(named.get("argv") or named.get("args"))
    if args and isinstance(args[0], Number):
        count = int(args[0].value)
        return args[1 : 1 + count], args[1 + count :]
    if args and isinstance(args[0], Table):
        table = {key.value: value for key, value in args[0].pairs if isinstance(key, Text)}
        return _items(table.get("keys")), _items(table.get("arguments"))
    if args and isinstance(args[0], Items | Call) and _items(args[0]):
        rest = args[1:]
        return _items(args[0]), _items(rest[0]) if rest and isinstance(rest[0], Items) else rest
    return args, []


def _items(expr: Expr | None) -> list[Expr]:
    if isinstance(expr, Items):
        return expr.items
    if isinstance(expr, Call) and expr.method in ("asList", "of", "singletonList", "list"):
        return expr.args
    return []


def file_script(file: "SourceFile", notes: "list[Note]") -> "list[Use]":
    """What a script in a file of its own says by itself: keys that hold text; the others are its caller's."""
    from keystead.inventory.code.clients import Strength
    from keystead.inventory.code.project import Project
    from keystead.inventory.code.resolving import Frame, Resolver
    from keystead.inventory.code.uses import Use

    text = file.data.decode("utf-8", "replace")
    if not is_script(text):
        return []
    uses: list[Use] = []
    asked: dict[str, str] = {}
    resolver = Resolver(Project([file]))
    for each in script_wishes(text):
        source = Source(file.path, each.line)
        keys = named_keys(each.wish.expr)
        if keys:
            asked.setdefault(keys[0], each.wish.type)
            asked[keys[0]] = asked[keys[0]] or each.wish.type
            continue
        for shape in resolver.forms(each.wish.expr, Frame(file.module)):
            if shape.has_words:
                doubt = "begins with a variable of the script" if shape.begins_open is not None else ""
                uses.append(Use(shape, each.wish.kind, each.wish.command, each.wish.type, each.wish.access, None,
                                False, "", source,
                                "", Strength.STRONG, doubt))
    if asked:
        listed = ", ".join(f"{key}{f' ({kind})' if kind else ''}" for key, kind in sorted(asked.items()))
        notes.append(Note(f"the script's caller names its keys: {listed}", Source(file.path, 1)))
    return uses

"""From the tree of a grammar to scopes, assignments and calls: what the readers of all languages share.

A query finds the nodes that matter at the library's speed; only those are looked at here. They come in the order of
the source, and a stack of what has not ended yet says in which function, class and block each one stands.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from keystead.inventory.code.expressions import (
    SELF,
    Arithmetic,
    Call,
    Choice,
    Expr,
    Items,
    Lambda,
    Member,
    Name,
    Number,
    Opaque,
    Text,
)
from keystead.inventory.code.grammars import captures
from keystead.inventory.code.scopes import Assigned, CallSite, Param, Scope, SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\n": ""}
_DEEPEST = 40  # of expressions within expressions; generated code goes on for thousands


class Reader:
    """Reads one file. A subclass has a query and a method ``_<type of node>`` for each expression it knows.

    Names that the query may give to nodes: class, function, block, assign, return, call, import, and others that the
    subclass handles in ``found_<name>``.
    """

    language: ClassVar[str]
    query: ClassVar[str]

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.data = file.data
        self.scope = file.module
        self.path: tuple[int, ...] = ()
        self._memo: dict[int, Expr] = {}
        self._depth = 0
        self._stack: list[tuple[int, Scope, tuple[int, ...]]] = []

    def read(self, root: "Node") -> None:
        """Fill in the file's scopes and calls."""
        self.file.broken = root.has_error
        found = captures(self.language if self.file.language != "tsx" else "tsx", self.query, root)
        events = [(node.start_byte, -node.end_byte, order, name, node)
                  for order, (name, nodes) in enumerate(found.items()) for node in nodes]
        events.sort(key=lambda event: event[:3])
        for start, _, _, name, node in events:
            while self._stack and self._stack[-1][0] <= start:
                _, self.scope, self.path = self._stack.pop()
            handler: Callable[[Node], None] = getattr(self, f"found_{name}")
            handler(node)

    # -- what a query finds ------------------------------------------------------------

    def found_block(self, node: "Node") -> None:
        self._stack.append((node.end_byte, self.scope, self.path))
        self.path = (*self.path, node.start_byte)

    def found_call(self, node: "Node") -> None:
        call = self.lower(node)
        if isinstance(call, Call):
            self.file.calls.append(CallSite(call, self.scope, self.path))

    def enter(self, node: "Node", scope: Scope) -> None:
        """What follows stands in this scope until the node ends."""
        self._stack.append((node.end_byte, self.scope, self.path))
        self.file.scopes.append(scope)
        self.scope = scope
        self.path = scope.path

    def new_scope(self, kind: str, name: str, node: "Node", params: list[Param] | None = None) -> Scope:
        return Scope(kind, name, self.file, self.scope, node.start_point[0] + 1, params or [], path=self.path)

    def enter_class(self, node: "Node", name: str, bases: list[str]) -> Scope:
        scope = self.scope.classes.get(name) or self.new_scope("class", name, node)
        scope.bases += bases
        self.scope.classes[name] = scope
        self.enter(node, scope)
        return scope

    def enter_function(self, node: "Node", name: str, params: list[Param], home: Scope | None = None) -> Scope:
        scope = self.new_scope("function", name, node, params)
        for param in params:
            if param.type:
                scope.types[param.name] = param.type
        if name:
            (home or self.scope).functions.setdefault(name, []).append(scope)
        self.enter(node, scope)
        return scope

    def assign(self, target: Expr, value: Expr, node: "Node", *, type: str = "") -> None:
        """Keep that a name, or a member of the object itself, gets a value here."""
        home: Scope | None = self.scope
        if isinstance(target, Member) and isinstance(target.base, Name) and target.base.name == SELF:
            home = self.own_class()
        elif not isinstance(target, Name):
            return
        if home is None:
            return
        if type:
            home.types.setdefault(target.name, type)
        kept = Assigned(value, self.scope, node.start_point[0] + 1, self.path, (node.start_byte, node.end_byte))
        home.names.setdefault(target.name, []).append(kept)

    def returned(self, value: Expr, node: "Node") -> None:
        for scope in self.scope.around():
            if scope.kind == "function":
                scope.returns.append(Assigned(value, scope, node.start_point[0] + 1, self.path,
                                              (node.start_byte, node.end_byte)))
                return

    def own_class(self) -> Scope | None:
        """The class whose members ``self`` has here."""
        for scope in self.scope.around():
            if scope.owner:
                return self.class_named(scope.owner)
            if scope.kind == "class":
                return scope
        return None

    def class_named(self, name: str) -> Scope:
        """A class of this file, made if its declaration was not seen."""
        known = self.file.module.classes.get(name)
        if known is None:
            known = Scope("class", name, self.file, self.file.module)
            self.file.module.classes[name] = known
            self.file.scopes.append(known)
        return known

    # -- expressions ------------------------------------------------------------

    def lower(self, node: "Node | None") -> Expr:
        """The expression of a node; ``Opaque`` for what is not followed."""
        if node is None:
            return Opaque()
        known = self._memo.get(node.id)
        if known is not None:
            return known
        handler = getattr(self, f"_{node.type}", None)
        if handler is None or self._depth > _DEEPEST:
            return Opaque()
        self._depth += 1
        expr: Expr = handler(node)
        self._depth -= 1
        self._memo[node.id] = expr
        return expr

    def text(self, node: "Node | None") -> str:
        return "" if node is None else self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def field(self, node: "Node", name: str) -> Expr:
        return self.lower(node.child_by_field_name(name))

    def first(self, node: "Node") -> Expr:
        """The first part of a node that only wraps another: parentheses, await."""
        children = node.named_children
        return self.lower(children[0]) if children else Opaque()

    def spread(self, node: "Node") -> Expr:
        """``*items`` among arguments: any number of them."""
        return Call(Name("each of"), [self.first(node)], {}, node.start_point[0] + 1)

    def choice(self, *nodes: "Node | None") -> Expr:
        return Choice([self.lower(node) for node in nodes if node is not None])

    def items(self, node: "Node") -> Expr:
        return Items([self.lower(child) for child in node.named_children if child.type != "comment"])

    def number(self, node: "Node") -> Expr:
        text = self.text(node).replace("_", "").rstrip("lLnfFdD")
        try:
            return Number(float(int(text, 0)) if text.lower().startswith(("0x", "0o", "0b")) else float(text))
        except ValueError:
            return Opaque()

    def binary(self, node: "Node") -> Expr:
        sign = self.text(node.child_by_field_name("operator"))
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if sign in ("||", "??", "or"):
            return self.choice(left, right)
        if sign in ("+", "-", "*", "/", "//", "%", "**"):
            return Arithmetic(sign, self.lower(left), self.lower(right))
        return Opaque()

    def call(self, node: "Node", callee: Expr, arguments: "Node | None") -> Call:
        """A call with its arguments; a subclass tells which of them have names (``named_argument``)."""
        # In a chain over several lines each call is on the line of its own arguments.
        made = Call(callee, [], {}, (arguments if arguments is not None else node).start_point[0] + 1)
        for child in arguments.named_children if arguments is not None else ():
            if child.type == "comment":
                continue
            named = self.named_argument(child)
            if named is not None:
                made.named[named[0]] = named[1]
                continue
            made.args.append(self.lower(child))
            made.spans.append((child.start_byte, child.end_byte))
        return made

    def named_argument(self, node: "Node") -> tuple[str, Expr] | None:
        return None

    def function_value(self, node: "Node", params: "list[str]", body: "Node | None", block_types: set[str]) -> Expr:
        """A function written as a value: what it returns, if its body is an expression or returns plainly."""
        if body is None:
            return Opaque()
        if body.type not in block_types:
            return Lambda(params, [self.lower(body)])
        returned = [child for child in body.named_children if child.type == "return_statement"]
        return Lambda(params, [self.first(child) for child in returned])


def unescaped(text: str) -> Text:
    """A literal with its escapes read."""
    return Text(_ESCAPE.sub(_escape, text) if "\\" in text else text)


def _escape(found: re.Match[str]) -> str:
    what = found[1]
    if len(what) > 1:
        return chr(int(what[1:], 16))
    return _ESCAPES.get(what, what)


def merged(parts: list[Expr]) -> Expr:
    """The pieces of a string, as plain text if they are nothing else."""
    from keystead.inventory.code.expressions import Joined

    if all(isinstance(part, Text) for part in parts):
        return Text("".join(part.value for part in parts if isinstance(part, Text)))
    return Joined(parts)

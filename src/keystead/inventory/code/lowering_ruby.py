"""Reads Ruby."""

from typing import TYPE_CHECKING

from keystead.inventory.code.expressions import (
    SELF,
    Arithmetic,
    Call,
    Choice,
    Expr,
    Index,
    Items,
    Lambda,
    Member,
    Name,
    Opaque,
    Table,
    Text,
)
from keystead.inventory.code.grammars import captures
from keystead.inventory.code.lowering import Reader, merged, unescaped
from keystead.inventory.code.scopes import Param, Scope

if TYPE_CHECKING:
    from tree_sitter import Node


class RubyReader(Reader):
    """Reads one Ruby file. A module counts as a class; what a method says last is what it returns."""

    language = "ruby"
    query = """
        (class) @class
        (module) @class
        (method) @function
        (singleton_method) @function
        (block) @lambda
        (do_block) @lambda
        (then) @block
        (else) @block
        (assignment) @assign
        (operator_assignment) @augmented
        (binary) @append
        (for) @loop
        (return) @return
        (call) @call
        (element_reference) @call
    """

    def read(self, root: "Node") -> None:
        found = captures("ruby", "(heredoc_beginning) @name (heredoc_body) @body", root)
        self._heredocs = {name.id: body for name, body in zip(
            sorted(found.get("name", []), key=lambda node: node.start_byte),
            sorted(found.get("body", []), key=lambda node: node.start_byte), strict=False)}
        super().read(root)

    def _heredoc_beginning(self, node: "Node") -> Expr:
        return self.lower(self._heredocs.get(node.id))

    def found_class(self, node: "Node") -> None:
        above = node.child_by_field_name("superclass")
        bases = [self.text(above.named_children[0]).rsplit("::", 1)[-1]] if above and above.named_children else []
        self.enter_class(node, self.text(node.child_by_field_name("name")).rsplit("::", 1)[-1], bases)

    def found_function(self, node: "Node") -> None:
        listed = node.child_by_field_name("parameters")
        scope = self.enter_function(node, self.text(node.child_by_field_name("name")), self._params(listed))
        body = node.child_by_field_name("body")
        if body is not None:
            last = body if body.type != "body_statement" else body.named_children[-1] if body.named_children else None
            while last is not None and last.type in ("rescue", "ensure"):
                last = last.prev_named_sibling
            self._says_last(scope, last)

    def _says_last(self, scope: Scope, node: "Node | None") -> None:
        if node is None or node.type in ("return", "comment"):
            return
        before, self.scope = self.scope, scope
        if node.type in ("assignment", "operator_assignment"):
            self.returned(self.field(node, "right"), node)
        else:
            self.returned(self.lower(node), node)
        self.scope = before

    def _params(self, listed: "Node | None") -> list[Param]:
        found: list[Param] = []
        for child in listed.named_children if listed is not None else ():
            name = child.child_by_field_name("name")
            value = child.child_by_field_name("value")
            found.append(Param(self.text(name if name is not None else child),
                               self.lower(value) if value is not None else None, rest=child.type == "splat_parameter"))
        return found

    def found_lambda(self, node: "Node") -> None:
        params = self._params(node.child_by_field_name("parameters"))
        scope = self.enter_function(node, "", params)
        holder = node.parent
        call = self.lower(holder) if holder is not None else Opaque()
        if params and isinstance(call, Call):  # `redis.pipelined do |p|`, `ids.each do |id|`
            each: Expr = Call(Name("each of"), [call.receiver or Opaque()]) if call.method in ("each", "map") \
                else Call(Member(call.receiver or Name(SELF), call.method), [], {}, call.line)
            scope.params = []
            self.assign(Name(params[0].name), each, node)
            for other in params[1:]:
                scope.types.setdefault(other.name, "")

    def found_assign(self, node: "Node") -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return
        if left.type == "left_assignment_list":
            value = self.lower(right)
            for position, each in enumerate(left.named_children):
                item = value.items[position] if isinstance(value, Items) and position < len(value.items) else Opaque()
                self.assign(self.lower(each), item, node)
            return
        self.assign(self.lower(left), self.lower(right), node)

    def found_augmented(self, node: "Node") -> None:
        sign = self.text(node.child_by_field_name("operator"))
        target, value = self.field(node, "left"), self.field(node, "right")
        if sign == "+=":
            self.assign(target, Arithmetic("+", target, value), node)
        elif sign == "||=":
            self.assign(target, value, node)

    def found_append(self, node: "Node") -> None:
        if self.text(node.child_by_field_name("operator")) != "<<":
            return
        target = self.field(node, "left")
        if isinstance(target, Name) and any(target.name in scope.names for scope in self.scope.around()):
            self.assign(target, Arithmetic("+", target, self.field(node, "right")), node)

    def found_loop(self, node: "Node") -> None:
        self.assign(self.field(node, "pattern"), Call(Name("each of"), [self.first_of(node, "value")]), node)

    def first_of(self, node: "Node", name: str) -> Expr:
        inside = node.child_by_field_name(name)
        return self.first(inside) if inside is not None else Opaque()

    def found_return(self, node: "Node") -> None:
        listed = node.named_children[0] if node.named_children else None
        if listed is not None:
            self.returned(self.first(listed), node)

    # -- expressions ------------------------------------------------------------

    def _identifier(self, node: "Node") -> Expr:
        return Name(self.text(node))

    def _constant(self, node: "Node") -> Expr:
        return Name(self.text(node))

    def _global_variable(self, node: "Node") -> Expr:
        return Name(self.text(node))

    def _self(self, node: "Node") -> Expr:
        return Name(SELF)

    def _instance_variable(self, node: "Node") -> Expr:
        return Member(Name(SELF), self.text(node).lstrip("@"))

    _class_variable = _instance_variable

    def _scope_resolution(self, node: "Node") -> Expr:
        base = node.child_by_field_name("scope")
        name = self.text(node.child_by_field_name("name"))
        return Member(self.lower(base), name) if base is not None else Name(name)

    def _string(self, node: "Node") -> Expr:
        parts: list[Expr] = []
        plain = self.text(node)[:1] == "'"
        for child in node.named_children:
            if child.type == "interpolation":
                parts.append(self.first(child))
            elif child.type in ("string_content", "escape_sequence", "heredoc_content"):
                parts.append(Text(self.text(child)) if plain else unescaped(self.text(child)))
        return merged(parts)

    _bare_string = _heredoc_body = _delimited_symbol = _string

    def _simple_symbol(self, node: "Node") -> Expr:
        return Text(self.text(node).lstrip(":"))

    def _hash_key_symbol(self, node: "Node") -> Expr:
        return Text(self.text(node))

    def _chained_string(self, node: "Node") -> Expr:
        return merged([self.lower(child) for child in node.named_children])

    def _call(self, node: "Node") -> Expr:
        name = self.text(node.child_by_field_name("method"))
        target = node.child_by_field_name("receiver")
        callee: Expr = Name(name) if target is None else Member(self.lower(target), name)
        made = self.call(node, callee, node.child_by_field_name("arguments"))
        block = node.child_by_field_name("block")
        if block is not None:
            body = block.child_by_field_name("body")
            last = body.named_children[-1] if body is not None and body.named_children else None
            made.block = Lambda([param.name for param in self._params(block.child_by_field_name("parameters"))],
                                [self.lower(last)] if last is not None else [])
        return made

    def named_argument(self, node: "Node") -> tuple[str, Expr] | None:
        if node.type != "pair":
            return None
        key = self.text(node.child_by_field_name("key")).strip(":\"'")
        value = node.child_by_field_name("value")
        return key, self.lower(value) if value is not None else Name(key)

    def _binary(self, node: "Node") -> Expr:
        return self.binary(node)

    def _conditional(self, node: "Node") -> Expr:
        return self.choice(node.child_by_field_name("consequence"), node.child_by_field_name("alternative"))

    def _if(self, node: "Node") -> Expr:
        return self._conditional(node)

    _unless = _if

    def _then(self, node: "Node") -> Expr:
        return self.lower(node.named_children[-1]) if node.named_children else Opaque()

    _else = _parenthesized_statements = _begin = _then

    def _case(self, node: "Node") -> Expr:
        options = [self.lower(child.child_by_field_name("body")) for child in node.named_children
                   if child.type == "when"]
        return Choice(options + [self.lower(child) for child in node.named_children if child.type == "else"])

    def _integer(self, node: "Node") -> Expr:
        return self.number(node)

    _float = _integer

    def _array(self, node: "Node") -> Expr:
        return self.items(node)

    _string_array = _symbol_array = _array

    def _hash(self, node: "Node") -> Expr:
        return Table([(self.field(child, "key"), self.field(child, "value"))
                      for child in node.named_children if child.type == "pair"])

    def _element_reference(self, node: "Node") -> Expr:
        children = node.named_children
        return Index(self.lower(children[0]), self.lower(children[1])) if len(children) > 1 else Opaque()

    def _splat_argument(self, node: "Node") -> Expr:
        return self.spread(node)

    def _lambda(self, node: "Node") -> Expr:
        body = node.child_by_field_name("body")
        inner = body.child_by_field_name("body") if body is not None else None
        last = inner.named_children[-1] if inner is not None and inner.named_children else None
        params = [param.name for param in self._params(node.child_by_field_name("parameters"))]
        return Lambda(params, [self.lower(last)] if last is not None else [])

"""Reads Go."""

from typing import TYPE_CHECKING

from keystead.inventory.code.expressions import (
    SELF,
    Arithmetic,
    Call,
    Expr,
    Index,
    Items,
    Member,
    Name,
    Number,
    Opaque,
    Table,
    Text,
)
from keystead.inventory.code.lowering import Reader, unescaped
from keystead.inventory.code.scopes import Param, Scope

if TYPE_CHECKING:
    from tree_sitter import Node


class GoReader(Reader):
    """Reads one Go file. A struct counts as a class, and what a literal of it gives to a field as an assignment."""

    language = "go"
    query = """
        (function_declaration) @function
        (method_declaration) @function
        (func_literal) @function
        (type_spec) @type
        (block) @block
        (expression_case) @block
        (default_case) @block
        (const_spec) @define
        (var_spec) @define
        (short_var_declaration) @assign
        (assignment_statement) @assign
        (range_clause) @loop
        (return_statement) @return
        (call_expression) @call
        (composite_literal) @struct
        (import_spec) @import
    """

    def found_function(self, node: "Node") -> None:
        params = self._params(node.child_by_field_name("parameters"))
        name = self.text(node.child_by_field_name("name"))
        receivers = self._params(node.child_by_field_name("receiver"))
        if not receivers:
            self.enter_function(node, name, params)
            return
        owner = receivers[0].type.lstrip("*").split("[")[0]
        scope = self.enter_function(node, name, params, self.class_named(owner))
        scope.owner = owner
        scope.types[f"is {SELF}"] = receivers[0].name

    def _params(self, node: "Node | None") -> list[Param]:
        found: list[Param] = []
        for child in node.named_children if node is not None else ():
            kind = self.text(child.child_by_field_name("type"))
            rest = child.type == "variadic_parameter_declaration"
            found += [Param(self.text(name), None, kind, rest) for name in child.children_by_field_name("name")]
        return found

    def found_type(self, node: "Node") -> None:
        kind = node.child_by_field_name("type")
        if kind is None or kind.type != "struct_type":
            return
        scope = self.class_named(self.text(node.child_by_field_name("name")))
        for listed in kind.named_children:
            for each in listed.named_children:
                said = self.text(each.child_by_field_name("type"))
                names = [self.text(name) for name in each.children_by_field_name("name")]
                if not names and said:  # embedded
                    scope.bases.append(said.lstrip("*").rsplit(".", 1)[-1])
                    names = [said.lstrip("*").rsplit(".", 1)[-1]]
                for name in names:
                    scope.types.setdefault(name, said)

    def found_define(self, node: "Node") -> None:
        names = node.children_by_field_name("name")
        values = node.child_by_field_name("value")
        kind = self.text(node.child_by_field_name("type"))
        given = values.named_children if values is not None else []
        for position, name in enumerate(names):
            value = self.lower(given[position]) if position < len(given) else Opaque()
            if values is not None or kind:
                self.assign(Name(self.text(name)), value, node, type=kind)

    def found_assign(self, node: "Node") -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return
        targets, values = left.named_children, right.named_children
        sign = self.text(node.child_by_field_name("operator"))
        for position, each in enumerate(targets):
            target = self.lower(each)
            value = self.lower(values[position]) if position < len(values) else Opaque()
            if sign == "+=":
                value = Arithmetic("+", target, value)
            self.assign(target, value, node)

    def found_loop(self, node: "Node") -> None:
        left = node.child_by_field_name("left")
        targets = left.named_children if left is not None else []
        if targets:
            self.assign(self.lower(targets[-1]), Call(Name("each of"), [self.field(node, "right")]), node)

    def found_return(self, node: "Node") -> None:
        listed = node.named_children[0] if node.named_children else None
        if listed is not None and listed.named_children:
            self.returned(self.lower(listed.named_children[0]), node)

    def found_struct(self, node: "Node") -> None:
        """``Store{prefix: "x:"}`` gives the field of every Store a value."""
        made = self.lower(node)
        if not isinstance(made, Call) or not made.named:
            return
        home = self.class_named(made.method)
        before, self.scope = self.scope, self.scope
        for name, value in made.named.items():
            self._give(home, name, value, node)
        self.scope = before

    def _give(self, home: Scope, name: str, value: Expr, node: "Node") -> None:
        from keystead.inventory.code.scopes import Assigned

        kept = Assigned(value, self.scope, node.start_point[0] + 1, self.path, (node.start_byte, node.end_byte))
        home.names.setdefault(name, []).append(kept)

    def found_import(self, node: "Node") -> None:
        path = self.text(node.child_by_field_name("path")).strip('"`')
        tail = [part for part in path.split("/") if not (part[:1] == "v" and part[1:].isdigit())]
        name = self.text(node.child_by_field_name("name")) or (tail[-1] if tail else path).removeprefix("go-")
        self.file.imports[name] = (path, "")

    # -- expressions ------------------------------------------------------------

    def _identifier(self, node: "Node") -> Expr:
        name = self.text(node)
        for scope in self.scope.around():
            if scope.types.get(f"is {SELF}") == name:
                return Name(SELF)
        return Name(name)

    _type_identifier = _package_identifier = _field_identifier = _identifier

    def _selector_expression(self, node: "Node") -> Expr:
        return Member(self.field(node, "operand"), self.text(node.child_by_field_name("field")))

    def _qualified_type(self, node: "Node") -> Expr:
        return Member(Name(self.text(node.child_by_field_name("package"))), self.text(node.child_by_field_name("name")))

    def _interpreted_string_literal(self, node: "Node") -> Expr:
        return unescaped(self.text(node)[1:-1])

    def _raw_string_literal(self, node: "Node") -> Expr:
        return Text(self.text(node)[1:-1])

    def _call_expression(self, node: "Node") -> Expr:
        callee = self.field(node, "function")
        made = self.call(node, callee, node.child_by_field_name("arguments"))
        # A conversion: string(id), []byte(key).
        if len(made.args) == 1 and isinstance(callee, Opaque):
            return made.args[0]
        return made

    def _type_conversion_expression(self, node: "Node") -> Expr:
        return self.field(node, "operand")

    def _binary_expression(self, node: "Node") -> Expr:
        return self.binary(node)

    def _int_literal(self, node: "Node") -> Expr:
        return self.number(node)

    _float_literal = _int_literal

    def _index_expression(self, node: "Node") -> Expr:
        return Index(self.field(node, "operand"), self.field(node, "index"))

    def _composite_literal(self, node: "Node") -> Expr:
        kind, body = node.child_by_field_name("type"), node.child_by_field_name("body")
        if kind is None or body is None:
            return Opaque()
        pairs: list[tuple[Expr, Expr]] = []
        plain: list[Expr] = []
        for child in body.named_children:
            if child.type == "keyed_element":
                pairs.append((self.field(child, "key"), self.field(child, "value")))
            elif child.type == "literal_element":
                plain.append(self.first(child))
        if kind.type == "map_type":
            return Table(pairs)
        if kind.type in ("slice_type", "array_type", "implicit_length_array_type"):
            return Items(plain)
        made = Call(self.lower(kind), plain, {}, node.start_point[0] + 1)
        made.named = {key.name: value for key, value in pairs if isinstance(key, Name)}
        return made

    def _literal_element(self, node: "Node") -> Expr:
        return self.first(node)

    _parenthesized_expression = _expression_list = _literal_element

    def _variadic_argument(self, node: "Node") -> Expr:
        return self.spread(node)

    def _unary_expression(self, node: "Node") -> Expr:
        inside = self.field(node, "operand")
        if isinstance(inside, Number) and self.text(node).startswith("-"):
            return Number(-inside.value)
        return inside

    def _func_literal(self, node: "Node") -> Expr:
        params = [param.name for param in self._params(node.child_by_field_name("parameters"))]
        body = node.child_by_field_name("body")
        inner = body.named_children[0] if body is not None and body.named_children else None
        return self.function_value(node, params, inner, {"statement_list", "block"})

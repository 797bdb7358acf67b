"""Reads Java."""

from typing import TYPE_CHECKING

from keystead.inventory.code.expressions import (
    SELF,
    Arithmetic,
    Call,
    Expr,
    Index,
    Member,
    Name,
    Opaque,
    Text,
)
from keystead.inventory.code.lowering import Reader, unescaped
from keystead.inventory.code.scopes import CallSite, Param

if TYPE_CHECKING:
    from tree_sitter import Node


class JavaReader(Reader):
    """Reads one Java file. A constant of an enum is a call of its constructor, an annotation a call ``@Name``."""

    language = "java"
    query = """
        (class_declaration) @class
        (interface_declaration) @class
        (enum_declaration) @class
        (record_declaration) @class
        (enum_constant) @constant
        (method_declaration) @function
        (constructor_declaration) @function
        (lambda_expression) @function
        (block) @block
        (constructor_body) @block
        (switch_block_statement_group) @block
        (switch_rule) @block
        (variable_declarator) @define
        (resource) @define
        (assignment_expression) @assign
        (enhanced_for_statement) @loop
        (return_statement) @return
        (method_invocation) @call
        (object_creation_expression) @call
        (annotation) @annotation
        (marker_annotation) @annotation
        (import_declaration) @import
    """

    def found_class(self, node: "Node") -> None:
        bases = [self.text(each) for name in ("superclass", "interfaces")
                 if (clause := node.child_by_field_name(name)) is not None
                 for child in clause.named_children
                 for each in (child.named_children if child.type == "type_list" else [child])]
        scope = self.enter_class(node, self.text(node.child_by_field_name("name")),
                                 [base.split("<")[0].strip() for base in bases])
        for param in self._params(node):  # of a record
            scope.types[param.name] = param.type

    def found_constant(self, node: "Node") -> None:
        made = self.call(node, Name(self.scope.name), node.child_by_field_name("arguments"))
        self.assign(Name(self.text(node.child_by_field_name("name"))), made, node)

    def found_function(self, node: "Node") -> None:
        scope = self.enter_function(node, self.text(node.child_by_field_name("name")), self._params(node))
        body = node.child_by_field_name("body")
        if node.type == "lambda_expression" and body is not None and body.type != "block":
            before, self.scope = self.scope, scope
            self.returned(self.lower(body), body)
            self.scope = before

    def _params(self, node: "Node") -> list[Param]:
        listed = node.child_by_field_name("parameters")
        if listed is None:
            return []
        if listed.type == "identifier":
            return [Param(self.text(listed))]
        found: list[Param] = []
        for child in listed.named_children:
            kind = self.text(child.child_by_field_name("type"))
            name = child.child_by_field_name("name")
            if child.type == "spread_parameter":
                kind = self.text(child.named_children[0])
                name = child.named_children[-1].child_by_field_name("name")
            elif child.type == "identifier":
                name = child
            if name is not None:
                found.append(Param(self.text(name), None, kind, child.type == "spread_parameter"))
        return found

    def found_define(self, node: "Node") -> None:
        name, value = self.text(node.child_by_field_name("name")), node.child_by_field_name("value")
        kind = self.text(node.child_by_field_name("type"))
        if not kind and node.parent is not None:
            kind = self.text(node.parent.child_by_field_name("type"))
        if value is not None:
            self.assign(Name(name), self.lower(value), node, type=kind)
        elif kind:
            self.scope.types.setdefault(name, kind)

    def found_assign(self, node: "Node") -> None:
        target, value = self.field(node, "left"), self.field(node, "right")
        sign = self.text(node.child_by_field_name("operator"))
        if sign == "+=":
            value = Arithmetic("+", target, value)
        if isinstance(target, Name) and self._is_field(target.name):
            target = Member(Name(SELF), target.name)
        self.assign(target, value, node)

    def _is_field(self, name: str) -> bool:
        for scope in self.scope.around():
            if scope.kind == "function" and (name in scope.names or name in scope.types):
                return False
            if scope.kind == "class":
                return name in scope.types or name in scope.names
        return False

    def found_loop(self, node: "Node") -> None:
        self.assign(Name(self.text(node.child_by_field_name("name"))),
                    Call(Name("each of"), [self.field(node, "value")]), node)

    def found_return(self, node: "Node") -> None:
        if node.named_children:
            self.returned(self.first(node), node)

    def found_annotation(self, node: "Node") -> None:
        name = "@" + self.text(node.child_by_field_name("name")).rsplit(".", 1)[-1]
        made = self.call(node, Name(name), node.child_by_field_name("arguments"))
        self.file.calls.append(CallSite(made, self.scope, self.path))  # it stands inside what it is about

    def found_import(self, node: "Node") -> None:
        path = self.text(node).removeprefix("import").strip().rstrip(";").strip()
        path = path.removeprefix("static").strip()
        module, _, name = path.rpartition(".")
        self.file.imports[name if name != "*" else f"* {module}"] = (module, name)

    # -- expressions ------------------------------------------------------------

    def _identifier(self, node: "Node") -> Expr:
        return Name(self.text(node))

    _type_identifier = _identifier

    def _this(self, node: "Node") -> Expr:
        return Name(SELF)

    _super = _this

    def _field_access(self, node: "Node") -> Expr:
        return Member(self.field(node, "object"), self.text(node.child_by_field_name("field")))

    def _string_literal(self, node: "Node") -> Expr:
        text = self.text(node)
        return unescaped(text[3:-3].lstrip("\n") if text.startswith('"""') else text[1:-1])

    def _character_literal(self, node: "Node") -> Expr:
        return unescaped(self.text(node)[1:-1])

    def _method_invocation(self, node: "Node") -> Expr:
        name = self.text(node.child_by_field_name("name"))
        target = node.child_by_field_name("object")
        callee: Expr = Name(name) if target is None else Member(self.lower(target), name)
        return self.call(node, callee, node.child_by_field_name("arguments"))

    def _object_creation_expression(self, node: "Node") -> Expr:
        name = self.text(node.child_by_field_name("type")).split("<")[0]
        return self.call(node, Name(name), node.child_by_field_name("arguments"))

    def named_argument(self, node: "Node") -> tuple[str, Expr] | None:
        if node.type != "element_value_pair":
            return None
        return self.text(node.child_by_field_name("key")), self.field(node, "value")

    def _binary_expression(self, node: "Node") -> Expr:
        return self.binary(node)

    def _ternary_expression(self, node: "Node") -> Expr:
        return self.choice(node.child_by_field_name("consequence"), node.child_by_field_name("alternative"))

    def _decimal_integer_literal(self, node: "Node") -> Expr:
        return self.number(node)

    _decimal_floating_point_literal = _hex_integer_literal = _decimal_integer_literal

    def _array_access(self, node: "Node") -> Expr:
        return Index(self.field(node, "array"), self.field(node, "index"))

    def _array_initializer(self, node: "Node") -> Expr:
        return self.items(node)

    _element_value_array_initializer = _array_initializer

    def _array_creation_expression(self, node: "Node") -> Expr:
        return self.field(node, "value")

    def _cast_expression(self, node: "Node") -> Expr:
        return self.field(node, "value")

    def _parenthesized_expression(self, node: "Node") -> Expr:
        return self.first(node)

    def _lambda_expression(self, node: "Node") -> Expr:
        params = [param.name for param in self._params(node)]
        return self.function_value(node, params, node.child_by_field_name("body"), {"block"})

    def _template_expression(self, node: "Node") -> Expr:
        return Opaque()

    def _class_literal(self, node: "Node") -> Expr:
        return Text(self.text(node))



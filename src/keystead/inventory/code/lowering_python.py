"""Reads Python."""

from typing import TYPE_CHECKING

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
    Opaque,
    Table,
    Text,
)
from keystead.inventory.code.lowering import Reader, merged, unescaped
from keystead.inventory.code.scopes import Param

if TYPE_CHECKING:
    from tree_sitter import Node


class PythonReader(Reader):
    """Reads one Python file."""

    language = "python"
    query = """
        (class_definition) @class
        (function_definition) @function
        (block) @block
        (assignment) @assign
        (augmented_assignment) @augmented
        (named_expression) @assign
        (as_pattern) @as
        (for_statement) @loop
        (return_statement) @return
        (yield) @return
        (call) @call
        (import_statement) @import
        (import_from_statement) @import
    """

    def found_class(self, node: "Node") -> None:
        bases = node.child_by_field_name("superclasses")
        names = [self.text(child).rsplit(".", 1)[-1] for child in bases.named_children
                 if child.type in ("identifier", "attribute")] if bases is not None else []
        self.enter_class(node, self.text(node.child_by_field_name("name")), names)

    def found_function(self, node: "Node") -> None:
        listed = node.child_by_field_name("parameters")
        params = [param for child in (listed.named_children if listed is not None else ())
                  if (param := self._param(child)) is not None]
        if self.scope.kind == "class" and params and params[0].name in ("self", "cls", "mcs"):
            params = params[1:]
        self.enter_function(node, self.text(node.child_by_field_name("name")), params)

    def _param(self, node: "Node") -> Param | None:
        if node.type == "identifier":
            return Param(self.text(node))
        if node.type in ("default_parameter", "typed_default_parameter"):
            return Param(self.text(node.child_by_field_name("name")), self.field(node, "value"),
                         self.text(node.child_by_field_name("type")))
        if node.type == "typed_parameter" and node.named_children:
            name = self.text(node.named_children[0])
            return Param(name.lstrip("*"), None, self.text(node.child_by_field_name("type")),
                         name.startswith("*") and not name.startswith("**"))
        if node.type in ("list_splat_pattern", "dictionary_splat_pattern") and node.named_children:
            return Param(self.text(node.named_children[0]), rest=node.type == "list_splat_pattern")
        return None

    def found_assign(self, node: "Node") -> None:
        left = node.child_by_field_name("left") or node.child_by_field_name("name")
        right = node.child_by_field_name("right") or node.child_by_field_name("value")
        if left is None:
            return
        kind = self.text(node.child_by_field_name("type"))
        if left.type in ("pattern_list", "tuple_pattern") and right is not None:
            value = self.lower(right)
            for position, each in enumerate(left.named_children):
                item = value.items[position] if isinstance(value, Items) and position < len(value.items) else Opaque()
                self.assign(self.lower(each), item, node)
            return
        if right is None:
            if kind:
                self._typed(self.lower(left), kind)
            return
        self.assign(self.lower(left), self.lower(right), node, type=kind)

    def _typed(self, target: Expr, kind: str) -> None:
        home = self.own_class() if isinstance(target, Member) else self.scope
        if home is not None and isinstance(target, Name | Member):
            home.types.setdefault(target.name, kind)

    def found_augmented(self, node: "Node") -> None:
        target = self.field(node, "left")
        if self.text(node.child_by_field_name("operator")) == "+=":
            self.assign(target, Arithmetic("+", target, self.field(node, "right")), node)

    def found_as(self, node: "Node") -> None:
        alias = node.child_by_field_name("alias")
        if alias is not None and alias.named_children:
            self.assign(self.lower(alias.named_children[0]), self.first(node), node)

    def found_loop(self, node: "Node") -> None:
        target = self.field(node, "left")
        if isinstance(target, Name):
            self.assign(target, Call(Name("each of"), [self.field(node, "right")]), node)

    def found_return(self, node: "Node") -> None:
        if node.named_children:
            self.returned(self.first(node), node)

    def found_import(self, node: "Node") -> None:
        module = self.text(node.child_by_field_name("module_name"))
        for child in node.children_by_field_name("name"):
            name, alias = self.text(child), ""
            if child.type == "aliased_import":
                name = self.text(child.child_by_field_name("name"))
                alias = self.text(child.child_by_field_name("alias"))
            if module:
                self.file.imports[alias or name] = (module, name)
            else:
                self.file.imports[alias or name.split(".")[0]] = (name if alias else name.split(".")[0], "")

    # -- expressions ------------------------------------------------------------

    def _identifier(self, node: "Node") -> Expr:
        name = self.text(node)
        return Name(SELF if name in ("self", "cls") else name)

    def _attribute(self, node: "Node") -> Expr:
        return Member(self.field(node, "object"), self.text(node.child_by_field_name("attribute")))

    def _string(self, node: "Node") -> Expr:
        parts: list[Expr] = []
        start = self.text(node.children[0]).lower() if node.children else ""
        for child in node.named_children:
            if child.type == "string_content":
                text = self.text(child)
                if "f" in start:
                    text = text.replace("{{", "{").replace("}}", "}")
                parts.append(Text(text) if "r" in start else unescaped(text))
            elif child.type == "interpolation":
                parts.append(self._interpolated(child))
        return merged(parts)

    def _interpolated(self, node: "Node") -> Expr:
        shown = self.text(node.child_by_field_name("format_specifier"))
        if "%" in shown:  # f"{day:%Y-%m-%d}": a date, whatever it is made from
            return Opaque("hour" if "%H" in shown else "date" if "%d" in shown else "month")
        return self.field(node, "expression")

    def _concatenated_string(self, node: "Node") -> Expr:
        parts: list[Expr] = []
        for child in node.named_children:
            made = self.lower(child)
            parts += made.parts if isinstance(made, Joined) else [made]
        return merged(parts)

    def _call(self, node: "Node") -> Expr:
        arguments = node.child_by_field_name("arguments")
        if arguments is not None and arguments.type == "generator_expression":
            return Call(self.field(node, "function"), [self.lower(arguments)], {}, node.start_point[0] + 1,
                        [(arguments.start_byte, arguments.end_byte)])
        return self.call(node, self.field(node, "function"), arguments)

    def named_argument(self, node: "Node") -> tuple[str, Expr] | None:
        if node.type == "keyword_argument":
            return self.text(node.child_by_field_name("name")), self.field(node, "value")
        return ("**", self.first(node)) if node.type == "dictionary_splat" else None

    def _binary_operator(self, node: "Node") -> Expr:
        return self.binary(node)

    def _boolean_operator(self, node: "Node") -> Expr:
        return self.choice(node.child_by_field_name("left"), node.child_by_field_name("right"))

    def _conditional_expression(self, node: "Node") -> Expr:
        children = node.named_children
        return Choice([self.lower(children[0]), self.lower(children[-1])])

    def _integer(self, node: "Node") -> Expr:
        return self.number(node)

    def _float(self, node: "Node") -> Expr:
        return self.number(node)

    def _list_comprehension(self, node: "Node") -> Expr:
        return Items([self.field(node, "body")])

    _generator_expression = _set_comprehension = _list_comprehension

    def _list(self, node: "Node") -> Expr:
        return self.items(node)

    _tuple = _set = _expression_list = _list

    def _dictionary(self, node: "Node") -> Expr:
        return Table([(self.field(child, "key"), self.field(child, "value"))
                      for child in node.named_children if child.type == "pair"])

    def _dictionary_comprehension(self, node: "Node") -> Expr:
        body = node.child_by_field_name("body")
        return Opaque() if body is None else Table([(self.field(body, "key"), self.field(body, "value"))])

    def _subscript(self, node: "Node") -> Expr:
        return Index(self.field(node, "value"), self.field(node, "subscript"))

    def _lambda(self, node: "Node") -> Expr:
        listed = node.child_by_field_name("parameters")
        params = [param.name for child in (listed.named_children if listed is not None else ())
                  if (param := self._param(child)) is not None]
        return Lambda(params, [self.field(node, "body")])

    def _parenthesized_expression(self, node: "Node") -> Expr:
        return self.first(node)

    _await = _parenthesized_expression

    def _list_splat(self, node: "Node") -> Expr:
        return self.spread(node)

    def _named_expression(self, node: "Node") -> Expr:
        return self.field(node, "value")

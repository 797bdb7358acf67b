"""Reads TypeScript and JavaScript."""

from typing import TYPE_CHECKING

from keystead.inventory.code.expressions import (
    SELF,
    Arithmetic,
    Call,
    Expr,
    Index,
    Member,
    Name,
    Number,
    Table,
    Text,
)
from keystead.inventory.code.lowering import Reader, merged, unescaped
from keystead.inventory.code.scopes import Param

if TYPE_CHECKING:
    from tree_sitter import Node



class TypeScriptReader(Reader):
    """Reads one TypeScript or JavaScript file. An enum counts as a class."""

    language = "typescript"
    query = """
        (class_declaration) @class
        (class) @class
        (abstract_class_declaration) @class
        (enum_declaration) @class
        (enum_assignment) @member
        (public_field_definition) @member
        (function_declaration) @function
        (generator_function_declaration) @function
        (function_expression) @function
        (arrow_function) @function
        (method_definition) @function
        (statement_block) @block
        (switch_case) @block
        (switch_default) @block
        (variable_declarator) @assign
        (assignment_expression) @assign
        (augmented_assignment_expression) @augmented
        (for_in_statement) @loop
        (return_statement) @return
        (call_expression) @call
        (new_expression) @call
        (import_statement) @import
    """

    def found_class(self, node: "Node") -> None:
        bases = [self.text(value).rsplit(".", 1)[-1] for child in node.named_children if child.type == "class_heritage"
                 for clause in child.named_children for value in clause.children_by_field_name("value")]
        self.enter_class(node, self.text(node.child_by_field_name("name")), bases)

    def found_member(self, node: "Node") -> None:
        name = self.text(node.child_by_field_name("name")).strip("'\"").lstrip("#")
        kind = self.text(node.child_by_field_name("type")).lstrip(": ")
        value = node.child_by_field_name("value")
        if value is not None:
            self.assign(Name(name), self.lower(value), node, type=kind)
        elif kind:
            self.scope.types.setdefault(name, kind)

    def found_function(self, node: "Node") -> None:
        params = self._params(node)
        name = self.text(node.child_by_field_name("name")) or self._given_name(node)
        scope = self.enter_function(node, name.lstrip("#"), params)
        home = self.own_class()
        if name == "constructor" and home is not None:
            self._parameter_properties(node, params)
        body = node.child_by_field_name("body")
        if body is not None and body.type != "statement_block":
            before, self.scope = self.scope, scope
            self.returned(self.lower(body), body)
            self.scope = before

    def _parameter_properties(self, node: "Node", params: list[Param]) -> None:
        """``constructor(private readonly redis: Redis)`` also makes a member."""
        listed = node.child_by_field_name("parameters")
        home = self.own_class()
        for child in listed.named_children if listed is not None else ():
            if home is None or not any(each.type in ("accessibility_modifier", "readonly") for each in child.children):
                continue
            name = self.text(child.child_by_field_name("pattern"))
            kind = next((param.type for param in params if param.name == name), "")
            self.assign(Member(Name(SELF), name), Name(name), child, type=kind)

    def _given_name(self, node: "Node") -> str:
        """The name that an unnamed function gets from where it is put."""
        parent = node.parent
        if parent is None:
            return ""
        if parent.type == "variable_declarator":
            return self.text(parent.child_by_field_name("name"))
        if parent.type == "public_field_definition":
            return self.text(parent.child_by_field_name("name"))
        if parent.type == "pair":
            return self.text(parent.child_by_field_name("key"))
        if parent.type == "assignment_expression":
            return self.text(parent.child_by_field_name("left")).rsplit(".", 1)[-1]
        return ""

    def _params(self, node: "Node") -> list[Param]:
        one = node.child_by_field_name("parameter")
        if one is not None:
            return [Param(self.text(one))]
        listed = node.child_by_field_name("parameters")
        found: list[Param] = []
        for child in listed.named_children if listed is not None else ():
            pattern = child.child_by_field_name("pattern")
            if child.type == "comment":
                continue
            value = child.child_by_field_name("value")
            name = self.text(pattern if pattern is not None else child)
            found.append(Param(name.lstrip("."), self.lower(value) if value is not None else None,
                               self.text(child.child_by_field_name("type")).lstrip(": "), name.startswith("...")))
        return found

    def found_assign(self, node: "Node") -> None:
        target = node.child_by_field_name("name") or node.child_by_field_name("left")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if target is None:
            return
        kind = self.text(node.child_by_field_name("type")).lstrip(": ")
        if target.type == "object_pattern":
            made = self.lower(value)
            module = _required(made)
            for child in target.named_children:
                there = self.text(child.child_by_field_name("key") or child)
                here = self.text(child.child_by_field_name("value") or child)
                if module:
                    self.file.imports[here] = (module, there)
                else:
                    self.assign(Name(here), Member(made, there), node)
            return
        made = self.lower(value)
        module = _required(made)
        if module:
            self.file.imports[self.text(target)] = (module, "")
        elif value is not None:
            self.assign(self.lower(target), made, node, type=kind)
        elif kind:
            self.scope.types.setdefault(self.text(target), kind)

    def found_augmented(self, node: "Node") -> None:
        if self.text(node.child_by_field_name("operator")) == "+=":
            target = self.field(node, "left")
            self.assign(target, Arithmetic("+", target, self.field(node, "right")), node)

    def found_loop(self, node: "Node") -> None:
        target = self.field(node, "left")
        self.assign(target, Call(Name("each of"), [self.field(node, "right")]), node)

    def found_return(self, node: "Node") -> None:
        if node.named_children:
            self.returned(self.first(node), node)

    def found_import(self, node: "Node") -> None:
        module = self.text(node.child_by_field_name("source")).strip("'\"")
        for clause in node.named_children:
            if clause.type != "import_clause":
                continue
            for child in clause.named_children:
                if child.type == "identifier":
                    self.file.imports[self.text(child)] = (module, "default")
                elif child.type == "namespace_import":
                    self.file.imports[self.text(child.named_children[0])] = (module, "")
                else:
                    for each in child.named_children:
                        name = self.text(each.child_by_field_name("name"))
                        self.file.imports[self.text(each.child_by_field_name("alias")) or name] = (module, name)

    # -- expressions ------------------------------------------------------------

    def _identifier(self, node: "Node") -> Expr:
        return Name(self.text(node))

    _property_identifier = _shorthand_property_identifier = _type_identifier = _identifier

    def _this(self, node: "Node") -> Expr:
        return Name(SELF)

    def _member_expression(self, node: "Node") -> Expr:
        return Member(self.field(node, "object"), self.text(node.child_by_field_name("property")).lstrip("#"))

    def _subscript_expression(self, node: "Node") -> Expr:
        base, key = self.field(node, "object"), self.field(node, "index")
        return Member(base, key.value) if isinstance(key, Text) and key.value.isidentifier() else Index(base, key)

    def _string(self, node: "Node") -> Expr:
        return unescaped(self.text(node)[1:-1])

    def _template_string(self, node: "Node") -> Expr:
        parts: list[Expr] = []
        for child in node.named_children:
            if child.type == "template_substitution":
                parts.append(self.first(child))
            elif child.type in ("string_fragment", "escape_sequence"):
                parts.append(unescaped(self.text(child)))
        return merged(parts)

    def _call_expression(self, node: "Node") -> Expr:
        return self.call(node, self.field(node, "function"), node.child_by_field_name("arguments"))

    def _new_expression(self, node: "Node") -> Expr:
        return self.call(node, self.field(node, "constructor"), node.child_by_field_name("arguments"))

    def _binary_expression(self, node: "Node") -> Expr:
        return self.binary(node)

    def _ternary_expression(self, node: "Node") -> Expr:
        return self.choice(node.child_by_field_name("consequence"), node.child_by_field_name("alternative"))

    def _number(self, node: "Node") -> Expr:
        return self.number(node)

    def _unary_expression(self, node: "Node") -> Expr:
        inside = self.field(node, "argument")
        return Number(-inside.value) if isinstance(inside, Number) and self.text(node)[:1] == "-" else inside

    def _array(self, node: "Node") -> Expr:
        return self.items(node)

    def _object(self, node: "Node") -> Expr:
        pairs: list[tuple[Expr, Expr]] = []
        for child in node.named_children:
            if child.type == "pair":
                key = child.child_by_field_name("key")
                named = Text(self.text(key).strip("'\"`")) if key is not None and key.type != "computed_property_name" \
                    else self.first(key) if key is not None else Text("")
                pairs.append((named, self.field(child, "value")))
            elif child.type == "shorthand_property_identifier":
                pairs.append((Text(self.text(child)), Name(self.text(child))))
            elif child.type == "method_definition":
                pairs.append((Text(self.text(child.child_by_field_name("name"))), self._function(child)))
        return Table(pairs)

    def _function(self, node: "Node") -> Expr:
        params = [param.name for param in self._params(node)]
        return self.function_value(node, params, node.child_by_field_name("body"), {"statement_block"})

    _arrow_function = _function_expression = _function

    def _await_expression(self, node: "Node") -> Expr:
        return self.first(node)

    _as_expression = _satisfies_expression = _non_null_expression = _parenthesized_expression = _await_expression
    _template_substitution = _await_expression

    def _spread_element(self, node: "Node") -> Expr:
        return self.spread(node)


def _required(value: Expr) -> str:
    """The module of ``require("module")``."""
    if isinstance(value, Call) and isinstance(value.callee, Name) and value.callee.name == "require" and value.args \
            and isinstance(value.args[0], Text):
        return value.args[0].value
    return ""



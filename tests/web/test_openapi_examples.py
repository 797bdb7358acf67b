"""Examples made from schemas."""

import pytest

from keystead.web.openapi_examples import example_of


@pytest.mark.parametrize(("schema", "example"), [
    ({"type": "string", "examples": ["Ada"]}, "Ada"), ({"type": "string"}, "text"),
    ({"type": "string", "minLength": 6}, "textte"), ({"type": "string", "maxLength": 2}, "te"),
    ({"type": "integer", "minimum": 5}, 5), ({"type": "number", "exclusiveMinimum": 5}, 6),
    ({"type": "integer", "maximum": 0}, 0), ({"enum": ["a", "b"]}, "a"), ({"const": 3}, 3), ({}, None),
    ({"type": "boolean", "default": False}, False), ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 1),
    ({"type": "array", "items": {"type": "integer"}}, [1]), ({"type": "array", "maxItems": 0}, []),
    ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, [1, "text"]),
    ({"type": "object", "properties": {"a": {"$ref": "#/components/schemas/A"}}}, {"a": "of A"}),
])
def test_the_plainest_value_that_fits(schema, example):
    assert example_of(schema, {"A": {"example": "of A"}}) == example


def test_what_holds_itself_ends():
    schemas = {"A": {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/A"}}}}
    assert example_of({"$ref": "#/components/schemas/A"}, schemas)

"""Examples of bodies, made from their schemas: what fields give as an example, or the plainest value that fits."""

from typing import Any, Final

Schema = dict[str, Any]
_PLAIN: Final = {"string": "text", "integer": 1, "number": 1.0, "boolean": True, "null": None}
_DEEPEST: Final = 8


def example_of(schema: Schema, schemas: Schema, depth: int = 0) -> Any:
    """A value that the schema allows; references are looked up in ``schemas``. One that says nothing gives null."""
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas, depth)
    if schema.get("examples"):
        return schema["examples"][0]
    if "example" in schema:
        return schema["example"]
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("default") is not None:
        return schema["default"]
    for word in ("anyOf", "oneOf", "allOf"):
        if schema.get(word):
            return example_of(schema[word][0], schemas, depth)
    kind = schema.get("type")
    if kind == "object":
        return _object(schema, schemas, depth)
    if kind == "array":
        return _array(schema, schemas, depth)
    if kind == "string":
        return _string(schema)
    if kind in ("integer", "number"):
        return _number(schema, _PLAIN[kind])
    return _PLAIN.get(kind) if isinstance(kind, str) else None


def _object(schema: Schema, schemas: Schema, depth: int) -> dict[str, Any]:
    if depth >= _DEEPEST:
        return {}
    fields = schema.get("properties", {})
    return {name: example_of(field, schemas, depth + 1) for name, field in fields.items()}


def _array(schema: Schema, schemas: Schema, depth: int) -> list[Any]:
    if depth >= _DEEPEST or schema.get("maxItems") == 0:
        return []
    if "prefixItems" in schema:
        return [example_of(each, schemas, depth + 1) for each in schema["prefixItems"]]
    return [example_of(schema.get("items", {}), schemas, depth + 1)]


def _string(schema: Schema) -> str:
    text = str(_PLAIN["string"])
    least, most = int(schema.get("minLength", 0)), int(schema.get("maxLength", len(text)))
    return (text * (least // len(text) + 1))[: max(least, min(most, len(text)))]


def _number(schema: Schema, plain: Any) -> Any:
    least, most = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    if least is not None and plain < least:
        plain = least if "minimum" in schema else least + 1
    if most is not None and plain > most:
        plain = most
    return plain

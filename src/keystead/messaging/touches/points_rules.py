"""What a touch point must be like before it is stored: its name, its schema, and what its messages ask of an event."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from jsonschema.exceptions import SchemaError, ValidationError  # type: ignore[import-untyped]
from openapi_schema_validator import OAS30Validator

from keystead.errors import Invalid
from keystead.messaging.touches.messages import Messages, rendered
from keystead.messaging.touches.rendering import Unrenderable, names_in
from keystead.messaging.touches.selection import STRATEGIES

MOST_MESSAGES: Final = 1000
_OF_OBJECTS: Final = frozenset(("properties", "required", "additionalProperties"))
_PLAIN: Final = _OF_OBJECTS | {"type", "title", "description", "example"}
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)
}


def check_strategy(strategy: str) -> None:
    if strategy not in STRATEGIES:
        raise Invalid(f"{strategy[:40]!r} is no way to select messages; there are {', '.join(STRATEGIES)}")


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what is no OpenAPI 3.0 schema of an object, or whose own example does not fit."""
    for name in ("type", "example"):
        if name not in schema:
            raise Invalid(f"the schema of an event needs {name}")
    if schema["type"] != "object":
        raise Invalid("the parameters of an event have names, so the type of its schema is object")
    _refuse_references(schema)
    try:
        OAS30Validator.check_schema(schema)
    except SchemaError as error:
        raise Invalid(f"this is no OpenAPI 3.0 schema: {error.message[:200]}") from None
    try:
        check_parameters(schema, schema["example"])
    except Invalid as error:
        raise Invalid(f"the example of the schema does not fit it: {error}") from None


def check_parameters(schema: Mapping[str, Any], parameters: Any) -> None:
    """Refuse parameters of an event that do not fit its schema."""
    Rules(schema).check(parameters)


class Rules:
    """A schema made ready for many events."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._validator = OAS30Validator(schema)
        self._fits = _at_a_glance(schema)

    def check(self, parameters: Any) -> None:
        """Refuse parameters that do not fit."""
        if self._fits is None or not self._fits(parameters):
            _check(self._validator, parameters)


def _at_a_glance(schema: Any) -> Callable[[Any], bool] | None:
    """Tells of a value that it surely fits; None for a schema of which only the validator knows what it means.

    Most events are a few names with text or numbers, and the validator takes longer for them than all else about words.
    """
    if not isinstance(schema, Mapping) or not schema.keys() <= _PLAIN:
        return None
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _TYPES and not schema.keys() & _OF_OBJECTS:
        types = _TYPES[kind]
        return lambda value: value.__class__ in types
    if kind != "object":
        return None
    properties, wanted = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(wanted, list):
        return None
    known = {name: _at_a_glance(each) for name, each in properties.items()}
    required, is_open = set(wanted), schema.get("additionalProperties", True) is True

    def fits(value: Any) -> bool:
        if value.__class__ is not dict or not required <= value.keys():
            return False
        for name, each in value.items():
            if name not in known:
                if not is_open:
                    return False
            elif (look := known[name]) is None or not look(each):
                return False
        return True

    return fits


def _check(validator: OAS30Validator, parameters: Any) -> None:
    try:
        error = next(validator.iter_errors(parameters), None)
    except (ValidationError, re.error, RecursionError, TypeError) as trouble:  # of the schema, not of the event
        raise Invalid(f"the schema cannot be used: {type(trouble).__name__}") from None
    if error is not None:
        raise Invalid(_mended(error))


def _mended(error: ValidationError) -> str:
    """What is wrong and how to mend it, by names and rules alone: the value that does not fit may be personal."""
    place = ".".join(map(str, error.absolute_path)) or "the event"
    rule, wanted, found = error.validator, error.validator_value, error.instance
    if rule == "required" and isinstance(found, Mapping):
        missing = [str(name) for name in wanted if name not in found]
        why = f"it lacks {', '.join(missing)}; add {'it' if len(missing) == 1 else 'them'} to the parameters"
    elif rule == "type":
        why = f"it must be of type {wanted}"
    elif rule == "additionalProperties" and isinstance(found, Mapping):
        more = [str(name)[:60] for name in found if name not in error.schema.get("properties", {})]
        why = f"it has {', '.join(more)}, which the schema does not know"
    else:
        why = f"{rule} {wanted}"
    return f"{place} does not fit the schema: {why[:300]}"


def check_messages(messages: Messages, schema: Mapping[str, Any]) -> None:
    """Refuse messages that could not be made of every event that fits the schema."""
    everything = list(messages)
    if len(everything) > MOST_MESSAGES:
        raise Invalid(f"a touch point has at most {MOST_MESSAGES} messages, not {len(everything)}")
    uids = [message.uid for message in everything]
    if len(set(uids)) < len(uids) or not all(uids):
        raise Invalid("every message needs a uid of its own")
    for message in everything:
        for one in message.formats():
            for name in names_in(one.template):
                if name not in one.parameters:
                    raise Invalid(f"message {message.uid} uses {name}, which its parameters do not list")
            for name in one.parameters:
                if not is_required(schema, name) and not (one.optional and is_known(schema, name)):
                    raise Invalid(f"message {message.uid} uses {name}, which the schema does not "
                                  f"{'know' if one.optional else 'require'}")
        try:
            rendered(message, schema["example"])
        except Unrenderable as error:
            raise Invalid(f"message {message.uid} cannot be made of the schema's example: {error}") from None


def is_required(schema: Mapping[str, Any], path: str) -> bool:
    """Whether every event that fits the schema has a value under this dotted name."""
    return _walk(schema, path, required=True)


def is_known(schema: Mapping[str, Any], path: str) -> bool:
    """Whether the schema says what may be under this dotted name."""
    return _walk(schema, path, required=False)


def _walk(schema: Mapping[str, Any], path: str, *, required: bool) -> bool:
    found: Any = schema
    for step in path.split("."):
        if not isinstance(found, Mapping) or (required and step not in found.get("required", ())):
            return False
        found = found.get("properties", {}).get(step)
    return isinstance(found, Mapping)


def _refuse_references(schema: Any) -> None:
    """A schema stands for itself: whoever checks an event must not have to fetch anything."""
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            raise Invalid("the schema of an event cannot refer to other documents ($ref)")
        for value in schema.values():
            _refuse_references(value)
    elif isinstance(schema, list):
        for value in schema:
            _refuse_references(value)

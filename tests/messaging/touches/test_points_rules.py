"""What a touch point must be like."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openapi_schema_validator import OAS30Validator

from keystead.errors import Invalid
from keystead.messaging.touches.messages import EmailMessage, Messages, SmsMessage, Substitution
from keystead.messaging.touches.points_builtin import BUILT_IN
from keystead.messaging.touches.points_names import check_slug
from keystead.messaging.touches.points_rules import (
    check_messages,
    check_parameters,
    check_schema,
    check_strategy,
    is_required,
)

SCHEMA = {
    "type": "object", "example": {"name": "Ada", "streak": {"days": 4}}, "required": ["name", "streak"],
    "properties": {
        "name": {"type": "string", "example": "Ada"},
        "nick": {"type": "string", "nullable": True, "example": "A"},
        "streak": {"type": "object", "required": ["days"], "properties": {"days": {"type": "integer", "example": 4}}},
    },
}


def text(template: str, *parameters: str, uid: str = "a") -> Messages:
    return Messages(sms=[SmsMessage(priority=1, uid=uid, body_format=template, body_parameters=list(parameters))])


@pytest.mark.parametrize("slug", ["ab", "daily_reminder", "A_b", "x" * 255])
def test_names_of_events(slug):
    check_slug(slug)


@pytest.mark.parametrize("slug", ["", "a", "_ab", "ab_", "a1b", "a-b", "x" * 256, "ab\n"])
def test_other_names_are_refused(slug):
    with pytest.raises(Invalid, match="event"):
        check_slug(slug)


def test_ways_to_select():
    check_strategy("fixed")
    with pytest.raises(Invalid, match="ordered_resettable"):
        check_strategy("best")


@pytest.mark.parametrize("schema, says", [
    ({"example": {}}, "needs type"),
    ({"type": "object"}, "needs example"),
    ({"type": "string", "example": "x"}, "object"),
    ({"type": "object", "example": {}, "properties": {"a": {"type": "wrong"}}}, "no OpenAPI"),
    ({"type": "object", "example": {}, "required": ["a"]}, "example"),
    ({"type": "object", "example": {}, "properties": {"a": {"$ref": "http://localhost/x"}}}, "refer"),
])
def test_schemas_that_cannot_be_used(schema, says):
    with pytest.raises(Invalid, match=says):
        check_schema(schema)


def test_an_event_must_fit_and_is_not_repeated_in_the_refusal():
    check_schema(SCHEMA)
    check_parameters(SCHEMA, {"name": "Ada", "nick": None, "streak": {"days": 1}})
    with pytest.raises(Invalid, match="name does not fit") as refused:
        check_parameters(SCHEMA, {"name": 123456, "streak": {"days": 1}})
    assert "123456" not in str(refused.value)


@pytest.mark.parametrize("parameters, says", [
    ({}, "the event: it lacks name, streak; add them to the parameters"),
    ({"name": "Ada", "streak": {}}, "streak: it lacks days; add it to the parameters"),
    ({"name": "Ada", "streak": {"days": "secret"}}, "streak.days: it must be of type integer"),
    ({"name": "Ada", "streak": {"days": 4, "best": 5}}, "streak: it has best, which the schema does not know"),
    ({"name": "Ada", "streak": {"days": 4}, "nick": "secret"}, "nick: maxLength 3"),
    ({"name": "Ada", "streak": {"days": 4}, "mood": "secret"}, "mood: enum ['good', 'bad']"),
    ([], "the event: it must be of type object"),
])
def test_a_refusal_says_what_is_wrong_and_how_to_mend_it(parameters, says):
    strict = {**SCHEMA, "properties": {
        **SCHEMA["properties"], "nick": {"type": "string", "maxLength": 3}, "mood": {"enum": ["good", "bad"]},
        "streak": {**SCHEMA["properties"]["streak"], "additionalProperties": False},
    }}
    with pytest.raises(Invalid) as refused:
        check_parameters(strict, parameters)
    assert str(refused.value).replace(" does not fit the schema", "") == says


def test_a_message_may_only_use_what_every_event_has():
    check_messages(text("{name} {streak.days}", "name", "streak.days"), SCHEMA)
    assert is_required(SCHEMA, "streak.days") and not is_required(SCHEMA, "streak.best")
    with pytest.raises(Invalid, match="does not require"):
        check_messages(text("{nick}", "nick"), SCHEMA)
    for name, says in (("nick", None), ("unknown", "does not know")):
        email = Messages(email=[EmailMessage(
            priority=1, uid="e", subject_format="S", template="notice",
            template_parameters_substituted=[Substitution(key=["x"], format=f"{{{name}}}", parameters=[name],
                                                          optional=True)])])
        if says is None:
            check_messages(email, SCHEMA)
        else:
            with pytest.raises(Invalid, match=says):
                check_messages(email, SCHEMA)
    with pytest.raises(Invalid, match="do not list"):
        check_messages(text("{name}"), SCHEMA)
    with pytest.raises(Invalid, match="uid"):
        check_messages(Messages(sms=[*text("x").sms, *text("y").sms]), SCHEMA)
    with pytest.raises(Invalid, match="example"):
        check_messages(text("{streak}", "streak"), SCHEMA)


def test_what_comes_with_the_program_keeps_the_rules():
    for one in BUILT_IN:
        check_slug(one.slug)
        check_strategy(one.strategy)
        check_schema(one.schema)
        check_messages(one.messages.in_order(), one.schema)


LOOKED_AT = [
    SCHEMA,
    {**SCHEMA, "additionalProperties": False},
    {**SCHEMA, "additionalProperties": {"type": "integer"}},
    {"type": "object", "example": {}, "properties": {"name": {"type": "string", "maxLength": 2}}},
    {"type": "object", "example": {}, "minProperties": 2, "properties": {"name": {"type": "number"}}},
    {"type": "object", "example": {}, "properties": {"name": {"type": "string", "required": ["x"]}, "more": {}}},
    {"type": "object", "example": {}, "properties": {"name": {"type": "boolean"}, "streak": {"type": "array"}}},
]
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from((0.5, 2.0)), st.text("ab", max_size=3))
EVENTS = st.one_of(VALUES, st.dictionaries(
    st.sampled_from(("name", "nick", "streak", "more")),
    st.one_of(VALUES, st.dictionaries(st.sampled_from(("days", "x")), VALUES), st.lists(VALUES, max_size=2)),
))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(LOOKED_AT), EVENTS)
def test_what_fits_at_a_glance_is_what_the_validator_accepts(schema, event):
    valid = OAS30Validator(schema).is_valid(event)
    try:
        check_parameters(schema, event)
    except Invalid:
        assert not valid
    else:
        assert valid

"""A document of the published shape: what may stand where, in our own words."""

import json

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from keystead.inventory import Entry, Fact, Inventory, Source
from keystead.inventory.asyncapi import to_asyncapi

from .inventories import INVENTORIES

TEXT = {"type": "string"}
REFERENCE = {"type": "object", "required": ["$ref"], "additionalProperties": False,
             "properties": {"$ref": {"type": "string", "format": "uri-reference"}}}


def closed(properties: dict, required: tuple[str, ...] = ()) -> dict:
    """An object of the specification: what it does not know must begin with x-."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False,
            "patternProperties": {r"^x-[\w\d.\x2d_]+$": {}}}


TAGS = {"type": "array", "uniqueItems": True, "items": closed({"name": TEXT, "description": TEXT}, ("name",))}
MESSAGE = closed({"title": TEXT, "name": TEXT, "summary": TEXT, "description": TEXT, "contentType": TEXT,
                  "payload": {"type": "object"}, "headers": {"type": "object"}, "tags": TAGS,
                  "examples": {"type": "array", "items": closed({
                      "name": TEXT, "summary": TEXT, "headers": {"type": "object"}, "payload": {"type": "object"}})}})
PARAMETER = closed({"description": TEXT, "default": TEXT, "enum": {"type": "array", "items": TEXT},
                    "examples": {"type": "array", "items": TEXT}})
CHANNEL = closed({"address": {"type": ["string", "null"]}, "title": TEXT, "summary": TEXT, "description": TEXT,
                  "messages": {"type": "object", "additionalProperties": MESSAGE},
                  "parameters": {"type": "object", "additionalProperties": PARAMETER}, "tags": TAGS})
OPERATION = closed({"action": {"enum": ["send", "receive"]}, "channel": REFERENCE, "title": TEXT, "summary": TEXT,
                    "description": TEXT, "messages": {"type": "array", "items": REFERENCE}, "tags": TAGS},
                   ("action", "channel"))
SERVER = closed({"host": TEXT, "pathname": TEXT, "protocol": TEXT, "description": TEXT}, ("host", "protocol"))
DOCUMENT = closed({
    "asyncapi": {"const": "3.0.0"}, "info": closed({"title": TEXT, "version": TEXT, "description": TEXT},
                                                  ("title", "version")),
    "servers": {"type": "object", "additionalProperties": SERVER},
    "channels": {"type": "object", "additionalProperties": CHANNEL},
    "operations": {"type": "object", "additionalProperties": OPERATION},
}, ("asyncapi", "info"))


def check(document: dict) -> None:
    """Shape, references that lead somewhere, and parameters that stand in their address."""
    jsonschema.validate(document, DOCUMENT)
    json.dumps(document)
    for channel in document["channels"].values():
        for name in channel.get("parameters", {}):
            assert f"{{{name}}}" in channel["address"]
    for operation in document.get("operations", {}).values():
        for reference in (operation["channel"], *operation["messages"]):
            found = document
            for step in reference["$ref"].removeprefix("#/").split("/"):
                found = found[step]


SAMPLE = Inventory("redis-keys.md", (
    Entry("chat:{room}:events", kind="channel", purpose=Fact("what is said in a room"), writers=(Fact("chat"),),
          readers=(Fact("web"), Fact("bots")), variables=(("room", "uuid"),), section=("Chat",),
          payload=Fact('{"text": "hi", "at": 1.5, "tags": ["a"]}'), sources=(Source("redis-keys.md", 9),)),
    Entry("news:*", kind="channel", writers=(Fact("press"),), payload=Fact("JSON with a headline")),
    Entry("user:{id}"),
))


def test_channels_and_who_sends_and_receives() -> None:
    document = to_asyncapi(SAMPLE, server_url="rediss://user:secret@cache.example:6380/2")

    check(document)
    assert document["servers"] == {"redis": {"host": "cache.example:6380", "protocol": "rediss", "pathname": "/2"}}
    assert "secret" not in json.dumps(document)
    assert list(document["channels"]) == ["chat_room_events", "news"]
    chat = document["channels"]["chat_room_events"]
    assert (chat["address"], chat["parameters"]) == ("chat:{room}:events", {"room": {"description": "uuid"}})
    assert chat["messages"]["message"]["payload"]["properties"]["tags"] == {
        "type": "array", "items": {"type": "string"}}
    assert document["channels"]["news"]["address"] == "news:{rest}"
    assert {name: operation["action"] for name, operation in document["operations"].items()} == {
        "send_chat_room_events": "send", "receive_chat_room_events": "receive", "send_news": "send"}
    assert document["operations"]["receive_chat_room_events"]["description"] == "by web, bots"


def test_document_of_one_program_has_its_own_operations_only() -> None:
    document = to_asyncapi(SAMPLE, service="web")

    check(document)
    assert list(document["channels"]) == ["chat_room_events"]
    assert list(document["operations"]) == ["receive_chat_room_events"]


@pytest.mark.parametrize("payload", ["[]", "7", "null", "true", '{"a": null}', "{broken", "text"])
def test_every_payload_makes_a_message(payload: str) -> None:
    check(to_asyncapi(Inventory("x", (Entry("a", kind="channel", payload=Fact(payload)),))))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(INVENTORIES)
def test_every_inventory_makes_a_document(inventory: Inventory) -> None:
    document = to_asyncapi(inventory)

    check(document)
    assert len(document["channels"]) == sum(entry.kind == "channel" for entry in inventory.entries)

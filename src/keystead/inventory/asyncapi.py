"""The channels of an inventory as an AsyncAPI 3.0 document, for the tools that read those."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

from keystead.inventory.models import Entry, Inventory
from keystead.inventory.shapes import Hole, shape_of
from keystead.keys import OneOf

VERSION = "3.0.0"
_PROTOCOLS = {"redis": "redis", "valkey": "redis", "rediss": "rediss", "valkeys": "rediss"}


def to_asyncapi(
    inventory: Inventory, *, title: str = "", version: str = "1.0.0", server_url: str = "", service: str = ""
) -> dict[str, Any]:
    """The document, as values that JSON and YAML can hold.

    Who writes a channel sends, who reads it receives. With ``service`` only the operations of that program are listed,
    and only the channels it has to do with. A ``server_url`` is shown without its user and password.
    """
    entries = [entry for entry in inventory.entries
               if entry.kind == "channel" and (not service or _is_of(entry, service))]
    names = _names(entries)
    described = f"Channels of {inventory.name}" + (f" that {service} uses" if service else "")
    document: dict[str, Any] = {
        "asyncapi": VERSION, "info": {"title": title or service or "Redis channels", "version": version,
                                      "description": described},
    }
    if server_url:
        document["servers"] = {"redis": _server(server_url)}
    document["channels"] = {name: _channel(entry) for name, entry in zip(names, entries, strict=True)}
    operations: dict[str, Any] = {}
    for name, entry in zip(names, entries, strict=True):
        for action, people in (("send", entry.writers), ("receive", entry.readers)):
            by = [fact.value for fact in people if not service or fact.value == service]
            if by:
                operations[f"{action}_{name}"] = {
                    "action": action, "channel": {"$ref": f"#/channels/{name}"},
                    "messages": [{"$ref": f"#/channels/{name}/messages/message"}],
                    **({} if service else {"description": f"by {', '.join(by)}"}),
                }
    if operations:
        document["operations"] = operations
    return document


def _is_of(entry: Entry, service: str) -> bool:
    return any(fact.value == service for fact in (*entry.writers, *entry.readers))


def _names(entries: list[Entry]) -> list[str]:
    """A name for each channel that may stand in a reference."""
    names: list[str] = []
    for entry in entries:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", entry.pattern).strip("_") or "channel"
        name, number = plain, 1
        while name in names:
            number += 1
            name = f"{plain}_{number}"
        names.append(name)
    return names


def _channel(entry: Entry) -> dict[str, Any]:
    shape = shape_of(entry)
    names = iter(shape.names)
    kinds = dict(entry.variables)
    parameters: dict[str, Any] = {}
    address = ""
    for number, part in enumerate(shape.parts, 1):
        if not isinstance(part, Hole):
            address += part
            continue
        name = next(names) or "rest"
        name = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f"part_{number}"
        address += f"{{{name}}}"
        parameters[name] = _parameter(part, kinds.get(part.name, ""))
    channel: dict[str, Any] = {"address": address}
    if entry.purpose is not None and entry.purpose.value:
        channel["description"] = entry.purpose.value
    if parameters:
        channel["parameters"] = parameters
    channel["messages"] = {"message": _message(entry)}
    if entry.section:
        channel["tags"] = [{"name": entry.section[-1]}]
    if entry.sources:
        channel["x-stands-in"] = [str(source) for source in entry.sources]
    if entry.personal is not None and entry.personal.value:
        channel["x-personal-data"] = True
    return channel


def _parameter(hole: Hole, kind: str) -> dict[str, Any]:
    if isinstance(hole.kind, OneOf):
        return {"enum": list(hole.kind.values)}
    if not hole.name:
        return {"description": "any text: listeners subscribe by pattern"}
    return {"description": kind} if kind and kind != "word" else {}


def _message(entry: Entry) -> dict[str, Any]:
    said = entry.payload.value if entry.payload is not None else ""
    if not said:
        return {"payload": {}}
    try:
        example = json.loads(said)
    except ValueError:
        message: dict[str, Any] = {"payload": {"description": said}}
        return message | ({"contentType": "application/json"} if re.search(r"\bjson\b", said, re.IGNORECASE) else {})
    message = {"contentType": "application/json", "payload": _schema(example)}
    return message | ({"examples": [{"payload": example}]} if isinstance(example, dict) else {})


def _schema(example: Any) -> dict[str, Any]:
    """A schema that an example fits."""
    if isinstance(example, dict):
        return {"type": "object", "properties": {str(name): _schema(value) for name, value in example.items()}}
    if isinstance(example, list):
        return {"type": "array", "items": _schema(example[0])} if example else {"type": "array"}
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string")):
        if isinstance(example, kind):
            return {"type": name}
    return {}


def _server(url: str) -> dict[str, Any]:
    parts = urlsplit(url if "//" in url else f"redis://{url}")
    host = (parts.hostname or "localhost") + (f":{parts.port}" if parts.port else "")
    server = {"host": host, "protocol": _PROTOCOLS.get(parts.scheme, parts.scheme or "redis")}
    return server | ({"pathname": parts.path} if parts.path.strip("/") else {})

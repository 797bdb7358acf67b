"""The page on the HTTP interface, from the OpenAPI description of the assembled server."""

import asyncio
import json
import tempfile
from typing import Any

# What most readers look for first; the rest follows by name, and what only operators ask comes last.
FIRST = ("status", "users", "messaging", "touches", "reminders", "jobs", "tenants", "stats", "keys")
LAST = ("admin",)
# Every route may answer these, with the same body and meaning.
USUAL = ("400", "401", "403", "413", "429", "503")
METHODS = ("get", "post", "put", "patch", "delete")
_HEAD = """# HTTP interface

All JSON lives under `/api/1`. Send `Authorization: Bearer KEY` with an admin key (`keystead admin key create NAME
--scope SCOPE`), a program's token (`keystead token`), or a person's token. Errors have one body, listings one way of
paging; a write may carry an `Idempotency-Key`. The running server shows the same at `/docs` and `/openapi.json`.

Any route may answer 400 (something about the request is wrong, the message says what), 401 (no credential, or one that
does not count any more), 403 (it does not reach here, or the address is blocked), 413 (the body is too long), 429 (too
many requests; `Retry-After` says when to come back) and 503 (a server that is needed is away; try again).
"""


def described() -> dict[str, Any]:
    """The description, of a server that runs for as long as it takes to ask it."""
    from keystead.app import App
    from keystead.settings import load_settings
    from keystead.web.server import build

    async def ask(directory: str) -> dict[str, Any]:
        app = App(load_settings({"valkey.url": f"embedded://{directory}"}, environment={}))
        async with app.running(start_server=True, works=True) as running:
            return build(running, port=8400).openapi()

    with tempfile.TemporaryDirectory(prefix="keystead-docs-") as directory:
        return asyncio.run(ask(directory))


def api_page(description: dict[str, Any] | None = None) -> str:
    """The page in Markdown."""
    description = description or described()
    by_tag: dict[str, list[str]] = {}
    for path, methods in description["paths"].items():
        for method in METHODS:
            if method in methods:
                operation = methods[method]
                tag = (operation.get("tags") or ["other"])[0]
                by_tag.setdefault(tag, []).append(_operation(description, method, path, operation))
    parts = [_HEAD]
    for tag in sorted(by_tag, key=lambda tag: (tag in LAST, FIRST.index(tag) if tag in FIRST else len(FIRST), tag)):
        parts += [f"## {tag[:1].upper()}{tag[1:]}\n", *by_tag[tag]]
    return "\n".join(parts)


def _operation(description: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> str:
    lines = [f"### {method.upper()} `{path}`", "", (operation.get("description") or operation.get("summary", "")), ""]
    parameters = [_resolved(description, one) for one in operation.get("parameters", ())]
    if parameters:
        lines += ["| parameter | in | type | meaning |", "|---|---|---|---|"]
        lines += [f"| `{one['name']}`{_star(one.get('required'))} | {one['in']} | {_type(one.get('schema', {}))} | "
                  f"{_cell(one.get('description', ''))} |" for one in parameters]
        lines.append("")
    content = _resolved(description, operation.get("requestBody", {})).get("content", {})
    for media, body in content.items():
        lines += [f"Body (`{media}`):", "", *_fields(description, body.get("schema", {})), *_example(body)]
    lines += ["| answer | meaning | body |", "|---|---|---|"]
    usual = [status for status in operation.get("responses", {}) if status in USUAL]
    for status, answer in sorted(operation.get("responses", {}).items()):
        if status in usual:
            continue
        answer = _resolved(description, answer)
        bodies = ", ".join(_type(body.get("schema", {})) or f"`{media}`" for media, body in
                           answer.get("content", {}).items())
        lines.append(f"| {status} | {_cell(answer.get('description', ''))} | {bodies} |")
    if usual:
        lines += ["", f"And, as everywhere: {', '.join(sorted(usual))}."]
    success = next((answer for status, answer in sorted(operation.get("responses", {}).items())
                    if status.startswith("2")), {})
    for body in success.get("content", {}).values():
        schema = body.get("schema", {})
        if "$ref" in schema:
            lines += ["", f"{_type(schema)}:", "", *_fields(description, schema)]
        lines += _example(body)
    return "\n".join(lines) + "\n"


def _resolved(description: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in node:
        return node
    found: Any = description
    for part in node["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return dict(found)


def _fields(description: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    schema = _resolved(description, schema)
    properties = schema.get("properties", {})
    if not properties:
        return []
    required = set(schema.get("required", ()))
    rows = [f"| `{name}`{_star(name in required)} | {_type(one)} | {_cell(one.get('description', ''))} |"
            for name, one in properties.items()]
    return ["| field | type | meaning |", "|---|---|---|", *rows, ""]


def _example(body: dict[str, Any]) -> list[str]:
    examples = body.get("examples", {})
    found = body.get("example") or next((one.get("value") for one in examples.values()), None) \
        if isinstance(examples, dict) else body.get("example")
    if found is None:
        found = next(iter(body.get("schema", {}).get("examples", ())), None)
    return ["", "```json", json.dumps(found, indent=2, ensure_ascii=False), "```", ""] if found is not None else []


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    for many in ("anyOf", "oneOf", "allOf"):
        if many in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[many] if _type(one)))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {})) or 'anything'}"
    return str(schema.get("type", ""))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _star(required: object) -> str:
    return " (required)" if required else ""

"""The description of the HTTP interface is whole."""

import jsonschema_rs
import pytest

from keystead.app import App
from keystead.settings import load_settings
from keystead.web.openapi import refusal
from keystead.web.server import build

WRITES = {"post", "put", "patch", "delete"}
BARE = {"/api/1/sms/webhook", "/api/1/sms/inbound_webhook", "/api/1/emails/sns-mail"}  # for providers
UNPAGED = {"/api/1/sandbox/outbox", "/api/1/alerts"}  # and they say why


@pytest.fixture
async def document(valkey, valkey_server, tmp_path):
    app = App(load_settings({
        "valkey.url": valkey_server.url, "store.url": f"sqlite:///{tmp_path}/keystead.sqlite",
        "store.files_url": f"file://{tmp_path}/files",
    }, environment={}))
    app.data_directory = tmp_path
    async with app.running(works=True, answers=True, public_url="http://127.0.0.1:8400") as running:
        yield build(running, port=8400).openapi()


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


async def test_every_operation_says_all_that_can_happen(document):
    seen = 0
    for path, method, operation in operations(document):
        where, statuses = f"{method} {path}", set(operation["responses"])
        seen += 1
        assert operation.get("summary") and operation.get("description"), where
        assert operation["responses"] == dict(sorted(operation["responses"].items())), where
        assert all(each.get("description") for each in operation["responses"].values()), where
        if path in BARE:
            assert operation["security"] == [] and {"400", "401", "403"} <= statuses, where
            continue
        for status, response in operation["responses"].items():
            if status[0] in "45" and path not in ("/health", "/ready"):
                assert "application/problem+json" in response["content"], f"{where} {status}"
        if not path.startswith("/api/"):
            continue
        assert {"400", "401", "403", "429", "503"} <= statuses, where
        assert "RateLimit-Limit" in operation["responses"]["429"]["headers"], where
        assert "Retry-After" in operation["responses"]["429"]["headers"], where
        if method in WRITES and operation["security"]:
            assert {"409", "422"} <= statuses, where
            assert "Idempotency-Key" in {each["name"] for each in operation["parameters"]}, where
        if "requestBody" in operation:
            assert "413" in statuses, where
        if "{" in path:
            assert "404" in statuses, where
    assert seen > 90


async def test_every_example_fits_its_schema(document):
    wrong, seen = [], 0
    for path, method, operation in operations(document):
        bodies = [("request", operation["requestBody"])] if "requestBody" in operation else []
        bodies += list(operation["responses"].items())
        for name, body in bodies:
            for content in body.get("content", {}).values():
                if "example" not in content or not content.get("schema"):
                    continue
                seen += 1
                schema = {**content["schema"], "components": document["components"]}
                for error in jsonschema_rs.Draft202012Validator(schema).iter_errors(content["example"]):
                    wrong.append(f"{method} {path} {name}: {error.message}")
    assert not wrong and seen > 500


async def test_every_reference_leads_somewhere_and_tags_are_explained(document):
    def references(value):
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            for each in value.values():
                yield from references(each)
        elif isinstance(value, list):
            for each in value:
                yield from references(each)

    for reference in set(references(document)):
        found = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
    assert all(tag["description"] != tag["name"] for tag in document["tags"]), document["tags"]
    assert set(document["components"]["securitySchemes"]) == {"bearer", "session"}


def test_a_refusal_is_the_one_error_body():
    made = refusal(404)
    example = made["content"]["application/problem+json"]["example"]
    assert example["status"] == 404 and set(example) == {"type", "message", "title", "status", "detail"}


async def test_every_list_that_has_pages_has_the_same(document):
    schemas, paged = document["components"]["schemas"], set()
    for path, method, operation in operations(document):
        parameters = {each["name"]: each for each in operation.get("parameters", ())}
        if method != "get" or not {"limit", "cursor", "after", "before", "offset", "page"} & set(parameters):
            continue
        paged.add(path)
        if path in UNPAGED:
            assert "Not in pages" in operation["description"], path
            continue
        answer = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        assert {"items", "next_cursor"} <= set(schemas[answer.rpartition("/")[2]]["properties"]), path
        limit = parameters["limit"]["schema"]
        assert (limit["default"], limit["maximum"]) == (50, 500), path
        assert "next_cursor" in parameters["cursor"]["description"], path
    assert paged > {*UNPAGED, "/api/1/users"}

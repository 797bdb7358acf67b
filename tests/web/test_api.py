"""The HTTP interface of the registry."""

import asyncio

import pytest

from keystead.edge.keys import API_IP, EDGE
from keystead.operations import Census
from keystead.web import api as api_module


@pytest.fixture
def client(program):
    return program("keys")


async def test_every_declaration_is_listed(client):
    body = (await client.get("/api/1/keys")).json()
    assert {item["pattern"] for item in body["items"]} == {declaration.pattern for declaration in EDGE}
    api_ip = next(item for item in body["items"] if item["pattern"] == "api_ip:{ip}")
    assert api_ip == {
        "pattern": "api_ip:{ip}", "kind": "key", "type": "integer", "ttl": "1 min", "room": "edge", "personal": True,
        "purpose": API_IP.purpose, "tag": "edge:{ip}", "writers": ["edge.guard"], "readers": ["edge.guard"],
        "scripts": list(API_IP.scripts), "keys": None, "memory_bytes": None,
    }
    assert body["counted_at"] is None and body["undeclared_keys"] is None


async def test_counts_come_with_the_first_walk(running, valkey):
    await API_IP.at("203.0.113.7").set(valkey, 1)
    census = Census(valkey, running.registry, running.clock)
    await census.renew()
    shown = api_module._pattern(API_IP, census)
    assert shown.keys == 1 and shown.memory_bytes > 0


async def test_key_is_explained(client, valkey):
    await API_IP.at("203.0.113.7").set(valkey, 41)
    body = (await client.get("/api/1/keys/explain", params={"key": "api_ip:203.0.113.7"})).json()
    assert body["pattern"] == "api_ip:{ip}" and body["arguments"] == {"ip": "203.0.113.7"}
    assert body["exists"] and body["value"] == 41 and body["findings"] == [] and body["personal"]
    assert 30 < body["ttl_seconds"] <= 60


async def test_broken_and_stray_keys_say_what_is_wrong(client, valkey):
    await valkey.set("api_ip:203.0.113.7", "not a number")
    body = (await client.get("/api/1/keys/explain", params={"key": "api_ip:203.0.113.7"})).json()
    assert len(body["findings"]) == 2 and body["problem"]
    stray = (await client.get("/api/1/keys/explain", params={"key": "stray"})).json()
    assert stray["pattern"] is None and not stray["exists"]


async def test_key_that_is_no_text_can_be_asked_about(client, valkey):
    await valkey.set(b"raw:\xff\x00", "x")
    body = (await client.get("/api/1/keys/explain", params={"key": "raw:\\xff\\x00"})).json()
    assert body["exists"] and body["key"] == "raw:\\xff\\x00"


@pytest.mark.parametrize("params", [{}, {"key": ""}, {"key": "x" * 5000}])
async def test_bad_questions_have_the_one_error_body(client, params):
    answer = await client.get("/api/1/keys/explain", params=params)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "invalid" and answer.json()["message"].startswith("key: ")


async def test_many_questions_at_once(client):
    answers = await asyncio.gather(*(client.get("/api/1/keys") for _ in range(30)))
    assert {answer.status_code for answer in answers} == {200}

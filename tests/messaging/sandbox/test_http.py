"""The skin: real HTTP in, plain values out, and connections that are cut."""

import gzip
import json

import aiohttp
import pytest

from keystead.errors import Unavailable
from keystead.messaging.sandbox.http import BODY_BYTES, Answer, Asked, SandboxApp, json_answer
from keystead.messaging.sandbox.sandbox import Sandbox
from keystead.messaging.sandbox.serving import listening, serving, url_of

from .conftest import ACCOUNT


@pytest.fixture
async def skin(valkey, clock):
    """An address under which a handler of the test's own answers."""
    made = listening()
    sandbox = Sandbox(valkey, clock, url=url_of(made), account=ACCOUNT)
    asked = []

    async def handle(each):
        asked.append(each)
        match each.path:
            case "/cut":
                return None
            case "/away":
                raise Unavailable("the server is away")
            case "/long":
                return json_answer(200, ["x" * 5000], retry_after="7")
        return Answer(201, b"ok", {"x-a": "b"})

    sandbox.app = SandboxApp(handle)
    async with serving(sandbox, made), aiohttp.ClientSession(url_of(made)) as http:
        yield http, asked


async def test_a_request_arrives_whole(skin):
    http, asked = skin
    async with http.post("/sandbox/x/y?a=%20b", data=b"z" * 300_000, headers={"X-Name": "v"}) as response:
        assert (response.status, await response.read(), response.headers["x-a"]) == (201, b"ok", "b")
    (each,) = asked
    assert (each.method, each.path, each.query, len(each.body)) == ("POST", "/x/y", "a=%20b", 300_000)
    assert each.headers["x-name"] == "v"


async def test_a_long_answer_is_packed_for_those_who_can_unpack_it(skin):
    http, _ = skin
    async with http.get("/sandbox/long") as response:
        assert response.headers["content-encoding"] == "gzip"
        assert response.headers["retry-after"] == "7"
        assert (await response.json())[0] == "x" * 5000
    async with http.get("/sandbox/long", headers={"accept-encoding": "identity"}) as response:
        assert "content-encoding" not in response.headers


@pytest.mark.parametrize("path", ["/sandbox/cut", "/sandbox/away"])
async def test_a_connection_is_cut_without_an_answer(skin, path):
    http, _ = skin
    with pytest.raises(aiohttp.ClientError):
        async with http.get(path) as response:
            await response.read()
    async with http.get("/sandbox/ok") as response:
        assert response.status == 201


async def test_a_body_that_is_too_large_never_reaches_the_handler(skin):
    http, asked = skin
    async with http.post("/sandbox/x", data=b"z" * (BODY_BYTES + 1)) as response:
        assert response.status == 413
    assert not asked


def test_json_is_unpacked_only_as_far_as_is_safe():
    packed = gzip.compress(b'{"a": 1}')
    assert Asked("POST", "/", headers={"content-encoding": "gzip"}, body=packed).json() == {"a": 1}
    bomb = gzip.compress(b"[" + b" " * (BODY_BYTES * 3) + b"]")
    for body in (b"no gzip", bomb):
        with pytest.raises(ValueError):
            Asked("POST", "/", headers={"content-encoding": "gzip"}, body=body).json()
    with pytest.raises(ValueError):
        Asked("POST", "/", body=b"{").json()


def test_names_of_headers_are_written_with_dashes():
    assert json_answer(200, {}, retry_after="1").headers == {"content-type": "application/json", "retry-after": "1"}
    assert json.loads(json_answer(200, {"ü": 1}).body) == {"ü": 1}

import re
from pathlib import Path as FilePath

import httpx
import pytest
from fastapi import APIRouter, Form, Path, Request
from starlette.routing import Match

from keystead.errors import NotFound
from keystead.web.server import build
from keystead.web.signpost import Assembled, Signpost, _of_the_interface, _routes

from .conftest import PORT


def small_app() -> Assembled:
    app, router, inner = Assembled(), APIRouter(), APIRouter()

    @router.get("/files/{name:path}")
    async def file(name: str) -> str:
        return f"file {name}"

    @router.get("/things/first")
    async def first() -> str:
        return "first"

    @router.get("/things/{number:int}")
    async def numbered(number: int) -> str:
        return f"number {number + 1}"

    @router.get("/things/{name}")
    async def thing(name: str = Path(max_length=5)) -> str:
        return f"thing {name}"

    @router.post("/things/{name}")
    async def change(name: str, request: Request) -> list[str]:
        return [name, request.method, request.url_for("thing", name="x").path]

    @inner.get("/things/{name}/parts/{part}")
    async def part(name: str, part: str) -> str:
        return f"{part} of {name}"

    @inner.get("/files/late/{name}")
    async def late(name: str) -> str:
        return "never: the files come first"

    @inner.post("/forms")
    async def form(word: str = Form()) -> str:
        return word

    router.include_router(inner)
    app.include_router(router, prefix="/api/1")
    return app


@pytest.fixture
async def caller():
    transport = httpx.ASGITransport(small_app())
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client


@pytest.mark.parametrize(("path", "said"), [
    ("/api/1/things/first", "first"),
    ("/api/1/things/41", "number 42"),
    ("/api/1/things/other", "thing other"),
    ("/api/1/things/a%20b", "thing a b"),
    ("/api/1/things/a/parts/b", "b of a"),
    ("/api/1/files/a/b/c", "file a/b/c"),
    ("/api/1/files/late/x", "file late/x"),
])
async def test_first_route_that_fits_answers(caller, path, said):
    assert (await caller.get(path)).json() == said


async def test_route_finds_its_request_as_the_framework_gives_it(caller):
    assert (await caller.post("/api/1/things/a")).json() == ["a", "POST", "/api/1/things/x"]


async def test_form_is_read(caller):
    assert (await caller.post("/api/1/forms", data={"word": "yes"})).json() == "yes"


@pytest.mark.parametrize(("method", "path", "status"), [
    ("GET", "/api/1/things/toolong", 422), ("GET", "/api/1/nothing", 404), ("DELETE", "/api/1/things/a", 405),
    ("GET", "/api/1/things/first/", 307), ("GET", "/elsewhere", 404),
])
async def test_what_does_not_fit_is_answered_as_the_framework_does(caller, method, path, status):
    assert (await caller.request(method, path)).status_code == status


def test_every_route_of_the_interface_is_found_as_the_framework_would(running):
    app = build(running, port=PORT)
    post = Signpost(app)
    routes = [route for route in _routes(app) if _of_the_interface(route)]
    assert len(routes) > 50
    for route in routes:
        for method in route.methods:
            path = re.sub(r"\{[^}]+\}", "1", route.path)
            scope = {"type": "http", "method": method, "path": path, "headers": []}
            expected = next(each for each in routes if method in each.methods and each.path_regex.match(path))
            if not post.points(scope):
                assert ":path}" in route.path, (method, path)
                continue
            assert scope["keystead.way"][0].endpoint is expected.endpoint, (method, path)
            assert any(each.matches(dict(scope))[0] is Match.FULL for each in app.routes)


async def test_the_door_stands_in_front(running, visitor):
    answer = await visitor().get("/api/1/jobs/overview")
    assert answer.status_code == 401
    assert answer.headers["x-frame-options"] == "DENY"


async def test_refusals_and_faults_have_the_one_body(app, program):
    @app.get("/api/1/refused/{name}")
    async def refused(name: str) -> None:
        raise NotFound("nothing is here")

    @app.get("/api/1/faulty/{name}")
    async def faulty(name: str) -> None:
        raise RuntimeError(str(FilePath(__file__)))

    client = program("jobs")
    refusal, fault = await client.get("/api/1/refused/x"), await client.get("/api/1/faulty/x")
    assert (refusal.status_code, refusal.headers["content-type"]) == (404, "application/problem+json")
    assert (fault.status_code, fault.headers["content-type"]) == (500, "application/problem+json")
    assert "test_signpost" not in fault.text
    assert (await client.get("/api/1/jobs/x/y")).status_code == 404


async def test_layers_that_were_added_are_passed(running):
    seen = []

    class Layer:
        def __init__(self, app):
            self.app = app

        async def __call__(self, scope, receive, send):
            seen.append(scope["type"])
            await self.app(scope, receive, send)

    app = small_app()
    app.add_middleware(Layer)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        await client.get("/api/1/things/first")
        await client.get("/api/1/nothing")
    assert seen == ["http", "http"]

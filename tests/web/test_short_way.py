"""The short way must be told from the framework's by nothing but its speed: both answer the same requests here."""

from typing import Annotated, Any

import httpx
import pytest
from fastapi import APIRouter, Depends, FastAPI, Form, Header, Path, Query, Request, Response
from pydantic import BaseModel, Field, field_validator
from starlette.exceptions import HTTPException

from keystead.web.server import build
from keystead.web.short_way import _ShortWay, short_way
from keystead.web.signpost import Assembled, _of_the_interface, _routes

from .conftest import PORT


class Part(BaseModel):
    name: str = Field(min_length=1, max_length=5)


class Tea(BaseModel):
    kind: str

    @field_validator("kind")
    @classmethod
    def no_coffee(cls, kind: str) -> str:
        if kind == "coffee":
            raise HTTPException(418, "this is for tea", {"x-pot": "tea"})
        return kind


class Thing(BaseModel):
    number: int = 7
    parts: list[Part] = []
    more: dict[str, Any] = {}
    ratio: float | None = None


ran: list[str] = []


def small_routes() -> APIRouter:
    router = APIRouter()

    @router.post("/things/{name}", status_code=202)
    async def make(
        request: Request, response: Response, thing: Thing, name: Annotated[str, Path(max_length=5)]
    ) -> Thing:
        ran.append(name)
        if name == "made":
            response.status_code = 201
        if name == "gone":
            raise HTTPException(410, "it is gone")
        response.headers["x-name"] = name
        response.set_cookie("seen", "yes")
        return thing.model_copy(update={"more": {**thing.more, "read": (await request.body()).decode()}})

    @router.get("/things/{number}")
    async def number(number: int, most: int = 3, only: str | None = None) -> dict[str, Any]:
        ran.append(str(number))
        return {"number": number, "most": most, "only": only}

    @router.get("/own/{name}")
    async def own(name: str) -> Any:
        return Response(f"<p>{name}</p>", 203, media_type="text/html")

    @router.get("/empty/{status}")
    async def empty(status: int, response: Response) -> str | None:
        response.status_code = status
        response.headers["x-status"] = str(status)
        return None

    @router.post("/tea")
    async def tea(tea: Tea) -> str:
        ran.append(tea.kind)
        return tea.kind

    @router.post("/leaving")
    async def leaving(request: Request, thing: Thing) -> list[Any]:
        return [await request.is_disconnected(), (await request.body()).decode(), thing.number]

    @router.get("/wrong")
    async def wrong() -> Thing:
        return {"number": "seven"}  # type: ignore[return-value]

    return router


def odd_routes() -> APIRouter:
    router = APIRouter()

    @router.get("/header")
    async def header(word: Annotated[str, Header()]) -> str:
        return word

    @router.get("/needed")
    async def needed(word: Annotated[str, Query()]) -> str:
        return word

    @router.get("/made_up")
    async def made_up(word: Annotated[str, Query(default_factory=lambda: f"{len(ran)}")]) -> str:
        return word

    @router.get("/depends")
    async def depends(word: Annotated[str, Depends(lambda: "here")]) -> str:
        return word

    @router.post("/form")
    async def form(word: Annotated[str, Form()]) -> str:
        return word

    @router.post("/two")
    async def two(one: Part, other: Part) -> list[str]:
        return [one.name, other.name]

    @router.get("/nothing", status_code=204)
    async def nothing() -> None:
        return None

    @router.get("/sync")
    def sync() -> str:
        return "a thread"

    @router.get("/unset", response_model_exclude_unset=True)
    async def unset() -> Thing:
        return Thing()

    return router


def app_of(kind: type[FastAPI], router: APIRouter) -> FastAPI:
    app = kind()
    app.include_router(router, prefix="/api/1")
    return app


async def both(ask) -> tuple[httpx.Response, httpx.Response]:
    answers = []
    for kind in (Assembled, FastAPI):
        transport = httpx.ASGITransport(app_of(kind, small_routes()), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            answers.append(await ask(client))
    return answers[0], answers[1]


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(("method", "path", "content", "headers", "status"), [
    ("POST", "/api/1/things/a", b'{"number": 3, "parts": [{"name": "x"}], "ratio": 1.5}', JSON, 202),
    ("POST", "/api/1/things/a", b'{"number": "3"}', JSON, 202),
    ("POST", "/api/1/things/a", b"{}", {"content-type": "application/json; charset=utf-8"}, 202),
    ("POST", "/api/1/things/a", b"{}", {"content-type": "application/vnd.thing+json"}, 202),
    ("POST", "/api/1/things/a", '{"more": {"ä": "\\ud83d\\ude00"}}'.encode(), JSON, 202),
    ("POST", "/api/1/things/a?x=1", b"{}", JSON, 202),
    ("POST", "/api/1/things/made", b"{}", JSON, 201),
    ("POST", "/api/1/things/gone", b"{}", JSON, 410),
    ("POST", "/api/1/things/a", b"{", JSON, 422),
    ("POST", "/api/1/things/a", b'{"more": {"a": "\xff"}}', JSON, 400),
    ("POST", "/api/1/things/a", b"[" * 100_000, JSON, 400),
    ("POST", "/api/1/things/a", b"", JSON, 422),
    ("POST", "/api/1/things/a", b"[]", JSON, 422),
    ("POST", "/api/1/things/a", b"null", JSON, 422),
    ("POST", "/api/1/things/a", b"{}", {}, 422),
    ("POST", "/api/1/things/a", b"{}", {"content-type": "text/plain"}, 422),
    ("POST", "/api/1/things/a", b'{"parts": [{"name": "too long"}]}', JSON, 422),
    ("POST", "/api/1/things/toolong", b"{}", JSON, 422),
    ("GET", "/api/1/things/4", b"", {}, 200),
    ("GET", "/api/1/things/4?most=5&only=x", b"", {}, 200),
    ("GET", "/api/1/things/4?most=x", b"", {}, 422),
    ("GET", "/api/1/things/four", b"", {}, 422),
    ("GET", "/api/1/own/x", b"", {}, 203),
    ("GET", "/api/1/empty/204", b"", {}, 204),
    ("GET", "/api/1/empty/304", b"", {}, 304),
    ("GET", "/api/1/empty/203", b"", {}, 203),
    ("POST", "/api/1/tea", b'{"kind": "green"}', JSON, 200),
    ("POST", "/api/1/tea", b'{"kind": "coffee"}', JSON, 418),
    ("POST", "/api/1/leaving", b'{"number": 4}', JSON, 200),
])
async def test_both_ways_answer_the_same(method, path, content, headers, status):
    ran.clear()
    short, framework = await both(lambda client: client.request(method, path, content=content, headers=headers))
    assert short.status_code == framework.status_code == status
    assert short.content == framework.content
    assert sorted(short.headers.multi_items()) == sorted(framework.headers.multi_items())
    # The endpoint ran once for each of both, or for neither.
    assert len(ran) in (0, 2)
    assert len(set(ran)) <= 1


async def test_an_answer_of_another_form_than_declared_is_a_fault():
    short, framework = await both(lambda client: client.get("/api/1/wrong"))
    assert short.status_code == framework.status_code == 500
    assert "seven" not in short.text


async def test_a_body_that_comes_in_pieces_is_read_whole():
    async def pieces():
        for piece in (b'{"num', b'ber": ', b"12}"):
            yield piece

    short, framework = await both(lambda client: client.post("/api/1/things/a", content=pieces(), headers=JSON))
    assert short.json() == framework.json()
    assert short.json()["number"] == 12


def test_routes_that_ask_more_are_left_to_the_framework():
    app = app_of(Assembled, odd_routes())
    routes = [route for route in _routes(app) if _of_the_interface(route)]
    assert len(routes) == 9
    for route in routes:
        assert short_way(route) is route.app, route.path


def test_a_framework_with_other_routes_is_left_alone():
    class Other:
        app = staticmethod(lambda scope, receive, send: None)

    assert short_way(Other) is Other.app


def test_most_routes_of_the_interface_go_the_short_way(running):
    routes = [route for route in _routes(build(running, port=PORT)) if _of_the_interface(route)]
    short = {(tuple(route.methods), route.path) for route in routes if isinstance(short_way(route), _ShortWay)}
    assert len(short) > len(routes) / 2
    assert (("POST",), "/api/1/touches") in short

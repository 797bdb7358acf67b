"""The way to the server: what counts as a refusal, and what as being away."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from keystead.demo.client import Away, Client, Patience, Refusal


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.Response:
        status = int(request.path.rpartition("/")[2])
        told = {"type": "some_type", "message": "why", "user": request.headers.get("x-user-sub", ""),
                "by": request.headers.get("authorization", ""), "query": dict(request.query)}
        return web.json_response(told, status=status) if status != 204 else web.Response(status=204)

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"  # type: ignore[union-attr]
    await runner.cleanup()


async def test_answers_and_who_asks(address: str) -> None:
    async with Client(address + "/", "ksk_a_b") as client:
        found = await client.call("GET", "/x/200", acts_for="user_1", after=0, limit=5, channel="")
        assert found.body["by"] == "Bearer ksk_a_b" and found.body["user"] == "user_1"
        assert found.body["query"] == {"after": "0", "limit": "5"}
        assert (await client.call("POST", "/x/201", {}, token="t")).body["by"] == "Bearer t"
        assert (await client.call("POST", "/x/204")).body is None
        assert await client.browse("/l/404", "Mozilla/5.0") == 404


async def test_a_refusal_says_what_the_server_said(address: str) -> None:
    async with Client(address, "k") as client:
        with pytest.raises(Refusal, match="why") as refused:
            await client.call("GET", "/x/409")
        assert (refused.value.status, refused.value.type) == (409, "some_type")


async def test_a_server_that_cannot_answer_is_away(address: str) -> None:
    async with Client(address, "k") as client:
        with pytest.raises(Away, match="503"):
            await client.call("GET", "/x/503")
    async with Client("http://127.0.0.1:1", "k") as client:
        with pytest.raises(Away):
            await client.call("GET", "/x/200")


async def test_patience_grows_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    patience = Patience()
    for _ in range(7):
        await patience.wait()
    assert slept == [0.5, 1, 2, 4, 8, 10, 10]
    patience.over()
    await patience.wait()
    assert slept[-1] == 0.5

"""The load: as many requests as asked for, when they are due, and nothing of it hidden."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from keystead.demo.load import NO_ANSWER, Ground, Load, as_dict, prepare
from keystead.demo.people import make_person
from keystead.demo.residents import Resident

from .conftest import Installation

GROUND = Ground([Resident(make_person(1, number), f"user_{number}", 0.0, "token") for number in range(3)], ["/l/abc"])


@pytest.fixture
async def server() -> AsyncIterator[tuple[str, list[str], dict[str, float]]]:
    asked: list[str] = []
    faults = {"status": 200.0, "seconds": 0.0}

    async def answer(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path}")
        await asyncio.sleep(faults["seconds"])
        if request.path.endswith("/touches"):
            return web.Response(status=int(faults["status"]))
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}", asked, faults  # type: ignore[union-attr]
    await runner.cleanup()


async def test_as_many_requests_as_asked_for_in_the_towns_mix(
    server: tuple[str, list[str], dict[str, float]]
) -> None:
    url, asked, _ = server
    outcome = await Load(url, "k", GROUND, rate=200, seconds=2, seed=1).run()
    assert outcome.sent == len(asked) == 400
    assert outcome.errors == 0
    assert outcome.seconds >= 2
    kinds = {kind: tally.sent for kind, tally in outcome.kinds.items()}
    assert 150 < kinds["read"] < 260 and 60 < kinds["visit"] < 150 and kinds["send"] > 40 and kinds["click"] > 5
    shown = as_dict(outcome)
    assert shown["sent"] == 400 and shown["kinds"]["read"]["p50_ms"] > 0 and shown["errors"] == 0


async def test_without_links_nobody_clicks(server: tuple[str, list[str], dict[str, float]]) -> None:
    url, asked, _ = server
    outcome = await Load(url, "k", Ground(GROUND.people, []), rate=100, seconds=0.5, seed=1).run()
    assert set(outcome.kinds) == {"read", "visit", "send"}
    assert not any("/l/" in path for path in asked)


async def test_errors_are_told_by_kind_and_status(server: tuple[str, list[str], dict[str, float]]) -> None:
    url, _, faults = server
    faults["status"] = 503
    outcome = await Load(url, "k", GROUND, rate=100, seconds=1, seed=1).run()
    sends = outcome.kinds["send"]
    assert sends.errors == {"503": sends.sent} and sends.sent > 0
    assert outcome.errors == sends.sent
    nobody = await Load("http://127.0.0.1:1", "k", GROUND, rate=50, seconds=0.2, seed=1).run()
    assert nobody.everything().errors == {NO_ANSWER: 10}


async def test_a_slow_server_does_not_slow_the_load_down(server: tuple[str, list[str], dict[str, float]]) -> None:
    url, asked, faults = server
    faults["seconds"] = 2.0
    beats: list[int] = []
    outcome = await Load(url, "k", GROUND, rate=50, seconds=1, seed=1).run(lambda so_far: beats.append(so_far.sent))
    assert outcome.sent == len(asked) == 50
    assert outcome.everything().latencies.percentile(50) >= 2.0
    assert beats and beats[-1] > 0


async def test_what_could_not_be_sent_is_told(
    server: tuple[str, list[str], dict[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _, faults = server
    faults["seconds"] = 1.0
    monkeypatch.setattr("keystead.demo.load.MOST_UNDER_WAY", 5)
    outcome = await Load(url, "k", GROUND, rate=100, seconds=0.5, seed=1).run()
    assert outcome.held_back == 50 - outcome.sent > 0
    assert not outcome.reached


@pytest.mark.slow
async def test_a_real_installation_bears_a_little_load(installation: Installation) -> None:
    ground = await prepare(installation.client, 1, people=5)
    assert len(ground.people) == 5 and all(one.token for one in ground.people)
    again = await prepare(installation.client, 1, people=5)
    assert [one.sub for one in again.people] == [one.sub for one in ground.people]
    outcome = await Load(installation.url, installation.key, ground, rate=20, seconds=2, seed=1).run()
    assert outcome.sent == 40
    assert outcome.everything().errors == {}

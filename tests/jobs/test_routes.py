"""The HTTP door of the jobs room, over a real server: look, enqueue, step in, watch."""

import asyncio
import json

import httpx
import pytest
from websockets.asyncio.client import connect as open_websocket
from websockets.exceptions import ConnectionClosed

from keystead.app import App
from keystead.edge import make_cursor
from keystead.engine import Valkey
from keystead.jobs import JobBook, Jobs, Progress, Retry, current_job
from keystead.jobs.keys import Queue
from keystead.settings import load_settings
from keystead.web.callers import TOKEN_PURPOSE
from keystead.web.serving import serve

from .beside import at_work, until


@pytest.fixture
async def site(valkey: Valkey, valkey_server, tmp_path, monkeypatch):
    """A running server and a program that may do everything with jobs."""
    monkeypatch.chdir(tmp_path)
    app = App(load_settings({"valkey.url": valkey_server.url, "http.port": 0}, environment={}))
    ready, stop = asyncio.get_running_loop().create_future(), asyncio.Event()
    serving = asyncio.create_task(serve(app, dashboard=False, on_ready=ready.set_result, stop=stop))
    async with asyncio.timeout(60):
        await asyncio.wait({serving, ready}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        await serving  # it says why it cannot begin
    base = (await ready).url.rstrip("/")
    token = app.tickets().issue(TOKEN_PURPOSE, "tests", lasts_seconds=600, scopes=("jobs",))
    async with httpx.AsyncClient(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        client.app = app
        yield client
    stop.set()
    await serving


def book() -> JobBook:
    async def twice(n: int) -> int:
        await current_job().progress("half way", at=1, of=2)
        return n * 2

    async def bad(n: int) -> None:
        raise ValueError(f"bad {n}")

    found = JobBook()
    found.register("t.twice", twice)
    found.register("t.bad", bad, retry=Retry(tries=1))
    return found


async def test_a_job_is_enqueued_watched_and_read(site, valkey: Valkey) -> None:
    wanted = {"name": "t.twice", "kwargs": {"n": 4}, "keep_seconds": 60, "progress": True}
    answer = await site.post("/api/1/jobs", json=wanted)
    assert answer.status_code == 202, answer.text
    queued = answer.json()
    shown = (await site.get(f"/api/1/jobs/{queued['uid']}")).json()
    assert shown["state"]["status"] == "queued" and shown["job"]["place"] == "queued"
    listed = (await site.get("/api/1/jobs")).json()
    assert listed["total"] == 1 and listed["items"][0]["name"] == "t.twice" and listed["next_cursor"] is None
    async with at_work(valkey, book()):
        seen = [event async for event in _socket_events(site, queued["ticket"])]
        assert [event["type"] for event in seen] == ["queued", "started", "progress", "succeeded"]
        assert seen[2]["indicator"] == {"type": "bar", "at": 1.0, "of": 2.0}
        await until(lambda: _has_ended(site, queued["uid"]))
        overview = (await site.get("/api/1/jobs/overview")).json()
        # The server may have a worker of its own, for jobs of its own.
        assert [worker["queues"] for worker in overview["workers"]].count("hot") == 1
        assert overview["queues"][0]["name"] == "hot"
    state = (await site.get(f"/api/1/jobs/{queued['uid']}")).json()["state"]
    assert (state["status"], state["result"]) == ("succeeded", "8")


def _live(site) -> str:
    return str(site.base_url).replace("http", "ws").rstrip("/") + "/jobs/live"


async def _has_ended(site, uid: str) -> bool:
    return (await site.get(f"/api/1/jobs/{uid}")).json()["state"]["status"] == "succeeded"


async def _socket_events(site, ticket: str, *, in_address: bool = False):
    """Events up to the end. The server says good-bye ten seconds later; we do not wait for that."""
    address = _live(site)
    async with open_websocket(f"{address}?ticket={ticket}" if in_address else address) as socket:
        if not in_address:
            await socket.send(json.dumps({"ticket": ticket}))
        async with asyncio.timeout(60):
            async for text in socket:
                for event in json.loads(text)["events"]:
                    yield event
                    if event["type"] in ("succeeded", "failed"):
                        return


async def test_progress_comes_as_server_sent_events_too(site, valkey: Valkey) -> None:
    queued = (await site.post("/api/1/jobs", json={"name": "t.twice", "kwargs": {"n": 1}, "progress": True})).json()
    types: list[str] = []
    async with (
        at_work(valkey, book()), httpx.AsyncClient(base_url=site.base_url, timeout=60) as stranger,
        stranger.stream("GET", "/jobs/live", params={"ticket": queued["ticket"]}) as answer,
    ):
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                types += [event["type"] for event in json.loads(line[6:])["events"]]
            if "succeeded" in types:
                break
    assert types == ["queued", "started", "progress", "succeeded"]


async def test_a_late_watcher_sees_the_last_fifty_and_how_many_fell_off(site, valkey: Valkey) -> None:
    progress = Progress("u1", Jobs(valkey).clock)
    for n in range(60):
        await progress.progress(valkey, f"step {n}")
    await progress.succeeded(valkey)
    ticket = (await site.post("/api/1/jobs/u1/ticket")).json()["ticket"]
    address = f"{_live(site)}?ticket={ticket}"
    async with open_websocket(address) as socket:
        first = json.loads(await socket.recv())
    assert first["missed"] == 11 and len(first["events"]) == 50 and first["events"][-1]["type"] == "succeeded"


@pytest.mark.parametrize(("message", "code"), [
    ('{"ticket": "forged.ticket"}', 4401), ("not json", 4400), ('{"x": "y"}', 4400), ("", 4400),
])
async def test_a_socket_without_a_good_ticket_is_told_and_closed(site, message: str, code: int) -> None:
    async with open_websocket(_live(site)) as socket:
        await socket.send(message)
        told = json.loads(await socket.recv())
        assert "error" in told
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None and closed.value.rcvd.code // 1000 == 4
    assert closed.value.rcvd.code == code, told


async def test_a_job_nobody_knows_is_not_found(site) -> None:
    assert (await site.get("/api/1/jobs/nobody")).status_code == 404
    ticket = (await site.post("/api/1/jobs/nobody/ticket")).json()["ticket"]
    assert (await site.get("/jobs/live", params={"ticket": ticket})).status_code == 404
    async with open_websocket(f"{_live(site)}?ticket={ticket}") as socket:
        assert json.loads(await socket.recv())["error"]["status"] == 404


async def test_jobs_are_listed_in_pages(site, valkey: Valkey) -> None:
    await Jobs(valkey).options(queue="paged").enqueue_many("t.paged", [{"n": n} for n in range(5)])
    seen, asked = [], {"queue": "paged", "limit": 2}
    for expected in (2, 2, 1):
        listed = (await site.get("/api/1/jobs", params=asked)).json()
        assert len(listed["items"]) == expected and listed["total"] == 5
        seen += [job["uid"] for job in listed["items"]]
        asked["cursor"] = listed["next_cursor"]
    assert asked["cursor"] is None and len(set(seen)) == 5
    for wrong in (make_cursor(-1), make_cursor("x"), make_cursor(10**12)):
        assert (await site.get("/api/1/jobs", params={"cursor": wrong})).status_code == 400


async def test_dead_letters_are_grouped_and_tried_again(site, valkey: Valkey) -> None:
    await Jobs(valkey).enqueue_many("t.bad", [{"n": n} for n in range(3)])
    async with at_work(valkey, book()):
        await until(lambda: _dead(valkey, 3))
    [group] = (await site.get("/api/1/jobs/errors")).json()["groups"]
    assert group["count"] == 3 and group["error"].startswith("ValueError: bad")
    assert (await site.post("/api/1/jobs/retry", json={})).status_code == 400
    assert (await site.post("/api/1/jobs/retry", json={"error": group["error"]})).json() == {"count": 3}
    assert await Queue().work.length(valkey) == 3 and not await Queue().work.dead_letters(valkey)


async def test_dead_letters_are_dropped_as_chosen(site, valkey: Valkey) -> None:
    uids = await Jobs(valkey).enqueue_many("t.bad", [{"n": n} for n in range(3)])
    async with at_work(valkey, book()):
        await until(lambda: _dead(valkey, 3))
    assert (await site.post("/api/1/jobs/drop", json={})).status_code == 400
    assert (await site.post("/api/1/jobs/drop", json={"uids": [uids[1], "nobody"]})).json() == {"count": 1}
    left = (await site.get("/api/1/jobs", params={"place": "dead"})).json()["items"]
    assert {job["uid"] for job in left} == {uids[0], uids[2]}
    assert (await site.post("/api/1/jobs/drop", json={"all": True})).json() == {"count": 2}
    assert not await Queue().work.length(valkey) and not await Queue().work.dead_letters(valkey)


async def _dead(valkey: Valkey, count: int) -> bool:
    return len(await Queue().work.dead_letters(valkey)) == count


async def test_queues_are_paused_and_jobs_called_off(site, valkey: Valkey) -> None:
    assert (await site.post("/api/1/jobs/queues/mail/pause")).status_code == 204
    assert await Queue("mail").paused.is_raised(valkey)
    assert (await site.post("/api/1/jobs/queues/mail/resume")).json() == {"changed": True}
    queued = (await site.post("/api/1/jobs", json={"name": "t.twice", "kwargs": {"n": 1}, "keep_seconds": 60})).json()
    assert (await site.post(f"/api/1/jobs/{queued['uid']}/cancel")).json() == {"changed": True}
    async with at_work(valkey, book()):
        await until(lambda: _is_cancelled(site, queued["uid"]))
    assert (await site.post(f"/api/1/jobs/{queued['uid']}/cancel")).json() == {"changed": False}


async def _is_cancelled(site, uid: str) -> bool:
    return (await site.get(f"/api/1/jobs/{uid}")).json()["state"]["status"] == "cancelled"


@pytest.mark.parametrize(("method", "path"), [
    ("GET", "/jobs/overview"), ("GET", "/jobs"), ("POST", "/jobs"), ("GET", "/jobs/errors"), ("POST", "/jobs/retry"),
    ("POST", "/jobs/drop"),
    ("POST", "/jobs/queues/hot/pause"), ("POST", "/jobs/queues/hot/resume"), ("GET", "/jobs/u1"),
    ("POST", "/jobs/u1/cancel"), ("POST", "/jobs/u1/ticket"),
])
async def test_every_route_needs_the_scope(site, method: str, path: str) -> None:
    other = site.app.tickets().issue(TOKEN_PURPOSE, "tests", lasts_seconds=600, scopes=("keys",))
    body = {"json": {"name": "a.b"} if path == "/jobs" else {}} if method == "POST" else {}
    async with httpx.AsyncClient(base_url=site.base_url, timeout=60) as stranger:
        assert (await stranger.request(method, f"/api/1{path}", **body)).status_code == 401
        headers = {"Authorization": f"Bearer {other}"}
        assert (await stranger.request(method, f"/api/1{path}", headers=headers, **body)).status_code == 403


async def test_bad_input_is_told(site) -> None:
    for wanted in ({"name": ""}, {"name": "a", "kwargs": [1]}, {"name": "a", "queue": "a:b"},
                   {"name": "a", "delay_seconds": -1}):
        answer = await site.post("/api/1/jobs", json=wanted)
        assert answer.status_code == 400 and answer.json()["detail"], (wanted, answer.text)
    assert (await site.get("/api/1/jobs", params={"place": "nowhere"})).status_code == 400

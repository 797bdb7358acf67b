"""Idempotency keys over HTTP."""

import asyncio
from collections import Counter

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from keystead.clock import SystemClock
from keystead.edge import ANONYMOUS, Caller, CallerKind, Repeats, Tickets, problem_of
from keystead.edge.idempotency import MOST_ANSWER_BYTES
from keystead.edge.keys import CLAIM_SECONDS
from keystead.errors import KeysteadError, Unavailable
from keystead.web.repeating import Repeating

ADA = Caller(CallerKind.PROGRAM, "ada")


class Site:
    """An app that counts what it does, behind the layer and somebody who stands for the door."""

    def __init__(self, valkey) -> None:
        self.did: Counter[str] = Counter()
        self.caller = ADA
        self.waiting = asyncio.Event()
        inner = FastAPI()
        inner.add_api_route("/api/{what}", self.act, methods=["POST", "GET", "DELETE"])
        layer = Repeating(inner, repeats=Repeats(valkey, Tickets(bytes(32), SystemClock())))

        async def door(scope, receive, send):
            scope.setdefault("state", {})["caller"] = self.caller
            try:
                await layer(scope, receive, send)
            except KeysteadError as error:
                problem = problem_of(error)
                await JSONResponse(problem.body(), problem.status, problem.headers)(scope, receive, send)

        transport = httpx.ASGITransport(door, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://here", timeout=60)

    async def act(self, request: Request, what: str) -> Response:
        self.did[what] += 1
        body = (await request.body()).decode()
        if what == "slow":
            await self.waiting.wait()
        if what == "fail" and self.did[what] == 1:
            raise RuntimeError("boom")
        if what == "refuse" and self.did[what] == 1:
            return JSONResponse({"no": 1}, 409)
        if what == "huge":
            return Response(b"x" * (MOST_ANSWER_BYTES + 1))
        if what == "parts":
            return StreamingResponse(iter([b"a", b"b", b"c"]), media_type="text/plain")
        if what == "endless":
            return StreamingResponse(iter([b"data: 1\n\n"]), media_type="text/event-stream")
        return JSONResponse({"count": self.did[what], "body": body}, 201, {"location": "/x", "set-cookie": "a=b"})

    async def post(self, what: str, key: str | None = "k", body: str = "", method: str = "POST") -> httpx.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        return await self.http.request(method, f"/api/{what}", content=body, headers=headers)


@pytest.fixture
async def site(valkey):
    made = Site(valkey)
    yield made
    await made.http.aclose()


async def test_a_repeat_gets_the_first_answer_and_does_nothing(site, valkey):
    first, again = await site.post("do", body="x"), await site.post("do", body="x")
    assert (first.status_code, first.json()) == (again.status_code, again.json()) == (201, {"count": 1, "body": "x"})
    assert "idempotent-replayed" not in first.headers and again.headers["idempotent-replayed"] == "true"
    assert again.headers["location"] == "/x" and "set-cookie" not in again.headers
    other = await site.post("do", body="y")
    assert other.status_code == 422 and other.json()["type"] == "idempotency_key_reused"
    assert (await site.post("other", body="x")).status_code == 422, "the path is part of the request"
    assert (await site.post("do", body="x", method="DELETE")).status_code == 422
    assert site.did == {"do": 1}
    assert (await site.post("do", key="another", body="x")).json()["count"] == 2


async def test_without_the_header_nothing_is_kept(site, valkey):
    for _ in range(2):
        await site.post("do", key=None)
        await site.post("do", method="GET")
    assert site.did == {"do": 4} and await valkey.dbsize() == 0


async def test_of_nobody_nothing_is_kept(site, valkey):
    site.caller = ANONYMOUS
    for _ in range(2):
        assert (await site.post("do")).status_code == 201
    assert site.did == {"do": 2} and await valkey.dbsize() == 0


async def test_a_repeat_while_the_first_still_runs_is_told_to_wait(site):
    first = asyncio.create_task(site.post("slow"))
    async with asyncio.timeout(30):
        while not site.did["slow"]:
            await asyncio.sleep(0.01)
    waits = await site.post("slow")
    assert (waits.status_code, waits.headers["retry-after"]) == (409, "1")
    assert waits.json()["type"] == "idempotency_key_in_use"
    site.waiting.set()
    assert (await first).status_code == 201
    assert (await site.post("slow")).headers["idempotent-replayed"] == "true" and site.did == {"slow": 1}


@pytest.mark.parametrize(("what", "status"), [("fail", 500), ("refuse", 409)])
async def test_what_was_refused_or_failed_may_be_tried_again_with_the_same_key(site, what, status):
    assert (await site.post(what)).status_code == status
    again = await site.post(what, body="corrected")
    assert again.status_code == 201 and "idempotent-replayed" not in again.headers
    assert (await site.post(what, body="corrected")).headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize("what", ["huge", "endless"])
async def test_an_answer_that_is_not_kept_arrives_whole_and_its_request_runs_once(site, what):
    first = await site.post(what)
    assert first.status_code == 200 and len(first.content) == {"huge": MOST_ANSWER_BYTES + 1, "endless": 9}[what]
    again = await site.post(what)
    assert again.status_code == 409 and "retry-after" not in again.headers and site.did == {what: 1}


async def test_an_answer_in_parts_is_kept_whole(site):
    assert (await site.post("parts")).content == (await site.post("parts")).content == b"abc"
    assert site.did == {"parts": 1}


async def test_a_key_may_be_given_once_and_must_be_one(site):
    twice = await site.http.post("/api/do", headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "b")])
    assert twice.status_code == 400
    assert (await site.post("do", key="x" * 201)).status_code == 400
    assert site.did == {}


async def test_many_at_once_do_one_thing(site):
    async def until_answered():
        while (answer := await site.post("do", body="x")).status_code == 409:
            await asyncio.sleep(0.005)
        return answer.json()

    async with asyncio.timeout(60):
        answers = await asyncio.gather(*(until_answered() for _ in range(30)))
    assert site.did == {"do": 1} and answers == [{"count": 1, "body": "x"}] * 30


async def test_whoever_acts_for_another_person_asks_something_else(site):
    site.caller = Caller(CallerKind.PROGRAM, "ada", acts_for="user_1")
    assert (await site.post("do")).status_code == 201
    site.caller = Caller(CallerKind.PROGRAM, "ada", acts_for="user_2")
    assert (await site.post("do")).status_code == 422


async def test_a_request_that_died_halfway_runs_again_once_its_claim_has_lapsed(site, moving_clock):
    first = asyncio.create_task(site.post("slow"))
    async with asyncio.timeout(30):
        while not site.did["slow"]:
            await asyncio.sleep(0.01)
    first.cancel()  # as a process does that is killed: nothing is written any more
    await asyncio.gather(first, return_exceptions=True)
    site.waiting.set()
    assert (await site.post("slow")).status_code == 409
    moving_clock.advance(CLAIM_SECONDS + 1)
    assert (await site.post("slow")).status_code == 201 and site.did == {"slow": 2}
    assert (await site.post("slow")).headers["idempotent-replayed"] == "true" and site.did == {"slow": 2}


async def test_while_nobody_can_remember_a_request_with_a_key_is_not_begun(site, valkey, valkey_server):
    valkey_server.kill()
    try:
        assert (await site.post("do")).status_code == 503
    finally:
        valkey_server.ensure_running()
    assert site.did == {}


async def test_an_answer_that_could_not_be_kept_is_given_all_the_same(site, monkeypatch):
    async def away(*_, **__):
        raise Unavailable("the server is away")

    monkeypatch.setattr("keystead.edge.idempotency._END", away)
    assert (await site.post("do")).status_code == 201
    assert (await site.post("do")).status_code == 409, "until the claim has lapsed"
    assert site.did == {"do": 1}

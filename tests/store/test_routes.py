"""The door for parts of uploads, over HTTP."""

from base64 import b64encode
from collections.abc import AsyncIterator
from hashlib import sha256

import httpx
import pytest_asyncio
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from keystead.edge import problem_of
from keystead.errors import KeysteadError
from keystead.store.routes import routes
from keystead.store.uploads_plan import PART_BYTES

from .file_place import Place
from .test_files import listed
from .test_uploads import Door


@pytest_asyncio.fixture
async def door(place: Place) -> Door:
    return Door(place)


@pytest_asyncio.fixture
async def client(door: Door) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.include_router(routes(door.uploads))

    @app.exception_handler(KeysteadError)
    async def answer(request: Request, error: KeysteadError) -> JSONResponse:
        problem = problem_of(error)
        return JSONResponse(problem.body(), problem.status, problem.headers)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as opened:
        yield opened


def digest(raw: bytes) -> str:
    return f"sha-512=:abc:, sha-256=:{b64encode(sha256(raw).digest()).decode()}:"


async def test_an_upload_goes_through_the_door(client: httpx.AsyncClient, door: Door) -> None:
    raw = bytes(range(256)) * 4096 + b"rest"
    upload = await door.start(len(raw))
    first, last = raw[:PART_BYTES], raw[PART_BYTES:]

    async def streamed() -> AsyncIterator[bytes]:
        for at in range(0, len(first), 50_000):
            yield first[at : at + 50_000]

    path = f"/file_uploads/{upload.uid}"
    answer = await client.post(f"{path}/2", content=last, params={"ticket": upload.ticket},
                               headers={"Content-Digest": digest(last)})
    assert (answer.status_code, answer.json()) == (202, {"done": False})
    answer = await client.post(f"{path}/1", content=streamed(), headers={"Authorization": f"Bearer {upload.ticket}"})
    assert (answer.status_code, answer.json()) == (202, {"done": True})
    assert b"".join([chunk async for chunk in door.uploads.stitched(upload.uid)]) == raw


async def test_refusals_have_the_one_body(client: httpx.AsyncClient, door: Door) -> None:
    upload = await door.start(3)
    ticket = {"ticket": upload.ticket}

    async def refusal(path: str, content: bytes = b"abc", **more: object) -> tuple[int, str]:
        answer = await client.post(f"/file_uploads/{path}", content=content, **more)  # type: ignore[arg-type]
        return answer.status_code, answer.json().get("type", "")

    part = f"{upload.uid}/1"
    assert await refusal(part) == (401, "not_logged_in")
    assert await refusal(part, headers={"Authorization": "Basic x"}) == (401, "not_logged_in")
    assert await refusal(part, params={"ticket": "x.y"}) == (401, "ticket_not_valid")
    assert await refusal("s3fu_other/1", params=ticket) == (403, "forbidden")
    assert await refusal(f"{upload.uid}/2", params=ticket) == (404, "part_does_not_exist")
    assert await refusal(part, b"ab", params=ticket) == (409, "part_does_not_match")
    assert await refusal(part, b"abcd", params=ticket) == (409, "part_does_not_match")
    wrong = {"Content-Digest": digest(b"other")}
    assert await refusal(part, params=ticket, headers=wrong) == (409, "part_does_not_match")
    assert await refusal(part, params=ticket, headers={"Content-Digest": "md5=:x:"}) == (400, "invalid")
    for bad in ("a%20b/1", f"{upload.uid}/0", f"{upload.uid}/x"):
        assert (await refusal(bad, params=ticket))[0] == 422
    assert await listed(door.place.objects) == await door.place.rows() == []
    assert (await client.post(f"/file_uploads/{part}", content=b"abc", params=ticket)).status_code == 202
    assert await refusal(part, params=ticket) == (404, "upload_aborted_or_completed")

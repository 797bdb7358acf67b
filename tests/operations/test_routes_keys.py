"""Admin keys over HTTP, by whoever administers."""

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from keystead.clock import SystemClock
from keystead.edge import Caller, CallerKind, problem_of
from keystead.errors import KeysteadError
from keystead.operations import AdminKeys
from keystead.operations.admin_keys import key_subject
from keystead.operations.routes_keys import routes
from keystead.store import Database

ROOT = Caller(CallerKind.PROGRAM, "root", frozenset({"*"}))
CLERK = Caller(CallerKind.PROGRAM, "clerk", frozenset({"admin", "jobs"}))
STRANGER = Caller(CallerKind.PROGRAM, "shop", frozenset({"users"}))


@pytest.fixture
async def keys(tmp_path):
    async with Database.open(f"sqlite:///{tmp_path}/keys.sqlite") as database:
        await database.migrate()
        yield await AdminKeys.open(database, SystemClock())


def client(keys: AdminKeys, caller: Caller, ends_at: float | None = None) -> httpx.AsyncClient:
    app = FastAPI()

    @app.middleware("http")
    async def known(request: Request, call_next):
        request.state.caller, request.state.proof_ends_at = caller, ends_at
        return await call_next(request)

    @app.exception_handler(KeysteadError)
    async def refused(request: Request, error: KeysteadError):
        problem = problem_of(error)
        return JSONResponse(problem.body(), problem.status)

    app.include_router(routes(keys, SystemClock()))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")


async def test_a_key_is_shown_once_listed_and_taken_back(keys):
    async with client(keys, ROOT) as http:
        made = await http.post("/admin/keys", json={"name": "shop", "scopes": ["users", "jobs"], "lasts_seconds": 60})
        assert made.status_code == 201
        text, id = made.json()["key"], made.json()["id"]
        assert keys.find(text).scopes == {"jobs", "users"}
        listed = await http.get("/admin/keys")
        assert [(key["id"], key["scopes"], key["state"]) for key in listed.json()["items"]] == [
            (id, ["jobs", "users"], "active")]
        assert text.rpartition("_")[2] not in listed.text
        assert (await http.delete(f"/admin/keys/{id}")).json()["state"] == "revoked"
        assert keys.find(text) is None
        assert (await http.delete("/admin/keys/nobodys")).status_code == 404
        assert (await http.delete("/admin/keys/a%00")).status_code == 422, "not every database may be asked for it"
        assert (await http.post("/admin/keys", json={"name": "shop", "scopes": ["all"]})).status_code == 400


async def test_nobody_gives_away_more_than_they_have(keys):
    async with client(keys, CLERK) as http:
        assert (await http.post("/admin/keys", json={"name": "a", "scopes": ["jobs"]})).status_code == 201
        for scopes in (["*"], ["jobs", "users"]):
            assert (await http.post("/admin/keys", json={"name": "a", "scopes": scopes})).status_code == 403
    async with client(keys, STRANGER) as http:
        assert (await http.get("/admin/keys")).status_code == 403
        assert (await http.post("/admin/keys", json={"name": "a", "scopes": ["users"]})).status_code == 403
        assert (await http.delete("/admin/keys/x")).status_code == 403
    assert len(await keys.list()) == 1


@pytest.mark.parametrize(("kind", "lasts_seconds", "status"), [
    (CallerKind.PROGRAM, None, 403), (CallerKind.PROGRAM, 700, 403), (CallerKind.PROGRAM, 300, 201),
    (CallerKind.OPERATOR, None, 201),
])
async def test_no_program_makes_a_key_that_outlasts_its_own(keys, kind, lasts_seconds, status):
    caller = Caller(kind, "someone", frozenset({"*"}))
    async with client(keys, caller, ends_at=SystemClock().now() + 600) as http:
        wanted = {"name": "a", "scopes": ["jobs"], "lasts_seconds": lasts_seconds}
        assert (await http.post("/admin/keys", json=wanted)).status_code == status


async def test_keys_are_listed_in_pages(keys):
    made = [(await keys.create(f"shop {number}", ["jobs"])).id for number in range(5)]
    async with client(keys, CLERK) as http:
        first = (await http.get("/admin/keys", params={"limit": 3})).json()
        rest = (await http.get("/admin/keys", params={"limit": 3, "cursor": first["next_cursor"]})).json()
        assert {key["id"] for key in first["items"] + rest["items"]} == set(made) and len(first["items"]) == 3
        assert rest["next_cursor"] is None
        assert (await http.get("/admin/keys", params={"cursor": "nonsense"})).status_code == 400


async def test_nobody_takes_back_a_key_that_reaches_further(keys):
    lesser, equal = await keys.create("a", ["jobs"]), await keys.create("b", ["admin", "jobs"])
    further, whole = await keys.create("c", ["jobs", "users", "stats"]), await keys.create("d", ["*"])
    async with client(keys, CLERK) as http:
        for key in (further, whole):
            refused = await http.delete(f"/admin/keys/{key.id}")
            assert refused.status_code == 403 and keys.works(key.id)
        assert (await http.delete(f"/admin/keys/{further.id}")).json()["message"].endswith("lacks stats, users")
        for key in (lesser, equal):
            assert (await http.delete(f"/admin/keys/{key.id}")).status_code == 200 and not keys.works(key.id)
        assert (await http.delete("/admin/keys/nobodys")).status_code == 404
    async with client(keys, Caller(CallerKind.OPERATOR, "operator")) as http:
        assert (await http.delete(f"/admin/keys/{whole.id}")).status_code == 200


async def test_key_may_always_take_back_itself_and_only_itself(keys):
    own, other = await keys.create("shop", ["users"]), await keys.create("shop", ["users"])
    holder = Caller(CallerKind.PROGRAM, key_subject(own.id), own.key.scopes)
    async with client(keys, holder) as http:
        assert (await http.delete(f"/admin/keys/{other.id}")).status_code == 403
        assert (await http.delete(f"/admin/keys/{own.id}")).json()["state"] == "revoked"
    assert keys.works(other.id) and not keys.works(own.id)
    async with client(keys, Caller(CallerKind.USER, key_subject(other.id))) as http:  # named so, but somebody else
        assert (await http.delete(f"/admin/keys/{other.id}")).status_code == 403

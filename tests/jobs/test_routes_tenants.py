"""The HTTP door of the fair queue."""

from keystead.edge import make_cursor
from keystead.jobs.routes_tenants import SCOPE

from .test_routes import site  # noqa: F401 - a fixture


async def test_tenants_are_served_listed_paused_and_resumed(site) -> None:  # noqa: F811
    for tenant in ("acme", "acme", "other"):
        answer = await site.post(f"/api/1/tenants/{tenant}/jobs", json={"name": "t.note", "delay_seconds": 900})
        assert answer.status_code == 202 and len(answer.json()["id"]) == 36
    listed = (await site.get("/api/1/tenants", params={"limit": 1})).json()
    more = (await site.get("/api/1/tenants", params={"limit": 5, "cursor": listed["next_cursor"]})).json()
    assert {each["tenant"] for each in listed["items"] + more["items"]} == {"acme", "other"}
    assert more["next_cursor"] is None
    assert (await site.post("/api/1/tenants/acme/pause")).status_code == 204
    assert (await site.post("/api/1/tenants/other/pause", json={"lasts_seconds": 60})).status_code == 204
    shown = (await site.get("/api/1/tenants/acme")).json()
    assert (shown["delayed"], shown["paused"], shown["pauses"][0]["reason"]) == (2, True, "paused by an operator")
    assert (await site.post("/api/1/tenants/acme/resume")).json() == {"changed": True}
    assert (await site.post("/api/1/tenants/acme/resume")).json() == {"changed": False}
    busiest = (await site.get("/api/1/tenants", params={"busiest": True})).json()["items"]
    assert [each["tenant"] for each in busiest] == ["acme", "other"]
    assert (await site.post("/api/1/tenants/acme/retry")).json() == {"count": 0}


async def test_bad_requests_are_refused(site) -> None:  # noqa: F811
    assert (await site.get("/api/1/tenants/nobody")).status_code == 404
    assert (await site.get("/api/1/tenants/no%20body")).status_code == 400
    for cursor in ("x", make_cursor((-1, -1, "x")), make_cursor((0, -1, "x")), make_cursor((0, 2**63, "x"))):
        assert (await site.get("/api/1/tenants", params={"cursor": cursor})).status_code == 400, cursor
    assert (await site.post("/api/1/tenants/acme/jobs", json={"name": "t", "cost": 0})).status_code == 400
    dear = await site.post("/api/1/tenants/acme/jobs", json={"name": "t", "cost": 1000})
    assert dear.status_code == 400 and "dearer" in dear.json()["message"]
    assert SCOPE == "jobs"

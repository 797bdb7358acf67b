"""Jobs that ended lately, over a real server."""

from keystead.edge import make_cursor
from keystead.engine import Valkey
from keystead.jobs.keys import ENDED_LATELY
from keystead.jobs.models import EndedJob
from keystead.web.callers import TOKEN_PURPOSE

from .test_routes import site  # noqa: F401 - a fixture


async def ended(valkey: Valkey, number: int, status: str, **facts) -> None:
    job = EndedJob(**{"uid": f"u{number}", "name": "t.note", "queue": "hot", "status": status, "worker": "w1",
                      "ended_at": 1000.0 + number, "queued_at": 900.0, "ran_seconds": 0.5, **facts})
    await ENDED_LATELY.at(status=status).add(valkey, job, job.ended_at)


async def test_they_are_listed_newest_first_in_pages(site, valkey: Valkey) -> None:  # noqa: F811
    for number, status in enumerate(("succeeded", "failed", "cancelled", "succeeded", "succeeded")):
        await ended(valkey, number, status, queue="mail" if number == 1 else "hot")
    seen, asked = [], {"limit": 2}
    for expected in (2, 2, 1):
        listed = (await site.get("/api/1/jobs/ended", params=asked)).json()
        assert len(listed["items"]) == expected and listed["total"] == 5
        seen += [job["uid"] for job in listed["items"]]
        asked["cursor"] = listed["next_cursor"]
        await ended(valkey, 90, "failed", name="t.new")  # what ends meanwhile moves nothing
        await ENDED_LATELY.at(status="failed").remove(valkey, *[
            job for job, _ in await ENDED_LATELY.at(status="failed").range(valkey) if job.name == "t.new"
        ])
    assert seen == ["u4", "u3", "u2", "u1", "u0"] and asked["cursor"] is None
    assert [job["uid"] for job in await _items(site, status="failed")] == ["u1"] == \
        [job["uid"] for job in await _items(site, queue="mail")]
    [first, *_] = await _items(site, name="t.note")
    assert first == {"uid": "u4", "name": "t.note", "queue": "hot", "status": "succeeded", "ended_at": 1004.0,
                     "attempts": 1, "worker": "w1", "queued_at": 900.0, "ran_seconds": 0.5, "error": ""}
    for wrong in ({"status": "dead"}, {"queue": "a:b"}, {"cursor": make_cursor(1)}, {"limit": 0}):
        assert (await site.get("/api/1/jobs/ended", params=wrong)).status_code == 400, wrong


async def _items(site, **which) -> list[dict]:  # noqa: F811
    return (await site.get("/api/1/jobs/ended", params=which)).json()["items"]


async def test_one_without_a_state_says_how_it_ended_to_whoever_may_know(site, valkey: Valkey) -> None:  # noqa: F811
    await ended(valkey, 1, "failed", error="KeyError", attempts=3)
    found = (await site.get("/api/1/jobs/u1")).json()
    assert (found["state"], found["job"], found["ended"]["status"], found["ended"]["attempts"]) == \
        (None, None, "failed", 3)
    assert (await site.post("/api/1/jobs/u1/cancel")).json() == {"changed": False}
    assert (await site.get("/api/1/jobs/u2")).status_code == 404
    other = site.app.tickets().issue(TOKEN_PURPOSE, "tests", lasts_seconds=600, scopes=("keys",))
    for token, status in ((other, 403), ("nobody's", 401)):
        headers = {"Authorization": f"Bearer {token}"}
        assert (await site.get("/api/1/jobs/ended", headers=headers)).status_code == status

"""The HTTP door of statistics."""

import csv
import io

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from keystead.edge import Caller, CallerKind, problem_of
from keystead.errors import KeysteadError
from keystead.stats.routes import routes
from keystead.stats.tables import label

from .charting import TODAY
from .counted import ACTIVE, ACTIVE_MONTHS, EVENTS, JOINED, PEOPLE, REMINDED, RETENTION, THINGS, VIEWS, VISITS

# What SQL answers is tested with the charts, on both databases.
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

SEEN = Caller(CallerKind.PROGRAM, "tests", frozenset({"stats"}))
ROOT = "http://test/api/1/stats"
SOME_MINUTES = "private, max-age=300, stale-while-revalidate=600, stale-if-error=86400"


@pytest.fixture
async def site(charts, clock):
    app = FastAPI()

    @app.middleware("http")
    async def know(request: Request, forward):
        request.state.caller = callers[-1]
        return await forward(request)

    @app.exception_handler(KeysteadError)
    async def refuse(request: Request, error: KeysteadError):
        problem = problem_of(error)
        return JSONResponse(problem.body(), problem.status)

    callers = [SEEN]
    app.include_router(routes(charts, clock), prefix="/api/1")
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=ROOT) as client:
        client.callers = callers
        yield client


async def test_every_path_needs_the_scope(site):
    paths = [ROOT, "/totals", "/runs", "/numbers/active", "/months/active_months", "/retention/retention/7",
             "/cohorts/retention", "/views/sessions", "/rows/visitors", "/events", "/events/historical",
             "/events/partial"]
    for caller, status in ((Caller(CallerKind.PROGRAM, "x", frozenset({"keys"})), 403),
                           (Caller(CallerKind.ANONYMOUS), 401), (SEEN, 200)):
        site.callers.append(caller)
        assert {path: (await site.get(path)).status_code for path in paths} == dict.fromkeys(paths, status)


async def test_the_catalogue_says_what_is_counted_and_how(site):
    shown = {one["name"]: one for one in (await site.get(ROOT)).json()["families"]}
    assert shown["events"] == {
        "name": "events", "kind": "family", "purpose": "what happened", "zone": "America/Los_Angeles",
        "table": "event_stats", "held_days": 2, "rotates_at": "02:00", "monthly": False,
        "events": ["tried", "found", "failed", "lost"], "breakdowns": {"failed": "status", "lost": "reason"},
        "identities": ["found + failed + lost = tried"], "periods": [], "dimension": "",
    }
    assert shown["reminded"]["zone"] == "canonical"
    assert (shown["retention"]["kind"], shown["retention"]["periods"]) == ("cohorts", [0, 1, 7])
    assert shown["active_months"]["monthly"] and shown["visitors"]["dimension"] == "utm"


async def test_a_range_is_given_in_days_or_by_its_ends(site, valkey):
    await EVENTS.incr(valkey, "found", amount=5, unix_date=TODAY - 1)
    await EVENTS.incr(valkey, "failed", "a,b", unix_date=TODAY)
    answer = await site.get("/events", params={"days": 2})
    assert answer.headers["cache-control"] == "no-store"
    shown = answer.json()
    assert shown["labels"] == shown["live"] == ["2025-06-14", "2025-06-15"]
    assert shown["counts"]["found"] == [5, 0] and shown["breakdowns"]["failed"] == {"a,b": [0, 1]}
    same = (await site.get("/events", params={"from": "2025-06-14", "to": "2025-06-15"})).json()
    assert same == shown == (await site.get("/events", params={"from": "2025-06-14"})).json()
    assert len((await site.get("/events")).json()["labels"]) == 30
    written = await site.get("/events", params={"days": 2, "format": "csv"})
    assert written.headers["content-type"] == "text/csv; charset=utf-8"
    assert written.headers["content-disposition"] == 'attachment; filename="events.csv"'
    rows = list(csv.DictReader(io.StringIO(written.text)))
    assert [(row["date"], row["found"], row["failed[a,b]"]) for row in rows] == [
        ("2025-06-14", "5", "0"), ("2025-06-15", "0", "1"),
    ]


async def test_what_cannot_be_asked_for_is_refused(site):
    refused = {
        "/event": (404, "did you mean events?"),
        "/active": (400, "this is asked of a DailyFamily"),
        "/numbers/events": (400, "no set or number"),
        "/numbers/active_months": (400, "kept by month"),
        "/months/active": (400, "kept by day"),
        "/retention/retention/8": (400, "no period of 8 days; it has 0, 1, 7"),
        "/events?from=2025-06-14&to=2025-06-16": (400, "2025-06-15 is the newest"),
        "/events?from=2025-06-14&to=2025-06-13": (400, "ends after it starts"),
        "/events?from=0001-01-01": (400, "ends after it starts"),
        "/events?from=2010-01-01": (400, "at most 3660 days"),
        "/events?to=2025-06-13": (400, "no end without a start"),
        "/events?days=3&from=2025-06-13": (400, "not both"),
        "/events?days=0": (422, ""), "/events?from=yesterday": (422, ""), "/events?format=png": (422, ""),
        "/views/sessions?day=1970-01-02": (400, "too early"),
        "/rows/visitors?day=2025-06-16": (400, "is the newest"),
    }
    for path, (status, said) in refused.items():
        answer = await site.get(path)
        assert (answer.status_code, said in answer.text) == (status, True), (path, answer.text)


async def test_finished_days_are_sent_as_they_are_kept(site, valkey, charts):
    await EVENTS.incr(valkey, "found", amount=4, unix_date=TODAY - 2)
    packed = await site.get("/events/historical", headers={"accept-encoding": "br, gzip;q=0.5"})
    assert packed.headers["content-encoding"] == "gzip" and packed.headers["vary"] == "Accept-Encoding"
    assert packed.headers["cache-control"] == "private, max-age=60, stale-if-error=600"  # not rotated yet
    assert int(packed.headers["content-length"]) == len(await charts.historical_raw("events"))
    for accepted in ("identity", "gzip;q=0"):
        plain = await site.get("/events/historical", headers={"accept-encoding": accepted})
        assert "content-encoding" not in plain.headers
        assert plain.json() == packed.json()
    assert packed.json()["found"][-1] == 4 and len(packed.json()["labels"]) == 90


async def test_settled_days_may_be_kept_until_midnight(site, valkey, database, clock):
    answer = await site.get("/plain/historical")  # nothing was ever counted
    assert answer.headers["cache-control"] == f"private, max-age={1_750_057_200 - 1_750_000_000}, stale-if-error=600"


async def test_days_that_are_not_finished_are_never_kept(site, valkey, clock):
    await EVENTS.incr(valkey, "found", amount=4, unix_date=TODAY)
    await EVENTS.incr(valkey, "failed", "x", 2, unix_date=TODAY - 1)
    answer = await site.get("/events/partial")
    assert answer.headers["cache-control"] == "no-store"
    none = {"tried": 0, "found": 0, "failed": 0, "lost": 0, "failed_breakdown": {}, "lost_breakdown": {}}
    assert answer.json() == {
        "today": {**none, "found": 4}, "yesterday": {**none, "failed": 2, "failed_breakdown": {"x": 2}},
    }
    clock.advance(6 * 3600)
    await REMINDED.incr(valkey, "sent", unix_date=TODAY + 1)
    shown = (await site.get("/reminded/partial")).json()
    assert shown["tomorrow"] == {"sent": 1} and set(shown) == {"tomorrow", "today", "yesterday", "two_days_ago"}


async def test_sets_and_numbers_by_day_and_month(site, valkey):
    await ACTIVE.add(valkey, "a", "b", day=TODAY - 1)
    await JOINED.increment(valkey, 3, day=TODAY - 182)
    await ACTIVE_MONTHS.add(valkey, "a", "b", "c", day=664)  # 2025-05
    answer = await site.get("/numbers/active")
    assert answer.headers["cache-control"] == SOME_MINUTES
    assert (len(answer.json()["labels"]), answer.json()["counts"]["total"][-1]) == (182, 2)
    assert (await site.get("/numbers/joined")).json()["counts"]["total"][0] == 3
    assert (await site.get("/numbers/active?days=2")).json()["counts"]["total"] == [2, 0]
    months = (await site.get("/months/active_months")).json()
    assert (months["labels"][0], months["labels"][-1], months["counts"]["total"][-1]) == ("2024-12", "2025-05", 3)
    by_day = (await site.get("/months/active_months?label=day")).json()
    assert (by_day["labels"][0], by_day["labels"][-1]) == (label(TODAY - 182), "2025-05-31")
    assert by_day["counts"]["total"][-32:] == [0] + [3] * 31
    text = (await site.get("/numbers/active_months?from=2025-05-01&to=2025-06-01&format=csv")).text
    assert text.splitlines() == ["month,live,total,late", "2025-05,1,3,0", "2025-06,1,0,0"]


async def test_who_came_back(site, valkey):
    for member, back in (("a", 7), ("b", 1), ("c", None)):
        await RETENTION.join(valkey, member, day=TODAY - 9)
        if back is not None:
            await RETENTION.active(valkey, member, joined_day=TODAY - 9, day=TODAY - 9 + back)
    answer = await site.get("/retention/retention/1")
    assert answer.headers["cache-control"] == SOME_MINUTES
    shown = answer.json()
    assert shown["labels"][0] == label(TODAY - 10) and shown["labels"][-1] == label(TODAY - 2)
    assert (shown["retained"][1], shown["unretained"][1], shown["retention_rate"][:2]) == (2, 1, [0, 2 / 3])
    grid = (await site.get("/cohorts/retention?by=day")).json()
    assert (grid["sizes"][1], grid["retained"][1]) == (3, [2, 2, 1])
    assert grid["retained"][-1] == [0, None, None]
    weeks = (await site.get("/cohorts/retention")).json()
    assert (weeks["labels"], weeks["sizes"]) == (["2025-06-05", "2025-06-09"], [3, 0])
    assert weeks["retained"] == [[2, 2, None], [0, None, None]]
    text = (await site.get("/cohorts/retention?by=day&format=csv")).text
    assert text.splitlines()[:2] == ["joined,size,after 0 days,after 1 days,after 7 days,late", "2025-06-05,0,0,0,0,0"]


async def test_views_and_rows(site, valkey):
    for value, member in (("sleep", "a"), ("sleep", "a"), ("focus", "b"), ("sleep", "c")):
        await VIEWS.viewed(valkey, value, member, day=TODAY - 1)
    shown = (await site.get("/views/sessions")).json()
    assert [(one["value"], one["views"][-1], one["users"][-1], one["total_views"]) for one in shown["values"]] == [
        ("sleep", 3, 2, 3), ("focus", 1, 1, 1),
    ]
    assert len(shown["labels"]) == 30 and shown["labels"][-1] == label(TODAY - 1)
    ahead = (await site.get("/views/sessions?day=2031-01-01")).json()
    assert ahead["labels"] == shown["labels"]
    assert (await site.get("/views/sessions?day=2025-06-10")).json()["values"] == []
    await VISITS.add(valkey, [("utm_source==x", "visits", 2), ("utm_source=b", "visits", 5)], day=TODAY - 1)
    answer = await site.get("/rows/visitors?day=2025-06-14")
    assert answer.headers["cache-control"] == "private, max-age=60"  # not rotated yet
    assert [(row["utm"], row["visits"]) for row in answer.json()["rows"]] == [("utm_source=b", 5), ("utm_source==x", 2)]
    text = (await site.get("/rows/visitors?day=2025-06-14&format=csv")).text
    assert text.splitlines()[1].startswith("2025-06-14,utm_source=b,5,")


async def test_totals_and_runs_are_live(site, valkey, clock):
    await PEOPLE.increment(valkey, 4, at=clock.now())
    await THINGS.increment(valkey, 2)
    answer = await site.get("/totals")
    assert answer.headers["cache-control"] == "private, max-age=1, stale-while-revalidate=60"
    assert answer.json() == {"people": {"total": 4, "month": 4}, "things": {"total": 2, "month": None}}
    runs = await site.get("/runs")
    assert (runs.headers["cache-control"], runs.json()["runs"]) == ("no-store", [])



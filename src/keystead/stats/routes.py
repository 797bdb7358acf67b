"""The HTTP door of statistics: what is counted, and its charts. Everything needs the scope ``stats``."""

import gzip
import math
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from keystead import dates
from keystead.clock import Clock
from keystead.edge import Caller
from keystead.errors import Invalid
from keystead.stats.charts import Charts, Label, Step
from keystead.stats.charts_calendar import is_monthly, last_of, today_of
from keystead.stats.charts_days import flat
from keystead.stats.charts_kept import Answer
from keystead.stats.listing import listing

SCOPE: Final = "stats"
DEFAULT_DAYS: Final = 30
NO_STORE: Final = "no-store"
TOTALS: Final = "private, max-age=1, stale-while-revalidate=60"
SOME_MINUTES: Final = "private, max-age=300, stale-while-revalidate=600, stale-if-error=86400"

Name = Annotated[str, Path(min_length=1, max_length=200, description="as GET /stats lists it")]
Written = Annotated[Literal["json", "csv"], Query(alias="format")]
Days = Annotated[int | None, Query(ge=1, le=3660, description="the last so many, today included")]
From = Annotated[date | None, Query(alias="from", description="the first day")]
To = Annotated[date | None, Query(description="the last day, today if it is left out")]
OneDay = Annotated[date | None, Query(description="today if it is left out")]


class Counted(BaseModel):
    """One thing that is counted. ``kind``: family, set, number, cohorts, views or rows."""

    name: str
    kind: str
    purpose: str
    zone: str = Field(description="canonical: the calendar of each person")
    table: str | None
    held_days: int
    rotates_at: str
    monthly: bool
    events: list[str]
    breakdowns: dict[str, str] = Field(description="what the values of an event are")
    identities: list[str]
    periods: list[int]
    dimension: str


class CatalogueList(BaseModel):
    """Everything that is counted."""

    families: list[Counted]


class SeriesShown(BaseModel):
    """Counts by day; every list is as long as ``labels``. Days in ``live`` may still change."""

    name: str
    zone: str
    start_unix_date: int
    end_unix_date: int = Field(description="exclusive")
    labels: list[str]
    live: list[str]
    counts: dict[str, list[int]]
    breakdowns: dict[str, dict[str, list[int]]]


class RetentionShown(BaseModel):
    """Of those who joined on each day, how many were active at least so many days later."""

    name: str
    zone: str
    period_days: int
    start_unix_date: int
    end_unix_date: int
    labels: list[str]
    live: list[str]
    retained: list[int]
    unretained: list[int]
    retention_rate: list[float]


class CohortsShown(BaseModel):
    """A row for each day or week of joining, a column for each period; null while the period is not over."""

    name: str
    zone: str
    by: str
    start_unix_date: int
    end_unix_date: int
    labels: list[str]
    periods: list[int]
    sizes: list[int]
    retained: list[list[int | None]]
    late: list[int]


class ValueShown(BaseModel):
    """One value of a dimension."""

    value: str
    views: list[int]
    users: list[int]
    total_views: int
    total_users: int | None


class ViewsShown(BaseModel):
    """Views by value, those with most views of all time first."""

    name: str
    zone: str
    dimension: str
    start_unix_date: int
    end_unix_date: int
    labels: list[str]
    live: list[str]
    values: list[ValueShown]
    left_out: int


class RowsShown(BaseModel):
    """The rows of one day."""

    name: str
    zone: str
    unix_date: int
    label: str
    live: bool
    fields: list[str]
    rows: list[dict[str, Any]]


class TotalShown(BaseModel):
    """How many there are, and how many of them came this month."""

    total: int
    month: int | None


class RunShown(BaseModel):
    """The last run of a job. Times are unix seconds, ``running_time`` is in seconds."""

    name: str
    purpose: str
    started_at: float | None
    finished_at: float | None
    running_time: float | None
    stop_reason: str | None
    counters: dict[str, float]
    problem: str


class RunsShown(BaseModel):
    """Every job that keeps what its last run did, the latest first."""

    at: float
    runs: list[RunShown]


def routes(charts: Charts, clock: Clock) -> APIRouter:
    """Under the prefix of the HTTP interface."""
    router = APIRouter(prefix="/stats", tags=["stats"])

    @router.get("")
    async def catalogue(request: Request) -> CatalogueList:
        """What is counted."""
        _allow(request)
        return CatalogueList.model_validate({"families": [one.as_dict() for one in listing(charts.catalogue)]})

    @router.get("/totals")
    async def totals(request: Request, response: Response) -> dict[str, TotalShown]:
        """Totals of all time."""
        _allow(request)
        response.headers["Cache-Control"] = TOTALS
        found = await charts.totals()
        return {name: TotalShown(total=one.total, month=one.month) for name, one in found.items()}

    @router.get("/runs")
    async def runs(request: Request, response: Response) -> RunsShown:
        """The last run of every job."""
        _allow(request)
        response.headers["Cache-Control"] = NO_STORE
        return RunsShown.model_validate({"at": clock.now(), "runs": [run.as_dict() for run in await charts.runs()]})

    @router.get("/numbers/{name}", responses=_told(SeriesShown))
    async def numbers(
        request: Request, name: Name, days: Days = None, first: From = None, to: To = None, written: Written = "json",
    ) -> Response:
        """Sizes of sets, and numbers, by day or month. Without a range: the 182 days before today, kept for a while."""
        _allow(request)
        if days is None and first is None and to is None and written == "json":
            return _kept(request, await charts.numbers_answer(name), SOME_MINUTES)
        return _written(await charts.numbers(name, *_range(charts, clock, name, days, first, to)), written)

    @router.get("/months/{name}", responses=_told(SeriesShown))
    async def months(request: Request, name: Name, label: Label = "month", written: Written = "json") -> Response:
        """What is kept by month, up to the last one; a number for each month, or repeated for each of its days."""
        _allow(request)
        if written == "csv":
            return _written(await charts.months(name, label), written)
        return _kept(request, await charts.months_answer(name, label), SOME_MINUTES)

    @router.get("/retention/{name}/{period}", responses=_told(RetentionShown))
    async def retention(
        request: Request, name: Name, period: Annotated[int, Path(ge=0, le=10_000)], written: Written = "json"
    ) -> Response:
        """The part of those who joined on each day that was active at least ``period`` days later."""
        _allow(request)
        if written == "csv":
            return _written(await charts.retention(name, period), written)
        return _kept(request, await charts.retention_answer(name, period), SOME_MINUTES)

    @router.get("/cohorts/{name}", responses=_told(CohortsShown))
    async def cohorts(request: Request, name: Name, by: Step = "week", written: Written = "json") -> Response:
        """Who joined when, and how many of them came back after each period: the grid of a heat map."""
        _allow(request)
        if written == "json":
            return _kept(request, await charts.cohorts_answer(name, by), SOME_MINUTES)
        return _written(await charts.recent_cohorts(name, by), written)

    @router.get("/views/{name}", responses=_told(ViewsShown))
    async def views(request: Request, name: Name, day: OneDay = None, written: Written = "json") -> Response:
        """The 30 days before ``day``, today at the latest, by value, and all time before it."""
        _allow(request)
        unix_date = None if day is None else int(dates.date_to_unix_date(day))
        if written == "csv":
            return _written(await charts.views(name, None if unix_date is None else unix_date - 1), written)
        return _kept(request, await charts.views_answer(name, unix_date), SOME_MINUTES)

    @router.get("/rows/{name}", responses=_told(RowsShown))
    async def rows(request: Request, name: Name, day: OneDay = None, written: Written = "json") -> Response:
        """The rows of one day."""
        _allow(request)
        unix_date = last_of(charts.catalogue.find(name), clock.now()) if day is None else dates.date_to_unix_date(day)
        if written == "csv":
            return _written(await charts.rows(name, unix_date), written)
        answer = await charts.rows_answer(name, unix_date)
        return _kept(request, answer, f"private, max-age={math.ceil(answer.seconds)}")

    @router.get("/{name}", responses=_told(SeriesShown))
    async def series(
        request: Request, name: Name, days: Days = None, first: From = None, to: To = None, written: Written = "json",
    ) -> Response:
        """Days of a family as they are now, today included."""
        _allow(request)
        return _written(await charts.series(name, *_range(charts, clock, name, days, first, to)), written)

    @router.get("/{name}/historical")
    async def historical(request: Request, name: Name) -> Response:
        """The last 90 days that are finished: ``labels``, a list for each event, ``<event>_breakdown`` by value."""
        _allow(request)
        answer = await charts.historical_answer(name)
        return _kept(request, answer, f"private, max-age={math.ceil(answer.seconds)}, stale-if-error=600")

    @router.get("/{name}/partial")
    async def partial(request: Request, name: Name) -> JSONResponse:
        """The days that are not finished: ``today``, ``yesterday`` and so on, each with a number for each event."""
        _allow(request)
        found = await charts.partial(name)
        family = charts.catalogue.families[name]
        today = today_of(family, clock.now()) - found.start
        lists = flat(family, found, sparse=False)
        shown = {_ago(today - at): _one_day(lists, at) for at in reversed(range(len(found.labels)))}
        return JSONResponse(shown, headers={"Cache-Control": NO_STORE})

    return router


def _allow(request: Request) -> None:
    caller: Caller = request.state.caller
    caller.require(SCOPE)


def _told(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    return {200: {"model": model, "content": {"text/csv": {}}}}


def _range(
    charts: Charts, clock: Clock, name: str, days: int | None, first: date | None, to: date | None
) -> tuple[int, int]:
    """The range that was asked for, its end exclusive; months for what is kept by month."""
    of = charts.catalogue.find(name)
    number: Callable[[date], int] = dates.date_to_unix_month if is_monthly(of) else dates.date_to_unix_date
    if (first is None and to is not None) or (first is not None and days is not None):
        raise Invalid("say from=2026-06-01&to=2026-06-30, or days=30; not both, and no end without a start")
    if first is None:
        end = last_of(of, clock.now()) + 1
        return max(0, end - (days or DEFAULT_DAYS)), end
    return number(first), (last_of(of, clock.now()) if to is None else number(to)) + 1


def _written(found: Any, written: Literal["json", "csv"]) -> Response:
    """Something that is as of now."""
    headers = {"Cache-Control": NO_STORE}
    if written == "json":
        return JSONResponse(found.as_dict(), headers=headers)
    file = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in found.name)
    headers["Content-Disposition"] = f'attachment; filename="{file}.csv"'
    return Response(found.csv(), media_type="text/csv; charset=utf-8", headers=headers)


def _kept(request: Request, answer: Answer, cache_control: str) -> Response:
    """An answer as it is kept: most are compressed already, for whoever takes that."""
    headers = {"Cache-Control": cache_control, "Vary": "Accept-Encoding"}
    if not answer.packed:
        return Response(answer.raw, media_type="application/json", headers=headers)
    if _takes_gzip(request.headers.get("accept-encoding", "")):
        headers["Content-Encoding"] = "gzip"
        return Response(answer.raw, media_type="application/json", headers=headers)
    return Response(gzip.decompress(answer.raw), media_type="application/json", headers=headers)


def _takes_gzip(accepted: str) -> bool:
    for each in accepted.lower().split(","):
        coding, _, weight = each.partition(";")
        if coding.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _ago(days: int) -> str:
    named = {-1: "tomorrow", 0: "today", 1: "yesterday", 2: "two_days_ago"}
    return named.get(days, f"{days}_days_ago")


def _one_day(lists: dict[str, Any], at: int) -> dict[str, Any]:
    return {
        name: {value: days[at] for value, days in one.items() if days[at]} if isinstance(one, dict) else one[at]
        for name, one in lists.items() if name != "labels"
    }

"""``keystead stats``: what is counted, drawn in the terminal, and the rotation of finished days."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from keystead.cli.modules import users_program
from keystead.cli.output import Format, FormatOption, emit, note, write, write_json
from keystead.cli.session import connected, run_settings, wait_for
from keystead.cli.stats_shown import (
    MOST_VALUES,
    cohorts_shown,
    list_table,
    report_table,
    rows_shown,
    series_shown,
    views_shown,
)
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.app import App
    from keystead.stats import Charts
    from keystead.stats.series import Series

T = TypeVar("T")

FINDINGS = 1
MOST_PROBLEMS = 20


class Written(StrEnum):
    """How days are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


ProgramOption = Annotated[
    list[str] | None,
    typer.Option("--program", metavar="MODULE", show_default="setting program.modules",
                 help="Module of your program that declares what it counts; may be given several times."),
]


def _app(context: typer.Context, program: list[str] | None) -> "App":
    from keystead.app import App

    settings = run_settings(context, program_modules=",".join(program) if program else None)
    return App(settings, users_program(settings.program.modules))


def _require_sql() -> None:
    try:
        import sqlalchemy  # noqa: F401
    except ImportError:
        raise Invalid("past days lie in SQL, which is not installed; run: pip install 'keystead[sql]'") from None


@asynccontextmanager
async def charting(app: "App") -> "AsyncIterator[Charts]":
    """Charts for the time of one command, by the server's clock. Tables that are missing are made."""
    from keystead.engine import sync_clock
    from keystead.stats import Charts, FamilyTables
    from keystead.store import Database

    catalogue, clock = app.catalogue(), app.clock()
    async with AsyncExitStack() as stack:
        valkey = await stack.enter_async_context(connected(app.settings))
        await sync_clock(valkey, clock)
        database = await stack.enter_async_context(Database.open(app.database_url))
        await FamilyTables(catalogue).ensure(database)
        yield await stack.enter_async_context(Charts.open(valkey, database, catalogue, clock))


def _ask(app: "App", ask: "Callable[[Charts], Awaitable[T]]") -> T:
    _require_sql()

    async def answer() -> T:
        async with charting(app) as charts:
            return await ask(charts)

    return wait_for(answer())


def list_families(
    context: typer.Context, program: ProgramOption = None, format: FormatOption = Format.TABLE
) -> None:
    """List everything that is counted. As JSON also the events, their breakdowns, zones and tables."""
    from keystead.stats.listing import listing

    listed = listing(_app(context, program).catalogue())
    write_json([one.as_dict() for one in listed]) if format is Format.JSON else write(list_table(listed))


def show(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="FAMILY", help="As `keystead stats list` names it.")],
    days: Annotated[
        int, typer.Option(min=1, max=3660, metavar="COUNT", help="The last so many days, or months, today included.")
    ] = 30,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="DATE", show_default=False, help="First day, such as 2026-06-01; wins over "
                                                                        "--days."),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="DATE", show_default="today", help="Last day; needs --from.")
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option("--event", metavar="NAME", show_default="all",
                     help="Only this event; may be given several times."),
    ] = None,
    breakdown: Annotated[
        str | None,
        typer.Option("--breakdown", metavar="EVENT", show_default=False, help="The values of one event instead."),
    ] = None,
    program: ProgramOption = None,
    format: Annotated[
        Written, typer.Option("--format", help="Draw for people, or write JSON or CSV for programs.")
    ] = Written.TABLE,
) -> None:
    """Draw what was counted: a row of bars for each event. Days behind a line may still change.

    Of cohorts it shows who came back by week of joining, of views and rows the values of the last day asked for.
    """
    from keystead.patterns import Cohorts, DailyFamily, DimensionViews, RowsByDay

    app = _app(context, program)
    of = app.catalogue().find(name)
    if not isinstance(of, DailyFamily) and (event or breakdown):
        raise Invalid(f"{name} has no events; leave out --event and --breakdown")
    if to is not None and start is None:
        raise Invalid("--to needs --from, the first day")

    async def ask(charts: "Charts") -> Any:
        first, end = _range(charts, name, days, start, to)
        if isinstance(of, DailyFamily):
            return await charts.series(name, first, end)
        if isinstance(of, Cohorts):
            return await charts.cohorts(name, first, end, "week") if start else await charts.recent_cohorts(name)
        if isinstance(of, DimensionViews):
            return await charts.views(name, end - 1, end - first)
        return await charts.rows(name, end - 1) if isinstance(of, RowsByDay) else await charts.numbers(name, first, end)

    found = _ask(app, ask)
    if isinstance(of, DailyFamily):
        found = _chosen(found, event, breakdown)
    if format is not Written.TABLE:
        write_json(found.as_dict()) if format is Written.JSON else emit(found.csv().replace("\r\n", "\n"))
    elif isinstance(of, Cohorts):
        write(*cohorts_shown(found, of.purpose))
    elif isinstance(of, DimensionViews):
        write(*views_shown(found, of.purpose))
    elif isinstance(of, RowsByDay):
        write(*rows_shown(found, of.purpose))
    else:
        rows = found.counts if breakdown is None else found.top(breakdown, MOST_VALUES)
        what = "event" if breakdown is None else of.breakdowns[breakdown] if isinstance(of, DailyFamily) else ""
        write(*series_shown(found, of.purpose, rows, what))


def _range(charts: "Charts", name: str, days: int, start: str | None, to: str | None) -> tuple[int, int]:
    """The days, or months, that were asked for; the end exclusive."""
    from keystead import dates
    from keystead.stats.charts_calendar import is_monthly, last_of

    of = charts.catalogue.find(name)
    number: Callable[[date], int] = dates.date_to_unix_month if is_monthly(of) else dates.date_to_unix_date
    end = (last_of(of, charts.clock.now()) if to is None else number(_date(to))) + 1
    return (max(0, end - days) if start is None else number(_date(start))), end


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{text!r} is no date; write it as 2026-06-01") from None


def _chosen(series: "Series", events: list[str] | None, breakdown: str | None) -> "Series":
    """Only what was asked for; an event that is not there is refused by name."""
    from dataclasses import replace

    if breakdown is not None:
        series.total(breakdown)
        if breakdown not in series.breakdowns:
            raise Invalid(f"{series.name}: {breakdown} has no breakdown; those that have one: "
                          f"{', '.join(series.breakdowns) or 'none'}")
        return series.only(breakdown)
    if not events:
        return series
    parts = [series.only(event) for event in events]
    return replace(
        series, counts={event: days for part in parts for event, days in part.counts.items()},
        breakdowns={event: values for part in parts for event, values in part.breakdowns.items()},
    )


def rotate(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FAMILY]...", show_default="all", help="As `keystead stats list` names them."),
    ] = None,
    program: ProgramOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Carry the days that are due into the database now, instead of at their hour.

    Any number may do so at once. Leaves with 1 if there were problems; nothing of what they concern was removed.
    """
    _require_sql()
    app = _app(context, program)
    for name in names or ():
        app.catalogue().find(name.removesuffix(":monthly"))

    async def run() -> Any:
        async with app.running() as running:
            return await running.rotation.run(names)

    report = wait_for(run())
    if format is Format.JSON:
        write_json({
            "days": report.days, "late": report.late, "problems": report.problems,
            "families": {name: {"days": done.days, "late": done.late, "seconds": round(done.seconds, 3)}
                         for name, done in report.by_name.items()},
        })
    else:
        if report.days or report.late or report.problems:
            write(report_table(report))
        note(f"{report.days:,} days and {report.late:,} late counts were carried into the database")
        for problem in report.problems[:MOST_PROBLEMS]:
            note(problem)
        if len(report.problems) > MOST_PROBLEMS:
            note(f"and {len(report.problems) - MOST_PROBLEMS:,} more problems; --format json tells them all")
    if report.problems:
        raise typer.Exit(FINDINGS)

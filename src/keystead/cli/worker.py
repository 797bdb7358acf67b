"""``keystead worker``: run the jobs of the user's program, or the work of an installation."""

import asyncio
import gc
import math
import sys
import time
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.modules import import_users_module
from keystead.cli.output import console, note, printable
from keystead.cli.place import place_options
from keystead.cli.session import common_options, connected, run_settings, wait_for
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.jobs import Category, JobBook, RecurringList, RecurringLoop, Worker, WorkerSettings
    from keystead.settings import Settings

RATE_SECONDS = 10.0
CONCURRENCY = 100


def worker(
    context: typer.Context,
    modules: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODULE[:BOOK]]...", show_default="the rooms, and setting program.modules",
                       help="Module whose jobs are run, such as shop.jobs, or a JobBook in it, such as shop.jobs:book. "
                            "Without any, the work of Keystead's own rooms is done, and that of program.modules."),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", metavar="NAME", show_default="hot",
                     help="Queue to serve; may be given several times. The queue without a name is hot."),
    ] = None,
    processes: Annotated[int, typer.Option(min=1, metavar="COUNT", help="How many processes work.")] = 1,
    concurrency: Annotated[
        int, typer.Option(min=1, metavar="COUNT", help="How many jobs each process runs at once.")
    ] = CONCURRENCY,
    threads: Annotated[
        int, typer.Option(min=1, metavar="COUNT", help="How many of them may be functions that are not async.")
    ] = 16,
    category: Annotated[
        list[str] | None,
        typer.Option("--category", metavar="NAME", show_default="all of the book",
                     help="Run only jobs of this category, by name or number; may be given several times."),
    ] = None,
    grace_seconds: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long jobs may go on after the first signal to stop.")
    ] = 30.0,
    at_most_once: Annotated[
        bool, typer.Option("--at-most-once", help="Forget a job when it is taken: a crash loses it instead of "
                                                  "running it again.")
    ] = False,
    recurring: Annotated[
        bool, typer.Option("--recurring/--no-recurring", help="Also queue the recurring jobs that the modules declare, "
                                                              "when they are due.")
    ] = True,
) -> None:
    """Run jobs until SIGTERM or Ctrl-C: those of your modules, or everything that `keystead api` leaves to others.

    With modules, only their jobs are run; the working directory is looked at first for them. Without, messages are
    sent, the calendars kept, statistics rotated, and the jobs of program.modules run, tenants' included. Jobs that run
    when the signal comes are finished, or given back after the grace; a second signal gives them back at once. Any
    number may work, on any number of machines: what a worker held that died is taken over by another within seconds.
    """
    if not modules:
        _work_for_rooms(context, queue=queue, processes=processes, concurrency=concurrency,
                        grace_seconds=grace_seconds, only_modules=bool(category or at_most_once or not recurring))
        return
    settings = run_settings(context)
    book = load_book(modules)
    calendars = load_recurring(modules, book) if recurring else []
    from keystead.jobs import WorkerSettings
    from keystead.jobs.inspection_views import queue_named
    from keystead.telemetry import configure_logging

    configure_logging(settings.log.level, settings.log.format)
    queues = [queue_named(name).name or "hot" for name in queue or ("hot",)]
    wishes = WorkerSettings(
        queues=tuple(dict.fromkeys(queues)), categories=_categories(book, category or ()),
        concurrency=concurrency, threads=threads, grace_seconds=grace_seconds, at_most_once=at_most_once,
    )
    if processes == 1:
        wait_for(_work(settings, book, wishes, calendars))
        return
    wait_for(_reach(settings))
    command = [*_command(context), *modules, "--concurrency", str(concurrency), "--threads", str(threads),
               "--grace-seconds", str(grace_seconds), "--recurring" if recurring else "--no-recurring"]
    for option, values in (("--queue", wishes.queues), ("--category", category or ())):
        command += [part for value in values for part in (option, value)]
    command += ["--at-most-once"] if at_most_once else []
    raise typer.Exit(asyncio.run(_supervise(command, processes)))


def _work_for_rooms(
    context: typer.Context, *, queue: list[str] | None, processes: int, concurrency: int,
    grace_seconds: float, only_modules: bool,
) -> None:
    if only_modules:
        raise Invalid("--category, --at-most-once and --no-recurring are for the jobs of modules; name a module whose "
                      "jobs are run, such as shop.jobs, or leave them out")
    settings = run_settings(context, program_queues=",".join(queue) if queue else None,
                            program_concurrent_jobs=concurrency if concurrency != CONCURRENCY else None)
    from keystead.cli.worker_rooms import work
    from keystead.telemetry import configure_logging

    configure_logging(settings.log.level, settings.log.format)
    if processes == 1:
        wait_for(work(settings, grace_seconds=grace_seconds))
        return
    wait_for(_reach(settings))
    options = (("--queue", queue or ()), ("--concurrency", [str(concurrency)]),
               ("--grace-seconds", [str(grace_seconds)]))
    command = _command(context) + [part for option, values in options for value in values for part in (option, value)]
    raise typer.Exit(asyncio.run(_supervise(command, processes)))


def _command(context: typer.Context) -> list[str]:
    """This command once more, with the same settings and for the same installation."""
    return [sys.executable, "-m", "keystead.cli", *common_options(context), "worker", *place_options(context)]


# -- which jobs --------------------------------------------------------------------------------------------------------


def load_book(sources: Sequence[str]) -> "JobBook":
    """The jobs of these modules, or the books that are named in them."""
    from keystead.jobs import JobBook

    return JobBook().merged([_book(source) for source in sources])


def load_recurring(sources: Sequence[str], book: "JobBook") -> list["RecurringList"]:
    """The recurring jobs that these modules hold, alone or in lists: one list for each queue that they go to."""
    from keystead.jobs.program import calendars_of

    modules = {name: _module(name) for name in (source.partition(":")[0] for source in sources)}
    return calendars_of(list(modules.values()), book)


def _module(name: str) -> ModuleType:
    return import_users_module(
        name, wanted="jobs", takes="keystead worker takes one such as shop.jobs, or a book in it as shop.jobs:book"
    )


def _book(source: str) -> "JobBook":
    from keystead.jobs import JobBook

    name, colon, attribute = source.partition(":")
    module = _module(name)
    if not colon:
        book = JobBook.of(module)
        if not len(book):
            raise Invalid(f"module {name} holds no job; mark its functions with @job, or name a JobBook in it as "
                          f"{name}:NAME")
        return book
    found = getattr(module, attribute, None)
    if isinstance(found, JobBook):
        return found
    books = [known for known, value in vars(module).items() if isinstance(value, JobBook)]
    hint = f"it has {', '.join(books)}" if books else f"it has none; give {name} alone to run the jobs it holds"
    raise Invalid(f"module {name} has no JobBook named {attribute or 'nothing'}; {hint}")


def _categories(book: "JobBook", wanted: Sequence[str]) -> "tuple[Category, ...] | None":
    if not wanted:
        return None
    known = {spelled: one for one in book.categories() for spelled in (str(one.id), one.name.lower())}
    for name in wanted:
        if name.lower() not in known:
            raise Invalid(f"no job has the category {name}; categories are "
                          + ", ".join(f"{one.name} ({one.id})" for one in book.categories()))
    return tuple(dict.fromkeys(known[name.lower()] for name in wanted))


# -- one process -------------------------------------------------------------------------------------------------------


async def _work(
    settings: "Settings", book: "JobBook", wishes: "WorkerSettings", calendars: "Sequence[RecurringList]"
) -> None:
    from keystead.backup import require_whole
    from keystead.clock import SystemClock
    from keystead.engine import parse, sync_clock
    from keystead.jobs import RecurringLoop, Worker
    from keystead.jobs.processes import stop_without_parent
    from keystead.pace import read_pace

    async with connected(settings) as valkey:
        await require_whole(valkey)
        # The clock of an embedded server may run faster. The wiring knows too, but a worker need not load it.
        directory = parse(settings.valkey.url).path if settings.valkey.url.startswith("embedded://") else None
        clock = SystemClock(pace=read_pace(directory)) if directory is not None else SystemClock()
        await sync_clock(valkey, clock)
        worker = Worker(valkey, book, wishes, clock=clock)
        stop_without_parent(worker.stop)
        # What is loaded by now stays for good; looking through it again costs as much as running small jobs does.
        gc.freeze()
        note(f"worker {worker.name} serves {', '.join(wishes.queues)} on {parse(settings.valkey.url).display}: "
             f"{len(book)} kinds of jobs, {wishes.concurrency} at once"
             + (f", {sum(map(len, calendars))} recurring" if calendars else ""))
        async with asyncio.TaskGroup() as beside:
            parts = [beside.create_task(_tell_rates(worker))]
            parts += [beside.create_task(_serve_calendar(worker, RecurringLoop(valkey, calendar, clock=clock)))
                      for calendar in calendars]
            try:
                await worker.run(signals=True)
            finally:
                for part in parts:
                    part.cancel()
        tally = worker.tally
        note(f"worker {worker.name} stopped: {tally.done:,} done, {tally.failed:,} failed, {tally.retried:,} to be "
             "tried again")


async def _serve_calendar(worker: "Worker", loop: "RecurringLoop") -> None:
    """Queue recurring jobs when they are due, until the worker is asked to stop: what comes then is for others."""
    from keystead.jobs.shutdown import graceful_sleep

    async with asyncio.TaskGroup() as group:
        group.create_task(loop.run())
        await graceful_sleep(math.inf, stopping=lambda: worker.stopping, clock=loop.clock)
        loop.stop()


async def _tell_rates(worker: "Worker") -> None:
    """A line every few seconds in which something was done, while someone watches."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        return
    before, since = (0, 0, 0), time.monotonic()
    while True:
        await asyncio.sleep(RATE_SECONDS)
        tally, now = worker.tally, time.monotonic()
        ended = (tally.done, tally.failed, tally.retried)
        if ended != before:
            rate = (tally.done - before[0]) / (now - since)
            failed = f"[red]{tally.failed:,} failed[/red]" if tally.failed else "0 failed"
            screen.print(f"[dim]{printable(worker.name)}[/dim] {rate:,.1f}/s, {tally.done:,} done, {failed}, "
                         f"{tally.retried:,} to be tried again, {worker.running:,} running")
        before, since = ended, now


# -- several -----------------------------------------------------------------------------------------------------------


async def _reach(settings: "Settings") -> None:
    """Fail here, once, if the server cannot be reached or worked at, rather than in every process."""
    from keystead.backup import require_whole

    async with connected(settings) as valkey:
        await require_whole(valkey)


async def _supervise(command: list[str], count: int) -> int:
    from keystead.jobs.processes import Processes

    return await Processes(command, count, say=note).run(signals=True)

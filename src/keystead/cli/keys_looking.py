"""What commands that look at a whole server share: options, the place to look from, a progress bar."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.output import console, note

if TYPE_CHECKING:
    from keystead.engine import Lookout
    from keystead.settings import Settings
    from keystead.survey import Stride

UrlArgument = Annotated[
    str | None,
    typer.Argument(metavar="URL", show_default="setting valkey.url",
                   help="Server to look at, such as redis://localhost:6379."),
]
MatchOption = Annotated[
    str | None,
    typer.Option("--match", metavar="GLOB", show_default=False, help="Only keys that fit, such as 'user:*'."),
]
RateOption = Annotated[
    int, typer.Option("--keys-per-second", min=1, metavar="KEYS", help="Look at no more keys than this in a second.")
]
PrimaryOption = Annotated[
    bool, typer.Option("--primary", help="Look at the primary although there is a replica.")
]
SampleOption = Annotated[
    int, typer.Option("--sample", min=1, metavar="KEYS", help="Look at no more keys than this.")
]
KEYS_PER_SECOND = 100_000


@asynccontextmanager
async def looking(settings: "Settings", primary: bool) -> AsyncIterator["Lookout"]:
    """The server of this run, seen from a replica if there is one."""
    from keystead.engine import lookout

    async with lookout(settings.valkey.url, settings=settings.valkey, primary=primary) as look:
        yield look


def stride(keys_per_second: int) -> "Stride":
    from keystead.survey import Stride

    return Stride(keys_per_second)


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error while someone watches; nothing otherwise."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TextColumn("keys"), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bars:
        bar = bars.add_task("", total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)


def plain(text: str) -> str:
    """Names come from the server; what looks like markup in them is not."""
    from rich.markup import escape

    from keystead.cli.output import printable

    return escape(printable(text))


def tell(says: str) -> None:
    """One note about the result, whatever characters a server put into it."""
    from keystead.cli.output import printable

    note(printable(says).replace("\n", " "))


def counted(count: int, noun: str) -> str:
    """``1 pattern``, ``2 patterns``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"

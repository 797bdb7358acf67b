"""What live commands share: settings of this run, and a connection that is closed again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from keystead.engine import Valkey
    from keystead.settings import Settings

T = TypeVar("T")

UrlOption = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Server to look at.", show_default="setting valkey.url"),
]


def run_settings(context: typer.Context, **flags: object) -> "Settings":
    """The settings of this run; ``flags`` are named ``valkey_url`` for ``valkey.url`` and win where they are given."""
    from keystead.settings import load_settings

    file: Path | None = context.find_root().obj
    return load_settings({name.replace("_", ".", 1): value for name, value in flags.items()}, file=file)


@asynccontextmanager
async def connected(settings: "Settings", *, only_looks: bool = False) -> AsyncIterator["Valkey"]:
    """A connection for the time of one command. Who ``only_looks`` may look at servers of any age."""
    from keystead.engine import connect
    from keystead.keys import sealing

    valkey = await connect(settings.valkey.url, settings=settings.valkey, lanes=settings.messaging.lanes,
                           only_looks=only_looks)
    try:
        with sealing(settings.messaging.payload_keys):
            yield valkey
    finally:
        await valkey.aclose()


def wait_for(work: Coroutine[None, None, T]) -> T:
    """Run one command's work on an event loop of its own; on uvloop where it is installed."""
    new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with contextlib.suppress(ImportError):
        import uvloop

        new_loop = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)

"""What live commands share: settings of this run, and a connection that is closed again."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from keystead.cli.output import note, printable
from keystead.cli.place import DEMO_DEFAULTS, given_url, is_demo
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.engine import Valkey
    from keystead.settings import Settings

T = TypeVar("T")

# Set by us for our own processes, or options of commands: no settings, and known all the same.
OTHER_NAMES = ("KEYSTEAD_DEMO_KEY", "KEYSTEAD_INVENTORY", "KEYSTEAD_PARENT", "KEYSTEAD_REGISTRY")
SET = "keystead.set"  # where the values of --set lie in the context
_told: set[str] = set()


def run_settings(
    context: typer.Context, *, demo: Mapping[str, object] | None = None, **flags: object
) -> "Settings":
    """The settings of this run: ``--data``, ``--url`` and ``flags`` (``http_port`` for ``http.port``) win where given,
    then ``--set``, the environment, the file and the defaults; those of ``demo``, or of the demonstration that lies in
    this place. Says once what in the environment looks like a setting only."""
    from keystead.setting import strangers
    from keystead.settings import all_settings, load_settings

    place, file = given_url(context), context.find_root().obj
    if place is not None and flags.get("valkey_url") not in (None, place):
        raise Invalid("the server is named twice; give its URL, --url or --data, one of them")
    given: dict[str, object] = dict(context.meta.get(SET, {})) | ({"valkey.url": place} if place is not None else {})
    given |= {name.replace("_", ".", 1): value for name, value in flags.items() if value is not None}
    settings = load_settings(given, file=file, demo=demo)
    if demo is None and is_demo(settings):
        settings = load_settings(given, file=file, demo=DEMO_DEFAULTS)
    for name, near in strangers(os.environ, all_settings(), OTHER_NAMES).items():
        if name not in _told:
            _told.add(name)
            note(f"{printable(name)} in the environment is no setting" + (f"; did you mean {near}?" if near else ""))
    return settings


def setting_pairs(given: Sequence[str] | None) -> dict[str, str]:
    """Names and values of ``--set``."""
    for text in given or ():
        if "=" not in text:
            raise Invalid(f"--set takes NAME=VALUE, such as log.level=debug, not {printable(text)}")
    return {name.strip(): value for name, _, value in (text.partition("=") for text in given or ())}


def common_options(context: typer.Context) -> list[str]:
    """What a command hands on to processes that run the same command: the settings file, and --set."""
    file: Path | None = context.find_root().obj
    options = ["--config", str(file)] if file is not None else []
    given = context.meta.get(SET, {}).items()
    return options + [part for name, value in given for part in ("--set", f"{name}={value}")]


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

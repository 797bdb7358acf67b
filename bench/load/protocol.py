"""How a measured process is called and how it answers: flags in, one line of JSON out."""

import argparse
import asyncio
import contextlib
import gc
import json
import platform
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

# Measures one library: its name, the kind of load, tasks, url, seconds, warm-up.
Measure = Callable[[str, str, int, str, float, float], Coroutine[Any, Any, None]]


def parser() -> argparse.ArgumentParser:
    """The flags that every measured program takes, whether it has a use for them or not."""
    flags = argparse.ArgumentParser(allow_abbrev=False)
    flags.add_argument("--url", default="", help="the server to measure against")
    flags.add_argument("--seconds", type=float, default=2.0, help="length of the measured window")
    flags.add_argument("--warm-up", type=float, default=0.5, help="the same work beforehand, not counted")
    return flags


def answer(figures: Mapping[str, float], facts: Mapping[str, object]) -> None:
    """Print the measured figures, and the facts that a reader needs to judge them."""
    common = {"python": platform.python_version(), "gc": gc.isenabled()}
    print(json.dumps({"figures": dict(figures), "facts": common | dict(facts)}), flush=True)


def measure_library(measure: Measure, libraries: Iterable[str], kinds: Iterable[str]) -> None:
    """The whole program of a load that several libraries can bear: measures one of them, on uvloop if that is there."""
    flags = parser()
    flags.add_argument("library", choices=sorted(libraries))
    flags.add_argument("kind", choices=list(kinds))
    flags.add_argument("--tasks", type=int, default=100)
    given = flags.parse_args()
    run: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run
    with contextlib.suppress(ImportError):
        import uvloop

        run = uvloop.run
    run(measure(given.library, given.kind, given.tasks, given.url, given.seconds, given.warm_up))

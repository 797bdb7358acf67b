"""Measure one client on one kind of call: ``python -m bench.load.commands redis_py get --tasks 100 --url URL``."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from bench.load import loops, protocol
from bench.load.clients import Client, open_client

SMALL = b"x" * 64
KIBIBYTE = b"x" * 1024
BLOCK = 100

Runner = Callable[[Coroutine[Any, Any, None]], None]


async def _checked(call: loops.Call, *wanted: object) -> None:
    reply = await call()
    if reply not in wanted:
        raise SystemExit(f"the client answered {str(reply)[:80]!r}; a figure from it would mean nothing")


async def _get(client: Client, tasks: int) -> list[loops.Call]:
    keys = [f"bench:{number}" for number in range(tasks)]
    for key in keys:
        await client.set(key, SMALL)()
    calls = [client.get(key) for key in keys]
    await _checked(calls[0], SMALL)
    return calls


async def _set(client: Client, tasks: int) -> list[loops.Call]:
    calls = [client.set(f"bench:{number}", KIBIBYTE) for number in range(tasks)]
    await _checked(calls[0], True, "OK", b"OK")
    await _checked(client.get("bench:0"), KIBIBYTE)
    return calls


async def _script(client: Client, tasks: int) -> list[loops.Call]:
    calls = [client.script(f"bench:{number}") for number in range(tasks)]
    await _checked(calls[0], 1)
    await _checked(calls[0], 2)
    return calls


async def _pipeline(client: Client, tasks: int) -> list[loops.Call]:
    keys = [f"bench:{number}" for number in range(BLOCK)]
    for key in keys:
        await client.set(key, SMALL)()
    calls = [client.pipeline(keys) for _ in range(tasks)]
    await _checked(calls[0], [SMALL] * BLOCK)
    return calls


PREPARE = {"get": _get, "set": _set, "script": _script, "pipeline": _pipeline, "wait": _get}


async def measure(client_name: str, kind: str, tasks: int, url: str, seconds: float, warm_up: float,
                  cluster: bool) -> None:
    async with open_client(client_name, url, tasks, cluster=cluster) as client:
        calls = await PREPARE[kind](client, tasks)
        if kind == "wait":
            found = await loops.waits(calls, seconds, warm_up)
            figures = {"p50_ms": 1e3 * loops.percentile(found, 0.50), "p99_ms": 1e3 * loops.percentile(found, 0.99)}
        else:
            commands = BLOCK if kind == "pipeline" else 1
            figures = {"per_second": commands * await loops.rate(calls, seconds, warm_up)}
        loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
        protocol.answer(figures, client.facts | {"loop": loop})


def _runner(stock_loop: bool) -> Runner:
    if not stock_loop:
        with contextlib.suppress(ImportError):
            import uvloop

            return uvloop.run
    return asyncio.run


def main() -> None:
    flags = protocol.parser()
    flags.add_argument("client", help="a module of bench.load.clients")
    flags.add_argument("kind", choices=sorted(PREPARE))
    flags.add_argument("--tasks", type=int, default=100)
    flags.add_argument("--cluster", action="store_true")
    flags.add_argument("--stock-loop", action="store_true", help="asyncio's own event loop in place of uvloop")
    given = flags.parse_args()
    run = _runner(given.stock_loop)
    run(measure(given.client, given.kind, given.tasks, given.url, given.seconds, given.warm_up, given.cluster))


if __name__ == "__main__":
    main()

"""Measure redis-py guarded and plain: ``python -m bench.load.guard get --url URL``; ``cost`` needs no server."""

import asyncio
import itertools
import time
import timeit
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import redis
import redis.asyncio

from bench.load import protocol
from keystead.guard import Guard
from keystead.inventory import Entry, Expiry, Fact, Inventory, Rule

BLOCK = 100
KEYS = 1000
TASKS = 50
INVENTORY = Inventory("bench", (
    Entry("cart:{id}", type=Fact("hash")),
    Entry("page:{id}", type=Fact("string")),
    Entry("session:{id}", type=Fact("string"), ttl=Fact(Expiry(Rule.EXACTLY, 3600.0))),
    Entry("visits:{day}", type=Fact("integer"), ttl=Fact(Expiry(Rule.SOME))),
    *(Entry(f"room{number}:{{id}}:things", type=Fact("set")) for number in range(296)),
))


class Nobody:
    """Where a command goes when only the guard is to be measured."""

    def execute_command(self, *words: Any, **options: Any) -> None:
        return None


def best_us(call: Callable[[], object], row: int = 2000, rows: int = 150) -> float:
    return 1e6 * min(timeit.repeat(call, number=row, repeat=rows)) / row


def costs() -> dict[str, float]:
    plain: Any = Nobody()
    guarded: Any = Guard(INVENTORY, log_seconds=None).watch(Nobody())
    numbers = itertools.count()

    def cost(words: Callable[[], tuple[object, ...]]) -> float:
        return best_us(lambda: guarded.execute_command(*words())) - best_us(lambda: plain.execute_command(*words()))

    return {
        "seen_us": cost(lambda: ("GET", "page:1")),
        "timed_us": cost(lambda: ("SET", "session:1", "x", "EX", 60)),
        "made_us": cost(lambda: ("INCR", "visits:1")),
        "several_us": cost(lambda: ("MGET", "page:1", "page:2")),
        "new_us": cost(lambda: ("GET", f"page:{next(numbers)}")),
        "stranger_us": cost(lambda: ("GET", f"pages:{next(numbers)}")),
    }


def waiting_block(client: Any, kind: str, first: int) -> None:
    """``BLOCK`` commands, one after the other or in one pipeline."""
    numbers = range(first, first + BLOCK)
    if kind == "get":
        for number in numbers:
            client.get(f"page:{number}")
    elif kind == "set":
        for number in numbers:
            client.set(f"session:{number}", "x", ex=60)
    else:
        pipe = client.pipeline(transaction=False)
        for number in numbers[: BLOCK // 2]:
            pipe.get(f"page:{number}")
            pipe.hset(f"cart:{number}", "field", "value")
        pipe.execute()


async def asyncio_block(client: Any, first: int) -> None:
    async def work(task: int) -> None:
        for number in range(task, BLOCK, TASKS):
            await client.get(f"page:{first + number}")

    await asyncio.gather(*(work(task) for task in range(TASKS)))


class Turns:
    """Guarded and plain in turns, so that both meet the same machine. The fast turns count; others were disturbed."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.took: dict[str, list[float]] = {"guarded": [], "plain": []}

    def __iter__(self) -> Iterator[tuple[str, int]]:
        end = time.perf_counter() + self._seconds
        for number in itertools.count():
            if time.perf_counter() >= end:
                return
            for who in ("guarded", "plain") if number % 2 else ("plain", "guarded"):
                begin = time.perf_counter()
                yield who, number * BLOCK % KEYS
                self.took[who].append(time.perf_counter() - begin)

    def figures(self) -> dict[str, float]:
        rates = {}
        for who, took in self.took.items():
            calm = sorted(took)[: max(1, len(took) // 10)]
            rates[who] = BLOCK * len(calm) / sum(calm)
        return {"per_second": rates["guarded"], "plain_per_second": rates["plain"],
                "share": rates["guarded"] / rates["plain"]}


def waiting_figures(url: str, kind: str, guard: Guard, warm_up: float, seconds: float) -> dict[str, float]:
    with guard.watch(redis.Redis.from_url(url)) as guarded, redis.Redis.from_url(url) as plain:
        clients = {"guarded": guarded, "plain": plain}
        for turns in (Turns(warm_up), Turns(seconds)):
            for who, first in turns:
                waiting_block(clients[who], kind, first)
    return turns.figures()


async def asyncio_figures(url: str, guard: Guard, warm_up: float, seconds: float) -> dict[str, float]:
    plain = redis.asyncio.Redis.from_url(url, max_connections=TASKS)
    clients = {"guarded": guard.watch(redis.asyncio.Redis.from_url(url, max_connections=TASKS)), "plain": plain}
    for turns in (Turns(warm_up), Turns(seconds)):
        for who, first in turns:
            await asyncio_block(clients[who], first)
    for client in clients.values():
        await client.aclose()
    return turns.figures()


def main() -> None:
    flags = protocol.parser()
    flags.add_argument("kind", choices=("cost", "get", "set", "pipeline", "asyncio"))
    given = flags.parse_args()
    facts = {"redis-py": version("redis"), "patterns": len(INVENTORY.entries)}
    if given.kind == "cost":
        return protocol.answer(costs(), facts)
    guard = Guard(INVENTORY)
    url = given.url.replace("valkey://", "redis://", 1)
    if given.kind == "asyncio":
        figures = asyncio.run(asyncio_figures(url, guard, given.warm_up, given.seconds))
    else:
        figures = waiting_figures(url, given.kind, guard, given.warm_up, given.seconds)
    if not (guard.report().clean and guard.report().commands):
        raise SystemExit(f"the guard found what is not there: {guard.report()}")
    return protocol.answer(figures, facts)


if __name__ == "__main__":
    main()

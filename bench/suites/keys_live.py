"""Looking at a million keys that nobody declared, beside the tool everybody has."""

import contextlib
import json
from collections.abc import Iterator

import redis

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import Servers, Stage, one_server

KEYS = 1_000_000
MODULE = "bench.load.keys_live"
CLI = "redis-cli --bigkeys and --memkeys"


class Filled:
    """A server that is filled once: looking changes nothing."""

    def __init__(self, servers: Stage) -> None:
        self.url = servers.url
        self.cpu_seconds = servers.cpu_seconds

    def clear(self) -> None:
        pass


def fill(port: int, keys: int) -> None:
    """Sessions that expire, records, sets, sorted sets, lists and counters, as a small product has them."""
    client = redis.Redis(port=port)
    for start in range(0, keys, 10_000):
        pipe = client.pipeline(transaction=False)
        for number in range(start, min(start + 10_000, keys)):
            match number % 10:
                case 0 | 1 | 2 | 3:
                    held = json.dumps({"user": number, "at": 1_700_000_000 + number})
                    pipe.set(f"session:{number:032x}", held, ex=5400 + number % 1000)
                case 4 | 5:
                    pipe.hset(f"user:{number}", mapping={"name": f"n{number}", "email": f"u{number}@example.com"})
                case 6:
                    pipe.sadd(f"followers:{number}", *range(number % 20 + 1))
                case 7:
                    pipe.zadd(f"feed:{number}", {"a": 1, "b": 2})
                case 8:
                    pipe.rpush(f"queue:{number % 1000}:{number}", "x", "y")
                case _:
                    pipe.set(f"count:{number}", number)
        pipe.execute()
    client.close()


@contextlib.contextmanager
def million_keys() -> Iterator[Stage]:
    with one_server() as stage:
        assert isinstance(stage, Servers)
        fill(int(stage.url.rpartition(":")[2]), KEYS)
        yield Filled(stage)


SUITE = Suite(
    name="keys_live",
    title="keys_live: type, expiry and memory of 1,000,000 live keys, one server on loopback",
    stage=million_keys,
    cases=(
        Case(
            "audit 1,000,000 keys",
            (
                Figure("audit of 1,000,000 keys", "seconds", "s", lower_is_better=True, bars=(Bar(1, CLI),)),
                Figure("what it adds to the p99 of another client's GET", "added_p99_ms", "ms", lower_is_better=True,
                       bars=(Bar(2),)),
            ),
            (
                Contestant(OURS, Home.PROJECT, MODULE, ("keystead",)),
                Contestant(CLI, Home.PROJECT, MODULE, ("redis-cli",)),
            ),
            most_rounds=3,
            patience_seconds=300,
        ),
    ),
    rounds=3,
    notes=("ours compares every key with an inventory while it walks, at its default pace; redis-cli (C, of Redis 6.2) "
           "walks twice, once for types and lengths and once for memory, asks for no expiry, and groups nothing; the "
           "other client asks every 2 ms from a process of its own",),
)

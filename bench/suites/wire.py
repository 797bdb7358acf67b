"""One server, one client process: what a call costs, alone and in a crowd."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import one_server

PEERS = {"redis-py": "redis_py", "valkey-glide": "glide", "coredis": "coredis"}
TASKS = 100


def commands(kind: str, *, tasks: int = TASKS, flags: tuple[str, ...] = ()) -> tuple[Contestant, ...]:
    """Ours and every peer on the same kind of call."""
    arguments = (kind, "--tasks", str(tasks), *flags)
    module = "bench.load.commands"
    return (
        Contestant(OURS, Home.PROJECT, module, ("keystead", *arguments)),
        *(Contestant(name, Home.PEERS, module, (client, *arguments)) for name, client in PEERS.items()),
    )


def rate(name: str, contestants: tuple[Contestant, ...], *bars: Bar) -> Case:
    """A case whose one figure is calls per second."""
    return Case(name, (Figure(name, "per_second", "calls/s", bars=bars),), contestants)


SUITE = Suite(
    name="wire",
    title="wire: one server on loopback, one client process",
    stage=one_server,
    cases=(
        rate("GET, 100 tasks", commands("get"), Bar(12, "redis-py"), Bar(4, "valkey-glide")),
        rate("GET, one at a time", commands("get", tasks=1), Bar(2.5, "redis-py")),
        rate("script by hash, 100 tasks", commands("script"), Bar(8, "redis-py")),
        Case(
            "wait for one GET, 100 tasks",
            (
                Figure("p99 of one GET, 100 tasks", "p99_ms", "ms", lower_is_better=True, bars=(Bar(1, "redis-py"),)),
                Figure("p50 of one GET, 100 tasks", "p50_ms", "ms", lower_is_better=True),
            ),
            commands("wait"),
        ),
        rate("GET, 100 tasks, stock asyncio", commands("get", flags=("--stock-loop",))),
        rate("SET of 1 KiB, 100 tasks", commands("set")),
        rate("GET in pipelines of 100, one at a time", commands("pipeline", tasks=1)),
    ),
    notes=("64-byte values except where said; uvloop except where said; redis-py with hiredis and room in its pool for "
           "every task",),
)

"""What the server says about itself, as values with names and units."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Unavailable


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """One look at a server, or at all primaries of a cluster together.

    ``commands`` counts since the start; ``hit_rate`` is None before the first lookup; ``uptime_seconds`` is that of the
    youngest, ``primaries`` how many were asked.
    """

    product: str
    version: str
    mode: str
    role: str
    uptime_seconds: int
    memory_bytes: int
    memory_peak_bytes: int
    memory_limit_bytes: int
    clients: int
    keys: int
    keys_with_ttl: int
    commands: int
    hits: int
    misses: int
    expired: int
    evicted: int
    persistence: str
    persistence_ok: bool
    replicas: int
    loading: bool
    primaries: int = 1

    @property
    def hit_rate(self) -> float | None:
        looked = self.hits + self.misses
        return self.hits / looked if looked else None


async def read_facts(valkey: Valkey) -> ServerFacts:
    """Ask every server that holds keys once (INFO). Raises ``Unavailable`` when one is away or does not tell."""
    nodes = await valkey.nodes()
    try:
        answers = await asyncio.gather(*(node.info(*_SECTIONS) for node in nodes))
    except ErrorReply as error:
        raise Unavailable(f"the server does not say how it is: {error}") from error
    return facts_together([facts_of_info(info) for info in answers])


_SECTIONS = ("server", "clients", "memory", "persistence", "stats", "replication", "keyspace")  # that are read below
_SUMMED = ("memory_bytes", "memory_peak_bytes", "memory_limit_bytes", "clients", "keys", "keys_with_ttl", "commands",
           "hits", "misses", "expired", "evicted", "replicas", "primaries")


def facts_together(facts: list[ServerFacts]) -> ServerFacts:
    """Several servers as one: sums, the youngest, and the first that is not in order."""
    if len(facts) == 1:
        return facts[0]
    worst = next((each for each in facts if not each.persistence_ok), facts[0])
    return replace(
        worst,
        uptime_seconds=min(each.uptime_seconds for each in facts),
        loading=any(each.loading for each in facts),
        **{name: sum(getattr(each, name) for each in facts) for name in _SUMMED},
    )


def facts_of_info(info: Mapping[str, Any]) -> ServerFacts:
    """From the parsed INFO reply of Valkey or Redis; what a server does not tell is zero or empty."""
    databases = [value for name, value in info.items() if name.startswith("db") and isinstance(value, dict)]
    valkey_version = info.get("valkey_version")
    persistence, persistence_ok = _persistence(info)
    return ServerFacts(
        product="Valkey" if valkey_version else "Redis",
        version=str(valkey_version or info.get("redis_version", "")),
        mode=str(info.get("server_mode") or info.get("redis_mode", "")),
        role=str(info.get("role", "")),
        uptime_seconds=int(info.get("uptime_in_seconds", 0)),
        memory_bytes=int(info.get("used_memory", 0)),
        memory_peak_bytes=int(info.get("used_memory_peak", 0)),
        memory_limit_bytes=int(info.get("maxmemory", 0)),
        clients=int(info.get("connected_clients", 0)),
        keys=sum(int(database.get("keys", 0)) for database in databases),
        keys_with_ttl=sum(int(database.get("expires", 0)) for database in databases),
        commands=int(info.get("total_commands_processed", 0)),
        hits=int(info.get("keyspace_hits", 0)),
        misses=int(info.get("keyspace_misses", 0)),
        expired=int(info.get("expired_keys", 0)),
        evicted=int(info.get("evicted_keys", 0)),
        persistence=persistence,
        persistence_ok=persistence_ok,
        replicas=int(info.get("connected_slaves", 0)),
        loading=bool(int(info.get("loading", 0))),
    )


def _persistence(info: Mapping[str, Any]) -> tuple[str, bool]:
    if int(info.get("aof_enabled", 0)):
        fine = info.get("aof_last_write_status", "ok") == "ok" and info.get("aof_last_bgrewrite_status", "ok") == "ok"
        return ("append-only file" if fine else "append-only file, last write failed"), fine
    if int(info.get("rdb_last_save_time", 0)) and info.get("rdb_last_bgsave_status", "ok") != "ok":
        return "snapshots, last one failed", False
    return "snapshots only", True

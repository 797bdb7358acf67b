"""Where to stand to look at a server: on replicas where there are any, so that its clients notice nothing."""

import contextlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import redis.exceptions

from keystead.engine.address import Address, parse
from keystead.engine.client import Valkey
from keystead.engine.cluster import ClusterValkey
from keystead.engine.connect import connect
from keystead.engine.connect_pool import redis_pool
from keystead.engine.endpoint import Endpoint
from keystead.errors import Unavailable
from keystead.keys.executor import Reply
from keystead.settings import ValkeySettings

_CONNECT_SECONDS = 2.0  # a replica that announces an address we cannot reach is not waited for


@dataclass(frozen=True, slots=True)
class Lookout:
    """One client for each part of the keyspace: a single one, or one for each shard of a cluster.

    ``replicas`` of the ``nodes`` are replicas. ``notes`` say what a reader of the results should know of that.
    """

    name: str
    nodes: tuple[Valkey, ...]
    replicas: int = 0
    notes: tuple[str, ...] = ()


@asynccontextmanager
async def lookout(
    url: str | Address, *, settings: ValkeySettings | None = None, primary: bool = False
) -> AsyncIterator[Lookout]:
    """Connect to look: to a replica of each server if one answers and is in step, unless ``primary`` is wanted.

    Takes any server from Redis 6 on. Raises what ``connect`` raises.
    """
    address = parse(url) if isinstance(url, str) else url
    async with contextlib.AsyncExitStack() as closing:
        valkey = await connect(address, settings=settings, only_looks=True)
        closing.push_async_callback(valkey.aclose)
        if isinstance(valkey, ClusterValkey):
            shards = await _shards(valkey)
        else:
            endpoint = await valkey._find()
            known = () if primary or endpoint.path is not None else await _replicas(valkey)
            shards = [(valkey, [_at(endpoint, host, port) for host, port in known])]
        nodes: list[Valkey] = []
        notes: list[str] = []
        replicas = 0
        for node, candidates in shards:
            chosen = None if primary else await _first_in_step(node, candidates, valkey.settings, notes)
            if chosen is not None:
                closing.push_async_callback(chosen.aclose)
                replicas += 1
            nodes.append(chosen or node)
        yield Lookout(address.display, tuple(nodes), replicas, tuple(dict.fromkeys(notes)))


async def _shards(cluster: ClusterValkey) -> list[tuple[Valkey, list[Endpoint]]]:
    """Every primary that serves slots, with where its replicas are."""
    replicas: dict[tuple[str, int], dict[tuple[str, int], None]] = {}
    with contextlib.suppress(redis.exceptions.ResponseError):
        for _, _, primary, *others in await cluster.call(("CLUSTER", "SLOTS"), repeat=True):
            known = replicas.setdefault(_place(primary), {})
            known.update(dict.fromkeys(_place(other) for other in others))
    shards: list[tuple[Valkey, list[Endpoint]]] = []
    for node, client in zip(cluster.topology.primaries, await cluster.nodes(), strict=True):
        places = replicas.get((node.endpoint.host, node.endpoint.port), {})
        shards.append((client, [_at(node.endpoint, host, port) for host, port in places if host]))
    return shards


def _place(reply: Reply) -> tuple[str, int]:
    return (reply[0] or b"").decode(errors="replace"), int(reply[1])


def _at(endpoint: Endpoint, host: str, port: int) -> Endpoint:
    return replace(endpoint, host=host, port=port, path=None, tls_host=None, must_be_primary=False, only_looks=True)


async def _replicas(valkey: Valkey) -> list[tuple[str, int]]:
    """The replicas that a primary says it has; none if it does not say."""
    with contextlib.suppress(redis.exceptions.ResponseError, TypeError, ValueError, IndexError):
        role = await valkey.call(("ROLE",), repeat=True)
        if role[0] == b"master":
            return [(each[0].decode(), int(each[1])) for each in role[2]]
        return []
    facts = await _replication(valkey)
    found: list[tuple[str, int]] = []
    for name, value in facts.items():
        if name.startswith("slave") and name[5:].isdigit():
            told = dict(part.partition("=")[::2] for part in value.split(","))
            if told.get("state") == "online" and told.get("port", "").isdigit():
                found.append((told.get("ip", ""), int(told["port"])))
    return found


async def _replication(valkey: Valkey) -> dict[str, str]:
    try:
        text = await valkey.call(("INFO", "replication"), repeat=True)
    except redis.exceptions.ResponseError:
        return {}
    lines = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
    return {name: value for name, _, value in (line.partition(":") for line in lines.splitlines())}


async def _first_in_step(
    primary: Valkey, candidates: Iterable[Endpoint], settings: ValkeySettings, notes: list[str]
) -> Valkey | None:
    """A connection to the first replica that answers, lets us in and follows this very primary."""
    history = ""
    for endpoint in candidates:
        quick = replace(settings, connect_timeout_seconds=min(_CONNECT_SECONDS, settings.connect_timeout_seconds))

        async def find(endpoint: Endpoint = endpoint) -> Endpoint:
            return endpoint

        replica = Valkey(find, pool=redis_pool(endpoint), settings=quick)
        try:
            await replica.open()
            facts = await _replication(replica)
            history = history or (await _replication(primary)).get("master_replid", "")
            if facts.get("role", "slave") != "slave" or facts.get("master_link_status", "up") != "up":
                notes.append(f"the replica {endpoint.display} is not in step; not used")
            elif history != facts.get("master_replid", history):
                # An address that means something else from here, behind a translated network for example.
                notes.append(f"what answers at {endpoint.display} is not the replica that the server means; not used")
            else:
                return replica
        except (Unavailable, redis.exceptions.RedisError) as error:
            notes.append(f"a replica cannot be used: {error}")
        await replica.aclose()
    return None

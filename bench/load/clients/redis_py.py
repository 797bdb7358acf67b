"""redis-py as its users have it: the pool, hiredis, default settings, but a pool that holds every task."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import redis
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.utils import HIREDIS_AVAILABLE

from bench.load.clients import address, script_text
from bench.load.loops import Call


class Client:
    def __init__(self, client: Redis | RedisCluster) -> None:
        self._client = client
        self.facts: dict[str, object] = {"library": f"redis-py {redis.__version__}", "hiredis": HIREDIS_AVAILABLE}

    def get(self, key: str) -> Call:
        return partial(self._client.get, key)

    def set(self, key: str, value: bytes) -> Call:
        return partial(self._client.set, key, value)

    def script(self, key: str) -> Call:
        return partial(self._client.register_script(script_text()), keys=[key], args=[1])

    def pipeline(self, keys: Sequence[str]) -> Call:
        async def call() -> list[bytes]:
            async with self._client.pipeline(transaction=False) as pipeline:
                for key in keys:
                    pipeline.get(key)
                return await pipeline.execute()

        return call


@asynccontextmanager
async def open_client(url: str, tasks: int, cluster: bool) -> AsyncIterator[Client]:
    host, port = address(url)
    # The default pool holds 100 connections and refuses the next caller, so it gets room for all tasks.
    most = max(100, tasks + 28)
    opened: Redis | RedisCluster = (
        RedisCluster(host=host, port=port, max_connections=most) if cluster
        else Redis(host=host, port=port, max_connections=most)
    )
    async with opened as client:
        yield Client(client)

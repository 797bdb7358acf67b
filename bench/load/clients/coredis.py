"""coredis with default settings and room for every task in its pool."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from coredis import Redis, RedisCluster

from bench.load.clients import address, script_text
from bench.load.loops import Call


class Client:
    def __init__(self, client: Redis | RedisCluster) -> None:
        self._client = client
        self.facts: dict[str, object] = {"library": f"coredis {version('coredis')}"}

    def get(self, key: str) -> Call:
        return partial(self._client.get, key)

    def set(self, key: str, value: bytes) -> Call:
        return partial(self._client.set, key, value)

    def script(self, key: str) -> Call:
        return partial(self._client.register_script(script_text()), keys=[key], args=[1])

    def pipeline(self, keys: Sequence[str]) -> Call:
        async def call() -> list[bytes]:
            async with self._client.pipeline(transaction=False) as pipeline:
                replies = [pipeline.get(key) for key in keys]
            return [await reply for reply in replies]

        return call


@asynccontextmanager
async def open_client(url: str, tasks: int, cluster: bool) -> AsyncIterator[Client]:
    host, port = address(url)
    opened = (
        RedisCluster(host=host, port=port) if cluster else Redis(host=host, port=port, max_connections=tasks + 28)
    )
    async with opened as client:
        yield Client(client)

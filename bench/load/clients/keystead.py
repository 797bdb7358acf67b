"""Our client, by its public door and with default settings."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from bench.load.clients import SCRIPT_FILE
from bench.load.loops import Call
from keystead.engine import Script, Valkey, connect


class Client:
    def __init__(self, client: Valkey) -> None:
        self._client = client
        self._script = Script("bench.load", SCRIPT_FILE)
        self.facts: dict[str, object] = {"library": f"keystead {version('keystead')}"}

    def get(self, key: str) -> Call:
        return partial(self._client.get, key)

    def set(self, key: str, value: bytes) -> Call:
        return partial(self._client.set, key, value)

    def script(self, key: str) -> Call:
        return partial(self._script, self._client, keys=[key], args=[1])

    def pipeline(self, keys: Sequence[str]) -> Call:
        async def call() -> list[bytes]:
            async with self._client.pipeline(transaction=False) as pipeline:
                for key in keys:
                    pipeline.get(key)
                return await pipeline.execute()

        return call


@asynccontextmanager
async def open_client(url: str, tasks: int, cluster: bool) -> AsyncIterator[Client]:
    client = await connect(url)
    try:
        yield Client(client)
    finally:
        await client.aclose()

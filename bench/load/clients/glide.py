"""valkey-glide with default settings; it shares one connection of its own per server, as ours does."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from glide import (
    Batch,
    GlideClient,
    GlideClientConfiguration,
    GlideClusterClient,
    GlideClusterClientConfiguration,
    NodeAddress,
    Script,
)

from bench.load.clients import address, script_text
from bench.load.loops import Call


class Client:
    def __init__(self, client: GlideClient | GlideClusterClient) -> None:
        self._client = client
        self._script = Script(script_text())
        self.facts: dict[str, object] = {"library": f"valkey-glide {version('valkey-glide')}"}

    def get(self, key: str) -> Call:
        return partial(self._client.get, key)

    def set(self, key: str, value: bytes) -> Call:
        return partial(self._client.set, key, value)

    def script(self, key: str) -> Call:
        return partial(self._client.invoke_script, self._script, keys=[key], args=["1"])

    def pipeline(self, keys: Sequence[str]) -> Call:
        async def call() -> list[bytes]:
            batch = Batch(is_atomic=False)
            for key in keys:
                batch.get(key)
            return await self._client.exec(batch, raise_on_error=True)

        return call


@asynccontextmanager
async def open_client(url: str, tasks: int, cluster: bool) -> AsyncIterator[Client]:
    nodes = [NodeAddress(*address(url))]
    client = (
        await GlideClusterClient.create(GlideClusterClientConfiguration(nodes)) if cluster
        else await GlideClient.create(GlideClientConfiguration(nodes))
    )
    try:
        yield Client(client)
    finally:
        await client.close()

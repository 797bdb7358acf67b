"""Wiring: builds every service once, from the ground up, and imports only what is asked for."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from keystead.clock import SystemClock
from keystead.settings import Settings

if TYPE_CHECKING:
    from keystead.edge import Guard, Tickets
    from keystead.engine import EmbeddedServer, Valkey
    from keystead.keys import Keyspace, Layout, Registry

# Rooms that declare keys; only their keys.py is imported to learn them.
ROOMS = ("edge", "jobs")
DEFAULT_DATA_DIRECTORY = ".keystead"


@dataclass(frozen=True, slots=True)
class Running:
    """The services of a running installation; ``server`` is the embedded one, if this process started it."""

    settings: Settings
    clock: SystemClock
    data_directory: Path
    valkey: "Valkey"
    registry: "Registry"
    guard: "Guard"
    tickets: "Tickets"
    server: "EmbeddedServer | None" = None


class App:
    """One installation, described by its settings. Making one connects to nothing."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def keyspaces(self) -> "tuple[Keyspace, ...]":
        """Every room's declarations."""
        from keystead.keys import Keyspace

        found: list[Keyspace] = []
        for room in ROOMS:
            module = import_module(f"keystead.{room}.keys")
            found += [value for value in vars(module).values() if isinstance(value, Keyspace) and value not in found]
        return tuple(found)

    def registry(self, layout: "Layout | None" = None) -> "Registry":
        """Every declared key, resolvable. Without ``layout`` the documented names."""
        from keystead.keys import Layout, Registry

        return Registry(self.keyspaces(), layout=layout or Layout.PLAIN)

    @property
    def data_directory(self) -> Path:
        """Where this installation keeps its files: the embedded server's directory, or ``.keystead`` beside us."""
        from keystead.engine.address import Kind, parse

        address = parse(self.settings.valkey.url)
        if address.kind is Kind.EMBEDDED and address.path is not None:
            return address.path
        return Path(DEFAULT_DATA_DIRECTORY)

    def tickets(self, clock: SystemClock | None = None) -> "Tickets":
        """Tickets under the secret of the data directory; makes the secret on first use. Needs no server."""
        from keystead.edge import Tickets, load_secret

        return Tickets(load_secret(self.data_directory), clock or SystemClock())

    @asynccontextmanager
    async def running(self, *, start_server: bool = False) -> AsyncIterator[Running]:
        """Connect and build the services; everything is closed again at the end.

        ``start_server`` also starts the embedded server, if the settings name one, and stops it at the end. Without
        it a running one is attached to.
        """
        from keystead.edge import LOOPBACK, Guard, Networks
        from keystead.engine import connect, sync_clock

        settings = self.settings
        uncounted = Networks.parse(settings.http.uncounted_networks, setting="http.uncounted_networks")
        async with AsyncExitStack() as stack:
            url, server = settings.valkey.url, None
            if start_server and url.startswith("embedded://"):
                from keystead.engine import EmbeddedServer

                server = await stack.enter_async_context(
                    EmbeddedServer.start(self.data_directory, settings.embedded)
                )
                url = server.url
            valkey = await connect(url, settings=settings.valkey)
            stack.push_async_callback(valkey.aclose)
            clock = SystemClock()
            await sync_clock(valkey, clock)
            yield Running(
                settings=settings,
                clock=clock,
                data_directory=self.data_directory,
                valkey=valkey,
                registry=self.registry(valkey.layout),
                guard=Guard(valkey, uncounted=Networks(LOOPBACK.networks + uncounted.networks)),
                tickets=self.tickets(clock),
                server=server,
            )

"""Wiring: builds every service once, from the ground up, and imports only what is asked for."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from keystead.clock import SystemClock
from keystead.settings import Settings

if TYPE_CHECKING:
    from keystead.edge import Guard, Tickets
    from keystead.engine import EmbeddedServer, Valkey
    from keystead.jobs import JobBook, RecurringList
    from keystead.keys import Keyspace, Layout, Registry
    from keystead.members import Activity, Users
    from keystead.stats import Catalogue, Charts, Rotation
    from keystead.store import Database, Files, SqlOutbox, Uploads
    from keystead.switchboard import Crewed, Switchboard

# Rooms that declare keys; only their keys.py and stats.py are imported to learn them.
ROOMS = (
    "edge", "jobs", "store", "stats", "messaging.sending", "messaging.sandbox", "members", "messaging.push",
    "messaging.sms", "messaging.email", "messaging.touches", "messaging.links", "identity", "content", "reminders",
)
COUNTING_ROOMS = ROOMS[ROOMS.index("members"):]
DATABASE_FILE = "keystead.sqlite"
FILES_DIRECTORY = "files"
DEFAULT_DATA_DIRECTORY = ".keystead"


@dataclass(frozen=True, slots=True)
class Running:
    """The services of a running installation; ``server`` is the embedded one, if this process started it.

    ``book`` holds the jobs of the rooms and ``calendar`` says when they run; someone must run them. ``crewed`` is there
    in a process that works: who works in it all the time.
    """

    settings: Settings
    clock: SystemClock
    data_directory: Path
    valkey: "Valkey"
    registry: "Registry"
    guard: "Guard"
    tickets: "Tickets"
    database: "Database"
    outbox: "SqlOutbox"
    files: "Files"
    uploads: "Uploads"
    users: "Users"
    activity: "Activity"
    charts: "Charts"
    rotation: "Rotation"
    book: "JobBook"
    calendar: "RecurringList"
    switchboard: "Switchboard"
    crewed: "Crewed | None" = None
    server: "EmbeddedServer | None" = None

    @property
    def catalogue(self) -> "Catalogue":
        """Everything that is counted here."""
        return self.charts.catalogue


class App:
    """One installation, described by its settings. Making one connects to nothing.

    ``program`` are modules of the program that uses it: their keys are declared here too, and what they count is
    rotated and charted with the rest.
    """

    def __init__(self, settings: Settings, program: Sequence[ModuleType] = ()) -> None:
        self.settings = settings
        self.program = tuple(program)

    def keyspaces(self) -> "tuple[Keyspace, ...]":
        """The declarations of every room, and of the program."""
        from keystead.keys import Keyspace

        found: dict[int, Keyspace] = {}
        for module in (*(import_module(f"keystead.{room}.keys") for room in ROOMS), *self.program):
            found |= {id(value): value for value in vars(module).values() if isinstance(value, Keyspace)}
        for room in COUNTING_ROOMS:  # what they count is declared in keyspaces that are found already
            import_module(f"keystead.{room}.stats")
        return tuple(found.values())

    def catalogue(self) -> "Catalogue":
        """Everything that the rooms and the program count."""
        from keystead.stats import Catalogue, keys

        rooms = (import_module(f"keystead.{room}.{part}") for room in COUNTING_ROOMS for part in ("keys", "stats"))
        return Catalogue.of(keys, *rooms, *self.program)

    def registry(self, layout: "Layout | None" = None) -> "Registry":
        """Every declared key, resolvable. Without ``layout`` the documented names."""
        from keystead.keys import Layout, Registry

        return Registry(self.keyspaces(), layout=layout or Layout.PLAIN)

    @cached_property
    def data_directory(self) -> Path:
        """Where this installation keeps its files: the embedded server's directory, or ``.keystead`` beside us."""
        from keystead.engine.address import Kind, parse

        address = parse(self.settings.valkey.url)
        if address.kind is Kind.EMBEDDED and address.path is not None:
            return address.path
        return Path(DEFAULT_DATA_DIRECTORY)

    @property
    def database_url(self) -> str:
        """Where the tables are: as set, or a SQLite file in the data directory."""
        return self.settings.store.url or f"sqlite:///{(self.data_directory / DATABASE_FILE).absolute()}"

    @property
    def files_url(self) -> str:
        """Where object files are: as set, or a directory in the data directory."""
        return self.settings.store.files_url or (self.data_directory / FILES_DIRECTORY).absolute().as_uri()

    def tickets(self, clock: SystemClock | None = None) -> "Tickets":
        """Tickets under the secret of the data directory; makes the secret on first use. Needs no server."""
        from keystead.edge import Tickets, load_secret

        return Tickets(load_secret(self.data_directory), clock or SystemClock())

    @asynccontextmanager
    async def running(
        self, *, start_server: bool = False, works: bool = False, public_url: str = ""
    ) -> AsyncIterator[Running]:
        """Connect and build the services, tables brought up to date; everything is closed again at the end.

        ``start_server`` also starts the embedded server, if the settings name one, and stops it at the end. Without
        it a running one is attached to. ``works``: this process will run the jobs of the rooms and their crew.
        ``public_url``: where the HTTP server is reached, unless the settings say.
        """
        from keystead.edge import LOOPBACK, Guard, Networks, load_secret
        from keystead.engine import connect, sync_clock
        from keystead.jobs import ROOMS_QUEUE, JobBook, RecurringList
        from keystead.keys import sealing
        from keystead.members import Activity, Attribution, Users
        from keystead.members import jobs as members_jobs
        from keystead.messaging.sending import agree_on_lanes
        from keystead.stats import Charts, FamilyTables, Rotation
        from keystead.stats import jobs as stats_jobs
        from keystead.store import Database, Files, SqlOutbox, Sweep, Uploads, open_files
        from keystead.store import jobs as store_jobs
        from keystead.switchboard import Ground, Switchboard

        settings, catalogue, clock, book = self.settings, self.catalogue(), SystemClock(), JobBook()
        uncounted = Networks.parse(settings.http.uncounted_networks, setting="http.uncounted_networks")
        async with AsyncExitStack() as stack:
            stack.enter_context(sealing(settings.messaging.payload_keys))
            url, server = settings.valkey.url, None
            if start_server and url.startswith("embedded://"):
                from keystead.engine import EmbeddedServer

                server = await stack.enter_async_context(
                    EmbeddedServer.start(self.data_directory, settings.embedded)
                )
                url = server.url
            valkey = await connect(url, settings=settings.valkey, lanes=settings.messaging.lanes)
            stack.push_async_callback(valkey.aclose)
            await sync_clock(valkey, clock)
            await agree_on_lanes(valkey)
            tickets = self.tickets(clock)
            database = await stack.enter_async_context(Database.open(self.database_url))
            await database.migrate()
            tables = FamilyTables(catalogue)
            await tables.ensure(database)
            outbox = SqlOutbox(database, valkey, book, queue=ROOMS_QUEUE, clock=clock)
            objects = await stack.enter_async_context(open_files(self.files_url))
            files = Files(valkey, database, objects, clock)
            uploads = Uploads(valkey, database, files, outbox, book, tickets, clock)
            rotation = Rotation(valkey, database, catalogue, clock, tables=tables)
            users = Users(valkey, database, outbox, clock)
            store_jobs.register(book, Sweep(valkey, database, objects, clock), uploads)
            stats_jobs.register(book, rotation, valkey, clock)
            members_jobs.register(book, valkey, Attribution(database, outbox, clock), clock)
            calendar = [*store_jobs.recurring(), *stats_jobs.recurring(catalogue), *members_jobs.recurring()]
            reached_at = settings.messaging.public_url or public_url or f"http://127.0.0.1:{settings.http.port}"
            switchboard = Switchboard(Ground(
                settings, valkey, database, outbox, clock, tickets, load_secret(self.data_directory),
                reached_at.rstrip("/"),
            ))
            crewed = await stack.enter_async_context(switchboard.working(book)) if works else None
            if crewed is not None:
                calendar += crewed.recurring
            yield Running(
                settings=settings,
                clock=clock,
                data_directory=self.data_directory,
                valkey=valkey,
                registry=self.registry(valkey.layout),
                guard=Guard(valkey, uncounted=Networks(LOOPBACK.networks + uncounted.networks)),
                tickets=tickets,
                database=database,
                outbox=outbox,
                files=files,
                uploads=uploads,
                users=users,
                activity=Activity(valkey, users, clock),
                charts=await stack.enter_async_context(Charts.open(valkey, database, catalogue, clock)),
                rotation=rotation,
                book=book,
                calendar=RecurringList(calendar, queue=ROOMS_QUEUE),
                switchboard=switchboard,
                crewed=crewed,
                server=server,
            )

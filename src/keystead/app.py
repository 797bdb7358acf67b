"""Wiring: builds every service once, from the ground up, and imports only what is asked for."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from keystead.clock import Clock, SystemClock, real
from keystead.errors import Invalid
from keystead.installation import check_mark, write_mark
from keystead.settings import Settings

if TYPE_CHECKING:
    from keystead.alerting import Alerting
    from keystead.backup import Backup, Installation
    from keystead.edge import Endings, Guard, Tickets
    from keystead.engine import EmbeddedServer, Valkey
    from keystead.jobs import JobBook, ProgramJobs, Recurring, RecurringList
    from keystead.keys import Keyspace, Layout, Registry
    from keystead.members import Activity, Users
    from keystead.messaging.sandbox import Sandbox
    from keystead.operations import AdminKeys, Alerts
    from keystead.stats import Catalogue, Charts, FamilyTables, Rotation
    from keystead.store import Database, Files, SqlOutbox, Uploads
    from keystead.switchboard import Crewed, Heard, Switchboard

# Rooms that declare keys; only their keys.py and stats.py are imported to learn them.
ROOMS = (
    "edge", "jobs", "store", "stats", "operations", "backup", "messaging.sending", "messaging.sandbox", "members",
    "messaging.push", "messaging.sms", "messaging.email", "messaging.touches", "messaging.links", "identity", "content",
    "reminders",
)
COUNTING_ROOMS = ROOMS[ROOMS.index("members"):]
DATABASE_FILE = "keystead.sqlite"
FILES_DIRECTORY = "files"
DEFAULT_DATA_DIRECTORY = ".keystead"
LEAST_SECRET_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class Running:
    """The services of a running installation; ``server`` is the embedded one, if this process started it.

    ``book`` holds the jobs of the rooms and ``calendar`` says when they run; someone must run them, and those of the
    ``program``. ``crewed`` is there in a process that works: who works in it all the time. ``heard`` is there in one
    that answers HTTP: how calls of providers are judged.
    """

    settings: Settings
    clock: SystemClock
    data_directory: Path
    valkey: "Valkey"
    registry: "Registry"
    guard: "Guard"
    tickets: "Tickets"
    endings: "Endings"
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
    program: "ProgramJobs"
    alerting: "Alerting"
    admin_keys: "AdminKeys"
    crewed: "Crewed | None" = None
    heard: "Heard | None" = None
    server: "EmbeddedServer | None" = None

    @property
    def catalogue(self) -> "Catalogue":
        """Everything that is counted here."""
        return self.charts.catalogue

    @property
    def alerts(self) -> "Alerts":
        """What somebody should look at."""
        return self.alerting.alerts

    @property
    def sandbox(self) -> "Sandbox | None":
        """The sandbox, in a process that answers HTTP, if some channel delivers through it."""
        return self.heard.sandbox if self.heard is not None else None


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
        """Where this installation keeps its files: as set, the embedded server's directory, or ``.keystead`` here."""
        from keystead.engine.address import Kind, parse

        if self.settings.installation.directory and not self._is_embedded:
            return Path(self.settings.installation.directory)
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

    @cached_property
    def secret(self) -> bytes:
        """What signs log-ins, tokens and links: as set, or the one of the data directory, made on first use."""
        from keystead.edge import load_secret

        given = self.settings.installation.secret
        if not given:
            return load_secret(self.data_directory)
        if len(given) < LEAST_SECRET_CHARACTERS:
            raise Invalid(f"installation.secret has {len(given)} characters; at least {LEAST_SECRET_CHARACTERS} are "
                          "needed, such as those that `openssl rand -hex 32` prints")
        return sha256(b"keystead installation\0" + given.encode()).digest()

    def clock(self) -> SystemClock:
        """The clock of this installation, to be set by its server; a demonstration's may run faster."""
        from keystead.pace import read_pace

        return SystemClock(pace=read_pace(self.data_directory)) if self._is_embedded else SystemClock()

    @property
    def _is_embedded(self) -> bool:
        return self.settings.valkey.url.startswith("embedded://")

    @property
    def _needs_directory(self) -> bool:
        """Something that must last lies in the data directory: Valkey, the secret or the database."""
        return self._is_embedded or not self.settings.installation.secret or not self.settings.store.url

    def installation(self) -> "Installation":
        """What a backup is taken of, or restored to. Connects to nothing."""
        from keystead.backup import Installation
        from keystead.edge.tickets import SECRET_FILE
        from keystead.installation import MARK_FILE
        from keystead.pace import PACE_FILE

        return Installation(
            valkey=self.settings.valkey, lanes=self.settings.messaging.lanes, data_directory=self.data_directory,
            database_url=self.database_url, files_url=self.files_url, tables=self._family_tables,
            state_files=(SECRET_FILE, PACE_FILE, MARK_FILE), has_own_secret=bool(self.settings.installation.secret),
        )

    def backup(self) -> "Backup":
        """Takes backups of this installation, as the settings say."""
        from keystead.backup import Backup, read_passphrase

        settings = self.settings.backup
        passphrase = read_passphrase(Path(settings.passphrase_file)) if settings.passphrase_file else None
        return Backup(self.installation(), passphrase=passphrase, hold_seconds=settings.hold_seconds)

    def _daily_backup(self, book: "JobBook", alerts: "Alerts") -> "tuple[Recurring, ...]":
        from keystead.backup import jobs as backup_jobs

        backup_jobs.register(book, self.backup(), alerts, self.settings.backup)
        return backup_jobs.recurring(self.settings.backup)

    def _family_tables(self) -> "FamilyTables":
        """Tables of statistics; the tables of all rooms are known afterwards too."""
        from pkgutil import iter_modules

        from keystead.stats import FamilyTables

        for room in (import_module(f"keystead.{name}") for name in ROOMS):
            for found in iter_modules(room.__path__, f"{room.__name__}."):
                if found.name.endswith("tables"):
                    import_module(found.name)
        return FamilyTables(self.catalogue())

    def tickets(self, clock: Clock | None = None, endings: "Endings | None" = None) -> "Tickets":
        """Tickets under the secret of the data directory; makes the secret on first use. Needs no server.

        They last in real time, however fast the installation's clock runs.
        """
        from keystead.edge import Tickets

        return Tickets(self.secret, real(clock or SystemClock()), endings)

    @asynccontextmanager
    async def running(
        self, *, start_server: bool = False, works: bool = False, answers: bool | None = None, public_url: str = "",
        on_step: Callable[[str], None] = lambda step: None,
    ) -> AsyncIterator[Running]:
        """Connect and build the services, tables brought up to date; everything is closed again at the end.

        ``start_server`` also starts the embedded server, if the settings name one, and stops it at the end. Without
        it a running one is attached to. ``works``: this process will run the jobs of the rooms and their crew.
        ``answers``: it will answer HTTP at ``public_url``, and so hear providers; as ``works``, if left out. Without
        it ``public_url`` is where another process does, unless the settings say. ``on_step`` is told what is begun.
        """
        from keystead import alerting
        from keystead.backup import require_whole
        from keystead.edge import LOOPBACK, TICKET_MOST_SECONDS, Endings, Guard, Networks
        from keystead.engine import connect, sync_clock
        from keystead.jobs import ROOMS_QUEUE, JobBook, ProgramJobs, RecurringList
        from keystead.keys import sealing
        from keystead.members import Activity, Attribution, Users
        from keystead.members import jobs as members_jobs
        from keystead.messaging.sending import agree_on_lanes
        from keystead.operations import AdminKeys
        from keystead.pace import keeping
        from keystead.stats import Charts, FamilyTables, Rotation
        from keystead.stats import jobs as stats_jobs
        from keystead.store import Database, Files, SqlOutbox, Sweep, Uploads, open_files
        from keystead.store import jobs as store_jobs
        from keystead.switchboard import Ground, Switchboard
        from keystead.tracing import exporting

        check_mark(self.data_directory)
        settings, catalogue, clock, book = self.settings, self.catalogue(), self.clock(), JobBook()
        if settings.clock.speed != 1.0 and not self._is_embedded:
            raise Invalid("clock.speed makes the days of a demonstration pass quickly; with a server of your own, time "
                          "stays what it is: leave it at 1")
        program, answers_here = ProgramJobs.of(self.program), works if answers is None else answers
        uncounted = Networks.parse(settings.http.uncounted_networks, setting="http.uncounted_networks")
        async with AsyncExitStack() as stack:
            stack.enter_context(sealing(settings.messaging.payload_keys))
            stack.enter_context(exporting(
                settings.telemetry.otlp_url, service_name=settings.telemetry.service_name,
                share=settings.telemetry.trace_share,
            ))
            url, server = settings.valkey.url, None
            if start_server and url.startswith("embedded://"):
                from keystead.engine import EmbeddedServer

                on_step("Starting Valkey")
                server = await stack.enter_async_context(
                    EmbeddedServer.start(self.data_directory, settings.embedded)
                )
                url = server.url
                clock.pace = await stack.enter_async_context(keeping(self.data_directory, settings.clock.speed))
            on_step("Connecting to the server")
            valkey = await connect(url, settings=settings.valkey, lanes=settings.messaging.lanes)
            stack.push_async_callback(valkey.aclose)
            await require_whole(valkey)
            await sync_clock(valkey, clock)
            await agree_on_lanes(valkey)
            longest_seconds = max(settings.http.session_seconds, TICKET_MOST_SECONDS)
            endings = await Endings.open(valkey, real(clock), keeps_seconds=longest_seconds)
            tickets = self.tickets(clock, endings)
            database = await stack.enter_async_context(Database.open(self.database_url))
            on_step("Bringing tables up to date")
            await database.migrate()
            try:
                write_mark(self.data_directory)
            except Invalid:
                if self._needs_directory:
                    raise
            tables = FamilyTables(catalogue)
            await tables.ensure(database)
            outbox = SqlOutbox(database, valkey, book, queue=ROOMS_QUEUE, clock=clock)
            objects = await stack.enter_async_context(open_files(self.files_url))
            files = Files(valkey, database, objects, clock)
            uploads = Uploads(valkey, database, files, outbox, book, tickets, clock)
            rotation = Rotation(valkey, database, catalogue, clock, tables=tables)
            users = Users(valkey, database, outbox, clock, endings)
            store_jobs.register(book, Sweep(valkey, database, objects, clock), uploads)
            stats_jobs.register(book, rotation, valkey, clock)
            members_jobs.register(book, valkey, Attribution(database, outbox, clock), clock)
            members_jobs.register_leaving(book, users)
            calendar = [*store_jobs.recurring(), *stats_jobs.recurring(catalogue), *members_jobs.recurring()]
            reached_at = settings.messaging.public_url or public_url or f"http://127.0.0.1:{settings.http.port}"
            switchboard = Switchboard(Ground(
                settings, valkey, database, outbox, clock, tickets, self.secret,
                reached_at.rstrip("/"),
            ))
            on_step("Opening the rooms")
            here = (public_url or f"http://127.0.0.1:{settings.http.port}").rstrip("/")
            heard = await stack.enter_async_context(switchboard.hearing(here)) if answers_here else None
            crewed = await stack.enter_async_context(switchboard.working(book, heard)) if works else None
            if crewed is not None:
                calendar += crewed.recurring
                alerting.register(book, switchboard.email)
            registry = self.registry(valkey.layout)
            watched = alerting.alerting(settings, valkey, clock, registry, catalogue, database)
            if works and settings.backup.directory:
                calendar += self._daily_backup(book, watched.alerts)
            yield Running(
                settings=settings,
                clock=clock,
                data_directory=self.data_directory,
                valkey=valkey,
                registry=registry,
                guard=Guard(valkey, uncounted=Networks(LOOPBACK.networks + uncounted.networks)),
                tickets=tickets,
                endings=endings,
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
                program=program,
                alerting=watched,
                admin_keys=await AdminKeys.open(database, real(clock)),
                crewed=crewed,
                heard=heard,
                server=server,
            )

"""Everything that files need, and a look at what is left of them."""

import asyncio

from sqlalchemy import func, select

from keystead.engine import Valkey
from keystead.store import Database
from keystead.store.files import ObjectFiles
from keystead.store.files_kept import Files, SavedFile
from keystead.store.files_tables import FILES, PURGES
from keystead.store.keys import FILES_PURGATORY, FILES_PURGE_FAILURES
from keystead.store.models import PurgeEntry
from keystead.store.sweep import Sweep, SweepReport
from keystead.testing.clock import MovableClock

from .test_files import listed, pieces

DAY = 86_400


class Place:
    """Files, a sweep, and a clock that is moved by hand."""

    def __init__(self, valkey: Valkey, database: Database, objects: ObjectFiles, clock: MovableClock) -> None:
        self.valkey, self.database, self.objects, self.clock = valkey, database, objects, clock
        self.files = Files(valkey, database, objects, clock)
        self.sweep = Sweep(valkey, database, objects, clock)

    async def save(self, raw: bytes = b"some bytes", **more: object) -> SavedFile:
        options: dict[str, object] = {"under": "some/place", "most_bytes": 1000, **more}
        return await self.files.save(pieces(raw), **options)  # type: ignore[arg-type]

    async def rows(self) -> list[str]:
        async with self.database.reading() as sql:
            return sorted((await sql.scalars(select(FILES.c.key))).all())

    async def forbidden(self) -> int:
        async with self.database.reading() as sql:
            return int(await sql.scalar(select(func.count()).select_from(PURGES)) or 0)

    async def listed(self) -> list[PurgeEntry]:
        return [entry for entry, _ in await FILES_PURGATORY.at().range(self.valkey)]

    async def sweep_takes(self, key: str) -> "asyncio.Task[SweepReport]":
        """Make the entry of the key due and start a sweep; returns when the sweep has it in its hands."""
        entry = PurgeEntry(bucket=self.objects.bucket, key=key)
        await FILES_PURGATORY.at().add(self.valkey, entry, 1.0)
        sweeping = asyncio.create_task(self.sweep.sweep())
        async with asyncio.timeout(30):
            while await FILES_PURGATORY.at().score(self.valkey, entry) == 1.0:
                await asyncio.sleep(0.01)
        return sweeping

    async def sweep_everything(self) -> None:
        """Let a week pass, with sweeps, until nothing is left to be done."""
        for seconds in (0, 700, DAY, 8 * DAY):
            self.clock.advance(seconds)
            await self.sweep.run()

    async def check(self) -> list[str]:
        """Every object has a row and every row an object; nothing else is left. Returns the keys."""
        keys = await listed(self.objects)
        assert keys == await self.rows()
        assert await self.listed() == []
        assert await FILES_PURGE_FAILURES.at().all(self.valkey) == {}
        assert await self.forbidden() == 0
        return keys

"""The sweep: purges objects whose time has come, and looks once more after those that were purged a week ago."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import GatewayError, KeysteadError, Refused, Unavailable
from keystead.keys import Undecodable
from keystead.patterns import LockHeld
from keystead.store.database import Database
from keystead.store.files import ObjectFiles, may_be_given
from keystead.store.files_tables import FILES, PURGES
from keystead.store.keys import FILES_PURGATORY, FILES_SWEEP
from keystead.store.models import PurgeEntry
from keystead.store.purgatory import Purge, Verdict, put_off, put_on_new, strike_off, take_due
from keystead.telemetry import counts, logger

counts.describe("files_purged", "objects that the sweep purged, by whether that was expected")
counts.describe("files_purge_failures", "purges that failed, by reason")
counts.describe("files_stray", "objects without a row that were found by walking over all objects")
counts.describe("files_purge_stuck", "purges that failed five times or more; someone should look")

STEP_ITEMS: Final = 5
ALERT_FAILURES: Final = 5
MOST_SECONDS: Final = 240.0  # the next run comes after five minutes
# For so long a purged key stays forbidden. Nobody saves for so long; see files_kept.MOST_SAVING_SECONDS.
FORBIDDEN_SECONDS: Final = 7 * 86_400.0
SECOND_LOOK_ITEMS: Final = 100
STRAY_ITEMS: Final = 500
STRAY_SECONDS: Final = 600.0
MOST_STRAYS: Final = 10_000  # of one walk, since they are held in memory
FEW_STRAYS: Final = 10

_log = logger("store")


@dataclass(slots=True)
class SweepReport:
    """What one run did. ``busy``: another one was under way, so this one did nothing."""

    purged: int = 0
    kept: int = 0
    failed: int = 0
    looked_again: int = 0
    busy: bool = False


class Sweep:
    """Sweeps. Any number may be started anywhere; one works at a time."""

    def __init__(
        self, valkey: Valkey, database: Database, objects: ObjectFiles, clock: Clock, *,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._valkey = valkey
        self._database = database
        self._objects = objects
        self._clock = clock
        self._stopping = stopping
        self._purge = Purge(database, objects)

    async def run(self) -> SweepReport:
        """Purge what is due, five entries at a time, for four minutes at most; the rest is for the next run.

        An entry that fails is put off and does not hold up the others. ``Unavailable`` if Valkey is away: what was
        under way is due again after five minutes.
        """
        try:
            async with FILES_SWEEP.at().hold(self._valkey, self._clock):
                return await self.sweep()
        except LockHeld:
            return SweepReport(busy=True)

    async def sweep(self) -> SweepReport:
        """``run`` without the lock. Two at once do no harm, only the same work twice."""
        report, ends_at = SweepReport(), time.monotonic() + MOST_SECONDS
        while not self._stopping() and time.monotonic() < ends_at:
            entries = await take_due(self._valkey, now=self._clock.now(), most=STEP_ITEMS)
            if not entries:
                await self._look_again(report, ends_at)
                break
            for raw_entry in entries:
                await self._settle(raw_entry, report)
        return report

    async def list_strays(self) -> int:
        """Walk over all objects and list those that have no row, to be swept in ten minutes; says how many.

        For what no order of steps can cover: a list that was lost with its server. A listed object whose row comes
        after all is kept, and one whose name ``Files`` would not give is somebody else's. Where more objects are
        without a row than with one, these are not the files of this database (it is a new one, or the address is that
        of another installation): nothing is listed, and an error is logged. Costs a walk, and a query for each five
        hundred objects.
        """
        strays, known, some = list[str](), 0, list[str]()
        async for key in self._objects.keys():
            if not may_be_given(key):
                continue
            some.append(key)
            if len(some) == STRAY_ITEMS:
                without = await self._without_row(some)
                strays, known, some = strays + without, known + len(some) - len(without), []
                if len(strays) >= MOST_STRAYS:
                    break
        without = await self._without_row(some)
        strays, known = strays + without, known + len(some) - len(without)
        if len(strays) > max(known, FEW_STRAYS):
            _log.error("most objects have no row here, so none of them is purged; is this their database?",
                       without_row=len(strays), with_row=known)
            return 0
        found = 0
        for first in range(0, len(strays), STRAY_ITEMS):
            entries = [PurgeEntry(bucket=self._objects.bucket, key=key) for key in strays[first : first + STRAY_ITEMS]]
            found += await put_on_new(self._valkey, entries, self._clock.now() + STRAY_SECONDS)
        if found:
            counts.add("files_stray", found)
            _log.warning("objects without a row were found and listed", objects=found)
        return found

    async def _without_row(self, keys: list[str]) -> list[str]:
        async with self._database.reading() as sql:
            known = set((await sql.scalars(select(FILES.c.key).where(FILES.c.key.in_(keys)))).all())
        return [key for key in keys if key not in known]

    async def _settle(self, raw_entry: bytes, report: SweepReport) -> None:
        shown = raw_entry.decode(errors="backslashreplace")
        try:
            entry = FILES_PURGATORY.codec.decode(raw_entry)
            verdict = await self._purge.settle(entry, now=self._clock.now())
        except (GatewayError, Refused, SQLAlchemyError, Unavailable, Undecodable) as error:
            report.failed += 1
            await self._put_off(raw_entry, shown, error)
            return
        await strike_off(self._valkey, raw_entry)
        if verdict is Verdict.KEPT:
            report.kept += 1
            _log.info("a listed file was saved after all", entry=shown)
            return
        report.purged += 1
        counts.add("files_purged", expected="yes" if entry.expected else "no")
        if not entry.expected:
            _log.warning("purged a file that was announced and never saved", entry=shown)

    async def _put_off(self, raw_entry: bytes, shown: str, error: Exception) -> None:
        reason = "another row refers to the file" if isinstance(error, IntegrityError) else \
            str(error) if isinstance(error, KeysteadError) else type(error).__name__
        counts.add("files_purge_failures", reason=type(error).__name__)
        state = await put_off(self._valkey, raw_entry, now=self._clock.now())
        facts = {"entry": shown, "reason": reason, "failures": state.failures, "again_in_seconds": state.seconds}
        if state.failures >= ALERT_FAILURES:
            counts.add("files_purge_stuck")
            _log.error("a file cannot be purged", **facts)
        else:
            _log.warning("a file could not be purged yet", **facts)

    async def _look_again(self, report: SweepReport, ends_at: float) -> None:
        """Delete the objects of keys that were forbidden a week ago once more, then forget these keys.

        A process that stood still for longer than its announcement lasts, and died right after it made its object
        appear, is noticed here.
        """
        before = self._clock.now() - FORBIDDEN_SECONDS
        choosing = select(PURGES.c.key).where(PURGES.c.purged_at < before).order_by(PURGES.c.purged_at)
        while not self._stopping() and time.monotonic() < ends_at:
            async with self._database.reading() as sql:
                keys = (await sql.scalars(choosing.limit(SECOND_LOOK_ITEMS))).all()
            if not keys:
                return
            try:
                for key in keys:
                    await self._objects.delete(key)
            except (GatewayError, Unavailable) as error:
                counts.add("files_purge_failures", reason=type(error).__name__)
                _log.warning("purged files could not be looked after", reason=str(error))
                return
            async with self._database.transaction() as sql:
                await sql.execute(delete(PURGES).where(PURGES.c.key.in_(keys), PURGES.c.purged_at < before))
            report.looked_again += len(keys)

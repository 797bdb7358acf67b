"""Files while the processes that save and sweep them are killed: how many are lost, and how many are left over."""

import contextlib
import os
import random
from pathlib import Path

import pytest

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.errors import KeysteadError
from keystead.store import Database
from keystead.store.files import open_files
from keystead.store.files_kept import Files
from keystead.store.sweep import Sweep
from keystead.testing.clock import MovableClock
from keystead.testing.server import LocalServer

from ..patterns.crash import Died
from ..store.file_place import Place
from ..store.mortal import Fate, MortalDatabase, MortalFiles, MortalValkey
from ..store.test_files import listed, pieces
from .files_chaos import Chaos

# A run for the figure in docs/files.md takes KEYSTEAD_FILES_SAVES=20000.
SAVES = int(os.environ.get("KEYSTEAD_FILES_SAVES", "400"))
GOAL = 0.0001


async def test_processes_that_are_killed_lose_no_file_and_leave_none(
    valkey: Valkey, valkey_server: LocalServer, database_url: str, tmp_path: Path
) -> None:
    kills = 20 if database_url.startswith("sqlite") else 8
    report = await Chaos(tmp_path, valkey_server, database_url, files=150, kills=kills, seed=5).run()
    assert report.errors == [], report.lines()
    assert report.kills.total() == kills and report.begun >= 150 and report.said_saved > 0, report.lines()
    assert report.purged > 0, report.lines()


async def test_error_rate_of_savers_that_die_anywhere_is_below_the_goal(
    valkey: Valkey, database: Database, moving_clock: MovableClock, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each save dies at a place of its own, while sweeps of which some die too regard everything as due."""
    caplog.set_level("CRITICAL", logger="keystead.store")
    rng, saved = random.Random(7), set()
    async with open_files((tmp_path / "objects").as_uri()) as objects:
        place = Place(valkey, database, objects, moving_clock)
        for number in range(SAVES):
            fate = Fate(rng.randrange(1, 25))
            mortal = (MortalValkey(valkey, fate), MortalDatabase(database, fate), MortalFiles(objects, fate))
            with contextlib.suppress(Died, KeysteadError):
                file = await Files(*mortal, moving_clock).save(  # type: ignore[arg-type]
                    pieces(rng.randbytes(30), 10), under="f", most_bytes=100
                )
                saved.add(file.key)
            if number % 5 == 0:
                fate = Fate(rng.randrange(1, 60))
                mortal = (MortalValkey(valkey, fate), MortalDatabase(database, fate), MortalFiles(objects, fate))
                ahead = SystemClock(moving_clock.now() - SystemClock().now() + 700)
                with contextlib.suppress(Died):
                    await Sweep(*mortal, ahead).sweep()  # type: ignore[arg-type]
        await place.sweep_everything()
        rows, found = set(await place.rows()), set(await listed(objects))
        errors = (saved - rows) | (rows ^ found) | {entry.key for entry in await place.listed()}
    assert saved and len(saved) < SAVES, "some die and some do not"
    assert len(errors) / SAVES < GOAL, (len(errors), sorted(errors)[:5])

"""Daily counts while those who count and those who rotate are killed without warning."""

import asyncio
import random
from pathlib import Path

from keystead.engine import Valkey
from keystead.testing.server import LocalServer

from .daily_worker import DAYS, DONE, EVENTS, FIRST_DAY, opened, store
from .programs import programs


async def test_killed_counters_and_rotators_lose_and_double_nothing(
    valkey: Valkey, valkey_server: LocalServer, tmp_path: Path
) -> None:
    """Five counters and five rotators are killed; then every change that happened is counted once, in SQL or here."""
    rng, path = random.Random(4), str(tmp_path / "days.sqlite")
    sql = opened(path)
    async with programs("tests.faults.daily_worker") as start:
        running = {role: await start(role, valkey_server.url, path) for role in ("count", "rotate")}
        for _ in range(4):
            for role, program in running.items():
                await program.hears("ready")
                await asyncio.sleep(rng.uniform(0.02, 0.2))
                await program.kill()
                running[role] = await start(role, valkey_server.url, path)
        rows = changed = 0
        async with asyncio.timeout(60):  # enough to be worth counting, however slow the machine
            while changed <= 50 or rows < 2:
                await asyncio.sleep(0.02)
                changed = await DONE.at().get(valkey) or 0
                [rows] = sql.execute("SELECT count(*) FROM days").fetchone()
        for program in running.values():
            await program.kill()

    state = await EVENTS.rotation_state(valkey)
    if state is not None and state.id is not None and state.unix_date is not None:  # the last one died in the middle
        day = await EVENTS.read(valkey, state.unix_date)
        store(sql, state.id, day.unix_date, day.counts["done"], sum(day.breakdowns["done"].values()))
        assert await EVENTS.end_rotation(valkey, state.unix_date, state.id)
    late = await EVENTS.late(valkey, 1_000_000, now=1.0)
    for one in late:
        store(sql, one.count.id, one.count.unix_date, one.count.amount, one.count.amount)
    live = await EVENTS.read_range(valkey, FIRST_DAY, FIRST_DAY + DAYS - 1)
    [(rows, done, kinds)] = sql.execute("SELECT count(*), sum(done), sum(kinds) FROM days").fetchall()
    sql.close()
    changed = await DONE.at().get(valkey)
    assert changed is not None and changed > 50 and rows > 1
    assert done + sum(day.counts["done"] for day in live) == changed
    assert kinds == done and not any(day.inconsistencies() for day in live)

"""Daily counts while those who count and those who rotate are killed without warning."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from keystead.engine import Valkey, connect
from keystead.errors import Unavailable
from keystead.settings import ValkeySettings
from keystead.testing.cluster import LocalCluster
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


async def replicated(valkey: Valkey, move) -> bool:
    """Make a move and say whether a replica has it. What it raises leaves open whether it happened."""
    async with valkey.pipeline(transaction=False) as pipeline:
        move(pipeline)
        pipeline.execute_command("WAIT", 1, 1000)
        return bool((await pipeline.execute())[-1] >= 1)


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
async def test_counts_that_a_replica_had_survive_a_failover(valkey_cluster: LocalCluster) -> None:
    """Ten tasks count while the primary dies. A rotation that was begun before it goes on after it."""
    valkey_cluster.heal()
    valkey_cluster.flush()
    valkey = await connect(valkey_cluster.url, settings=ValkeySettings(outage_seconds=30, connect_timeout_seconds=1))
    outcomes, stop = Counter[str](), asyncio.Event()

    async def count(kind: str) -> None:
        while not stop.is_set():
            tally = EVENTS.tally().incr("done", kind, unix_date=FIRST_DAY + 1)
            try:
                outcomes["sure" if await replicated(valkey, tally.store) else "alone"] += 1
            except Unavailable:
                outcomes["lost"] += 1
            await asyncio.sleep(0.002)

    async def until(outcome: str, more: int) -> None:
        wanted = outcomes[outcome] + more
        async with asyncio.timeout(60):
            while outcomes[outcome] < wanted:
                await asyncio.sleep(0.02)

    try:
        first = EVENTS.tally().incr("done", "early", 7, unix_date=FIRST_DAY)
        assert await replicated(valkey, first.store)
        assert await replicated(valkey, lambda on: EVENTS.begin_rotation(on, FIRST_DAY, "r1"))
        victim = valkey_cluster.primary_of(EVENTS.earliest_key.at().name(valkey.layout).decode())
        async with asyncio.TaskGroup() as tasks:
            for number in range(10):
                tasks.create_task(count(f"kind {number}"))
            await until("sure", 100)
            victim.kill()
            await until("alone", 20)  # the replica has taken over, and has none of its own
            stop.set()
        assert valkey_cluster.primary_of(EVENTS.earliest_key.at().name(valkey.layout).decode()) is not victim
        day = await EVENTS.read(valkey, FIRST_DAY + 1)
        assert outcomes["sure"] <= day.counts["done"] <= outcomes.total()
        assert not day.inconsistencies()
        assert await EVENTS.begin_rotation(valkey, FIRST_DAY, "r2") == "r1", "the rotation that was under way"
        aside = await EVENTS.read(valkey, FIRST_DAY)
        assert aside.rotating and aside.counts["done"] == 7
        assert (await EVENTS.incr(valkey, "done", "early", unix_date=FIRST_DAY)).late == 1
        assert await EVENTS.end_rotation(valkey, FIRST_DAY, "r1")
        assert await EVENTS.earliest(valkey) == FIRST_DAY + 1
    finally:
        stop.set()
        await valkey.aclose()
        await asyncio.get_running_loop().run_in_executor(None, valkey_cluster.heal)

"""Work lists while processes are killed without warning: counts of what was lost, doubled and out of order."""

import asyncio
import contextlib
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from keystead.engine import AnswerLost, Pipeline, ServerAway, Valkey, connect
from keystead.testing.proxy import FaultProxy
from keystead.testing.server import LocalServer

from .programs import Forked
from .worklist_worker import CAREFUL, DONE, NUMBERS, STARTED


async def start(url: str, name: str, batch: int, *more: str) -> Forked:
    process = await Forked.start("tests.faults.worklist_worker", url, name, str(batch), *more)
    async with asyncio.timeout(60):
        assert await process.stdout.readline() == b"ready\n"
    return process


async def kill(process: Forked) -> None:
    process.kill()
    await process.wait()


async def done(valkey: Valkey) -> list[int]:
    return [int(raw) for raw in await DONE.at().range(valkey)]


async def test_killed_workers_lose_nothing_and_finish_nothing_twice(
    valkey: Valkey, valkey_server: LocalServer
) -> None:
    rng, total, kills = random.Random(7), 0, 0
    workers = [await start(valkey_server.url, f"w{number}", rng.choice((1, 10, 50))) for number in range(3)]
    try:
        async with asyncio.timeout(180):
            while kills < 6:
                await NUMBERS.push(valkey, *range(total, total + 300))
                total += 300
                await asyncio.sleep(rng.uniform(0.01, 0.15))
                place = rng.randrange(len(workers))
                await kill(workers[place])
                kills += 1
                # Every other one comes back under its old name, the rest as strangers.
                name = f"w{place}" if kills % 2 else f"stranger{kills}"
                workers[place] = await start(valkey_server.url, name, rng.choice((1, 10, 50)))
            while await DONE.at().length(valkey) < total:
                await asyncio.sleep(0.02)
    finally:
        for worker in workers:
            await kill(worker)
    assert Counter(await done(valkey)) == Counter(range(total))
    assert await NUMBERS.length(valkey) == 0 and await NUMBERS.dead.length(valkey) == 0
    tries = Counter(await STARTED.at().range(valkey))
    assert len(tries) == total and sum(tries.values()) <= total + kills


async def test_single_worker_that_returns_under_its_name_keeps_the_order(
    valkey: Valkey, valkey_server: LocalServer
) -> None:
    total, rng = 400, random.Random(11)
    await NUMBERS.push(valkey, *range(total))
    worker = await start(valkey_server.url, "only", 20)
    try:
        async with asyncio.timeout(180):
            for kills in range(1, 5):
                while await DONE.at().length(valkey) < kills * total // 6:
                    await asyncio.sleep(rng.uniform(0.0, 0.005))
                await kill(worker)
                worker = await start(valkey_server.url, "only", 20)
            while await DONE.at().length(valkey) < total:
                await asyncio.sleep(0.01)
    finally:
        await kill(worker)
    assert await done(valkey) == list(range(total))


async def test_item_that_kills_every_worker_dies_and_all_others_are_done(
    valkey: Valkey, valkey_server: LocalServer
) -> None:
    numbers = [*range(30), -1, *range(30, 60)]
    await CAREFUL.push(valkey, *numbers)
    deaths = 0
    worker = await start(valkey_server.url, "w", 20, "careful")
    try:
        async with asyncio.timeout(180):
            while await DONE.at().length(valkey) < 60:
                await asyncio.sleep(0.01)
                if worker.returncode is not None:
                    deaths += 1
                    worker = await start(valkey_server.url, "w", 20, "careful")
    finally:
        if worker.returncode is None:
            await kill(worker)
    assert deaths == 3
    assert await done(valkey) == list(range(60))
    [letter] = await CAREFUL.dead_letters(valkey)
    assert (letter.raw, letter.attempts) == (b"-1", 3)
    assert not await CAREFUL.poison_key.at().exists(valkey)


async def test_stopped_process_that_wakes_late_finishes_nothing_twice(
    valkey: Valkey, valkey_server: LocalServer
) -> None:
    """A process that is frozen beyond its sign of life, adopted, and then goes on as if nothing had happened."""
    total = 300
    await NUMBERS.push(valkey, *range(total))
    frozen = await start(valkey_server.url, "frozen", 50)
    try:
        async with asyncio.timeout(180):
            while await DONE.at().length(valkey) < 60:
                await asyncio.sleep(0.002)
            frozen.send_signal(signal.SIGSTOP)
            left = await NUMBERS.worker("frozen").held(valkey)
            other = await start(valkey_server.url, "other", 50)
            try:
                while await DONE.at().length(valkey) < total:
                    await asyncio.sleep(0.01)
                frozen.send_signal(signal.SIGCONT)
                await asyncio.sleep(1.0)
            finally:
                await kill(other)
    finally:
        await kill(frozen)
    assert left > 0, "it was frozen while it held items"
    assert Counter(await done(valkey)) == Counter(range(total))


async def test_server_killed_under_load_keeps_what_it_acknowledged(valkey_server: LocalServer) -> None:
    """With every write on disk before its answer, a killed server comes back with each item in exactly one place."""
    server = LocalServer({"appendonly": "yes", "appendfsync": "always"})
    server.start()
    try:
        valkey = await connect(server.url)
        await NUMBERS.push(valkey, *range(300))
        worker = NUMBERS.worker("w")
        reached = 0
        for _ in range(3):
            for _ in range(20):
                taken = await worker.take(valkey, 3, now=1.0)
                reached += (await worker.hand_over(valkey, [(i, i.raw) for i in taken], DONE.at())).count
            await worker.take(valkey, 3, now=1.0)
            server.kill()
            server.restart()
        while taken := await worker.take(valkey, 50, now=1.0):
            reached += (await worker.hand_over(valkey, [(i, i.raw) for i in taken], DONE.at())).count
        assert reached == 300
        assert await done(valkey) == list(range(300))
        await valkey.aclose()
    finally:
        server.stop()


async def test_cut_between_take_and_answer_leaves_items_for_the_next_take(valkey: Valkey, fault_proxy) -> None:
    proxy: FaultProxy = await fault_proxy()
    client = await connect(proxy.url)
    worker = NUMBERS.worker("w")
    seen: list[int] = []
    lost = 0
    await NUMBERS.push(valkey, *range(40))
    try:
        while len(seen) < 40:
            if len(seen) % 8 == 4 and lost < 5:
                lost += 1
                cutting = asyncio.ensure_future(worker.take(client, 4, now=1.0))
                await asyncio.sleep(0)
                proxy.cut()
                with contextlib.suppress(AnswerLost, ServerAway):
                    await cutting
            taken = await worker.take(client, 4, now=1.0)
            finished = await worker.finish(client, taken)
            assert finished.count == len(taken)
            seen += taken.values
    finally:
        await client.aclose()
    assert seen == list(range(40)) and lost > 0


async def test_connections_cut_at_any_moment_lose_and_double_nothing(valkey: Valkey, fault_proxy) -> None:
    """Replies get lost after the server has acted; each number is still handed over once, in order."""
    total, rng = 1000, random.Random(13)
    proxy: FaultProxy = await fault_proxy()
    client = await connect(proxy.url)
    worker = NUMBERS.worker("w")
    await NUMBERS.push(valkey, *range(total))
    working, lost = True, 0

    async def cut() -> None:
        while working and lost < 12:
            await asyncio.sleep(rng.uniform(0.0, 0.01))
            proxy.cut()

    cutting = asyncio.create_task(cut())
    try:
        async with asyncio.timeout(120):
            while lost < 5 or await DONE.at().length(valkey) < total:
                if not await NUMBERS.length(valkey) and lost < 5:
                    await NUMBERS.push(valkey, *range(total, total + 100))
                    total += 100
                try:
                    taken = await worker.take(client, 3, now=1.0)
                    await worker.hand_over(client, [(item, item.raw) for item in taken], DONE.at())
                except (AnswerLost, ServerAway):
                    lost += 1
    finally:
        working = False
        await cutting
        await client.aclose()
    assert await done(valkey) == list(range(total))


async def test_forgotten_scripts_are_given_again(valkey: Valkey) -> None:
    worker = NUMBERS.worker("w")
    for number in range(3):
        await valkey.script_flush()
        await NUMBERS.push(valkey, number)
        taken = await worker.take(valkey, 1, now=1.0)
        await valkey.script_flush()
        assert (await worker.finish(valkey, taken)).count == 1


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
async def test_killed_workers_of_a_cluster_lose_nothing(cluster: Valkey, valkey_cluster) -> None:
    total = 300
    await NUMBERS.push(cluster, *range(total))
    workers = [await start(valkey_cluster.url, f"w{number}", 20) for number in range(2)]
    try:
        async with asyncio.timeout(180):
            for kills in range(2):
                while await DONE.at().length(cluster) < (kills + 1) * total // 4:
                    await asyncio.sleep(0.01)
                await kill(workers[kills])
                workers[kills] = await start(valkey_cluster.url, f"again{kills}", 20)
            while await DONE.at().length(cluster) < total:
                await asyncio.sleep(0.01)
    finally:
        for worker in workers:
            await kill(worker)
    assert Counter(await done(cluster)) == Counter(range(total))


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
async def test_moves_that_a_replica_has_survive_the_loss_of_the_primary(cluster: Valkey, valkey_cluster) -> None:
    """Accepted with WAIT 1, then the primary dies: the replica that takes over has each item in exactly one place."""

    async def accepted(queue: Callable[[Pipeline], Awaitable[object]]) -> object:
        async with cluster.pipeline(transaction=False) as pipeline:
            answer = queue(pipeline)
            pipeline.execute_command("WAIT", 1, 5000)
            assert (await pipeline.execute())[-1] >= 1
        return await answer

    worker = NUMBERS.worker("w")
    for first in range(0, 100, 20):
        await accepted(lambda on, first=first: NUMBERS.push(on, *range(first, first + 20)))
    taken = await accepted(lambda on: worker.take(on, 10, now=1.0))
    await accepted(lambda on: worker.hand_over(on, [(item, item.raw) for item in taken.items[:4]], DONE.at()))
    primary = valkey_cluster.primary_of(DONE.at().name(cluster.layout))
    replica = valkey_cluster.replica_of(primary)
    primary.kill()
    try:
        replica.call("CLUSTER", "FAILOVER", "TAKEOVER")
        async with asyncio.timeout(120):
            while await DONE.at().length(cluster) < 100:
                with contextlib.suppress(AnswerLost, ServerAway):
                    some = await worker.take(cluster, 10, now=1.0)
                    await worker.hand_over(cluster, [(item, item.raw) for item in some], DONE.at())
    finally:
        valkey_cluster.heal()
    assert await done(cluster) == list(range(100))

"""Measure how touches become messages: ``python -m bench.load.touch_dispatch --touches 20000 --url URL``.

One process accepts the touches, then one dispatcher in it makes them into messages that wait for couriers nobody runs.
Per second, and what the server keeps of each: first while touches wait, then of each message with all that belongs to
it: the touch that awaits news of it, its part of the log that is not in the database yet, traces, and what spares
people.
"""

import asyncio
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from bench.load import protocol, touch_crowd
from bench.load.provider import run
from bench.load.touch_drain import BATCH, used_memory


async def measure(url: str, people: int) -> dict[str, float]:
    from keystead.app import App
    from keystead.messaging.touches import Planner, Touches
    from keystead.messaging.touches.dispatcher import Dispatcher
    from keystead.messaging.touches.keys import TO_SEND
    from keystead.patterns import Once

    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        settings = touch_crowd.settings_of(url, Path(name), "http://127.0.0.1:9", 0.0)
        async with App(settings).running() as running:
            valkey, clock, board = running.valkey, running.clock, running.switchboard
            addresses = await touch_crowd.fill(running.database, people)
            await board.points.ensure_built_in()
            planner = Planner(valkey, running.database, clock, board.points, board.contacts, board.outlets,
                              settings.messaging)
            touches = Touches(valkey, clock, settings.messaging, most_queued=10 * people)
            batches = list(touch_crowd.touches_to(touches, people, BATCH))
            empty = await used_memory(valkey)
            begin = time.perf_counter()
            for batch in batches:
                if any(done is not Once.DONE for done in await touches.queue_many(batch)):
                    raise SystemExit("a touch was not accepted")
            accepting = time.perf_counter() - begin
            waiting = await used_memory(valkey)
            dispatcher = Dispatcher(valkey, clock, planner, board.outlets, most_waiting=10 * people)
            stop, cpu, begin = asyncio.Event(), time.process_time(), time.perf_counter()
            working = asyncio.create_task(dispatcher.work(stop))
            while await TO_SEND.length(valkey):
                await asyncio.sleep(0.02)
            stop.set()
            await working
            took, cpu = time.perf_counter() - begin, time.process_time() - cpu
            queued = 0
            for outlet in board.outlets.values():
                queued += await outlet.waiting[0].length(valkey)
            if queued != addresses:
                raise SystemExit(f"{queued} messages wait instead of {addresses}")
            after = await used_memory(valkey)
    return {"accepted_per_second": people / accepting, "dispatched_per_second": people / took, "cpu_share": cpu / took,
            "bytes_per_touch": (waiting - empty) / people, "bytes_per_message": (after - empty) / addresses}


async def main() -> None:
    flags = touch_crowd.flags()
    given = flags.parse_args()
    people = min(given.touches, 2000) if given.seconds < 1 else given.touches
    figures = await measure(given.url, people)
    protocol.answer(figures, {"library": f"keystead {version('keystead')}", "touches": people})


if __name__ == "__main__":
    run(main)

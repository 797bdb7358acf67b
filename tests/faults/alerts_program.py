"""Processes that raise alerts and deliver them, for the fault tests; they go on until they are killed."""

import asyncio
import sys

from keystead.clock import SystemClock
from keystead.engine import connect
from keystead.operations import AlertRules, Alerts, Delivery, Patrol, Trouble, Webhook


class Stuck:
    """Says that so many queues are stuck."""

    kind = "queue_stuck"

    def __init__(self, count: int) -> None:
        self._count = count

    async def look(self):
        return [Trouble(f"queue {number}", "stuck") for number in range(self._count)]


async def work(role: str, url: str, hook: str, count: int) -> None:
    valkey, clock = await connect(url), SystemClock()
    alerts = Alerts(valkey, clock, AlertRules(3600.0, ("webhook",)))
    patrol = Patrol(valkey, clock, alerts, [Stuck(count)], every_seconds=1)
    print("ready", flush=True)
    if role == "raise":  # opens, and never gets to deliver
        for trouble in await Stuck(count).look():
            await alerts.raise_(Stuck.kind, trouble.subject, trouble.says)
            print("opened", flush=True)
        await asyncio.Event().wait()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(patrol.run())
        tasks.create_task(Delivery(valkey, clock, alerts, webhook=Webhook(hook)).run())


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:4], int(sys.argv[4])))

"""A room with batch jobs of each kind, and a client that stops or dies at any of its calls."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from keystead.engine import Valkey
from keystead.jobs.batch_job import BatchJob
from keystead.jobs.batch_job_run import RunFacts, Step
from keystead.keys import Keyspace, ListKey, RecordKey
from keystead.patterns import DelayedSet, SmartLock, WorkList

SHOP = Keyspace("shop", tag="shop")
TO_SEND = WorkList(SHOP, "shop:to_send", int, purgatory="shop:send_purgatory", purpose="a test")
DUE = DelayedSet(SHOP, "shop:due", int, member="a number", purgatory="shop:due_purgatory", purpose="a test")
LOCK = SmartLock(SHOP, "shop:send_job:lock", purpose="a test")
SENT = ListKey(SHOP, "shop:sent", int, purpose="a test")


class SendRun(RunFacts, frozen=True):
    attempted: int = 0
    succeeded: int = 0


RUNS = RecordKey(SHOP, "stats:shop:send_job", SendRun, purpose="a test")


class Send(BatchJob[int]):
    """Sends numbers. ``before`` is asked for each, and may raise, wait, or move the clock."""

    source, lock, runs = TO_SEND, LOCK, RUNS
    batch_items = 4
    before: Callable[[int, Step], Awaitable[None] | None] | None = None
    congested = False
    credentials = True

    async def process(self, value: int, step: Step) -> None:
        step.count("attempted")
        if self.before is not None and (waits := self.before(value, step)) is not None:
            await waits
        SENT.at().push_right(step.pipeline, value)
        step.count("succeeded")

    async def is_congested(self) -> bool:
        return self.congested

    async def has_credentials(self) -> bool:
        return self.credentials


class SendHeld(Send):
    holds_next = True


class SendSlices(Send):
    slice_items = 3


class SendDue(Send):
    source = DUE


class SendHeldDue(Send):
    source = DUE
    holds_next = True


KINDS = [Send, SendHeld, SendSlices, SendDue, SendHeldDue]


async def fill(valkey: Valkey, kind: type[Send], numbers: range, due_at: float = 0.0) -> None:
    if kind.source is DUE:
        await DUE.schedule_many(valkey, {number: due_at + number / 1000 for number in numbers})
    elif numbers:
        await TO_SEND.push(valkey, *numbers)


async def waiting(valkey: Valkey, kind: type[Send]) -> list[int]:
    if kind.source is DUE:
        return [number for number, _ in await DUE.due.range(valkey)]
    return await TO_SEND.queue.range(valkey)


async def in_purgatory(valkey: Valkey, kind: type[Send]) -> list[int]:
    if kind.source is DUE:
        return [number for number, _ in await DUE.worker().held(valkey)]
    return await TO_SEND.worker().purgatory.range(valkey)


async def sent(valkey: Valkey) -> list[int]:
    return await SENT.at().range(valkey)


class Died(BaseException):
    """The process is gone. Not an ``Exception``: no handler of the code under test may save it."""


def at_call(valkey: Valkey, number: int, happening: Callable[[], Awaitable[None]], *, after: bool = False) -> list[int]:
    """Let something happen at a call that the present task makes, before it is sent or after it was applied.

    If that is death, no later call of any task reaches the server. Returns a list that grows with each call.
    """
    calls: list[int] = []
    dead: list[bool] = []
    task = asyncio.current_task()

    async def happens() -> None:
        try:
            await happening()
        except Died:
            dead.append(True)
            raise

    def hooked(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def wrapped(*args: Any, **options: Any) -> Any:
            if dead:
                raise Died
            if asyncio.current_task() is not task:
                return await call(*args, **options)
            calls.append(len(calls) + 1)
            if len(calls) == number and not after:
                await happens()
            reply = await call(*args, **options)
            if len(calls) == number and after:
                await happens()
            return reply

        return wrapped

    for name in ("call", "call_block", "_run_script"):
        setattr(valkey, name, hooked(getattr(valkey, name)))
    return calls


async def each_call(most: int = 100) -> AsyncIterator[tuple[int, bool]]:
    for number in range(1, most):
        for after in (False, True):
            yield number, after
    raise AssertionError(f"the run did not end within {most} calls")

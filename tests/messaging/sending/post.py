"""A small channel for tests: letters, and a postman whose answers a test decides."""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from keystead.jobs import RunFacts
from keystead.keys import Keyspace, ListKey, RecordKey
from keystead.messaging.sending import Carried, Channel, Courier, CourierSettings, Health, Verdict
from keystead.patterns import Writes

POST = Keyspace("post", tag="msg", laned=True)


class Letter(msgspec.Struct, frozen=True):
    uid: str
    body: str = ""
    retry: int = 0
    initially_queued_at: float = 0.0
    last_queued_at: float = 0.0
    lane: str = "normal"


class PostRun(RunFacts, frozen=True, kw_only=True):
    delivered: int = 0


FACTS = {"purpose": "letters", "writers": ("post",), "readers": ("post",)}
LETTERS: Channel[Letter] = Channel(
    POST, "post", queue="post:to_send", of=Letter, purgatory="post:purgatory", lock="post:lock", **FACTS
)
DELIVERED: ListKey[str] = ListKey(POST, "post:delivered", str, **FACTS)
RUNS = RecordKey(POST, "stats:post", PostRun, **FACTS)


class Postman:
    """Delivers to a list among the writes; ``calls`` are the uids it was asked to carry."""

    def __init__(self, valkey, *, batch_items: int = 1, seconds: float = 0.0) -> None:
        self.batch_items = batch_items
        self.calls: list[str] = []
        self.at_once = self.most_at_once = 0
        self.health: Callable[[Letter], Health] = lambda letter: Health.FINE
        self.says: Callable[[Letter], Verdict | None] = lambda letter: None
        self.seconds: Callable[[Letter], float] = lambda letter: seconds
        self.verified: list[str] = []
        self.retry_after_seconds = 0.0
        self.before: Callable[[Letter], None] = lambda letter: None
        self._valkey = valkey

    def remember(self, calls: list[str]) -> None:
        """Be a provider that has these calls already, and can be asked for them."""
        self.calls = calls
        self.says = lambda letter: None if letter.uid in calls else Verdict.NOT_SENT

    def delivered(self, letter: Letter, word: str = "") -> Carried:
        writes = Writes(self._valkey.layout)
        DELIVERED.at().push_right(writes, f"{letter.uid}{word}")
        return Carried(writes, self.health(letter), self.retry_after_seconds, {"delivered": 1}, {"by": "post"})

    async def expect(self, items: Sequence[Letter]) -> None:
        pass

    async def carry(self, items: Sequence[Letter]) -> Sequence[Carried]:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            for letter in items:
                self.before(letter)
            self.calls += [letter.uid for letter in items]
            await asyncio.sleep(max(self.seconds(letter) for letter in items))
            return [self.delivered(letter) for letter in items]
        finally:
            self.at_once -= 1

    async def verify(self, item: Letter) -> Carried | Verdict:
        self.verified.append(item.uid)
        return self.says(item) or self.delivered(item, " found")

    def drop(self, item: Letter) -> Carried:
        return self.delivered(item, " dropped")


def courier(valkey, clock, postman: Postman, **settings) -> Courier[Letter]:
    return Courier(valkey, clock, LETTERS, postman, runs=RUNS, settings=CourierSettings(**settings))


async def fill(valkey, *letters: Letter) -> None:
    async with valkey.pipeline(transaction=False) as pipeline:
        for letter in letters:
            LETTERS.push(pipeline, letter)
        await pipeline.execute()


async def delivered(valkey) -> list[str]:
    return await DELIVERED.at().range(valkey)


async def until(condition, seconds: float = 30.0) -> None:
    """Poll until an async condition holds."""
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.02)


class Working:
    """Couriers that work while the block runs, and stop gracefully at its end."""

    def __init__(self, *couriers: Courier[Letter]) -> None:
        self.stop = asyncio.Event()
        self._couriers = couriers

    async def __aenter__(self) -> "Working":
        test = asyncio.current_task()
        self.tasks = [asyncio.create_task(each.work(self.stop)) for each in self._couriers]

        def ended(task: asyncio.Task[None]) -> None:
            # A courier that fails ends the test, instead of letting it wait for what never comes.
            if not task.cancelled() and task.exception() is not None and test is not None:
                test.cancel()

        for task in self.tasks:
            task.add_done_callback(ended)
        return self

    async def __aexit__(self, kind, error, trace) -> None:
        self.stop.set()
        if error is None:
            async with asyncio.timeout(30):
                await asyncio.gather(*self.tasks)
            return
        for task in self.tasks:
            task.cancel()
        for found in await asyncio.gather(*self.tasks, return_exceptions=True):
            if isinstance(found, Exception):
                raise found from error

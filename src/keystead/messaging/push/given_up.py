"""Tickets that became dead letters: too many workers died with them. Whoever sent the message is told of its end.

Who buries a letter does not know what follows, so the letters are looked through. The step that queues the failure job
puts a letter that says so in the place of the old one: tried again by hand, nobody hears a second time.
"""

from typing import Any, Final

from msgspec.structs import replace

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.keys import Undecodable
from keystead.messaging.push.keys import HOT
from keystead.messaging.push.models import FailureInfo, Identifier, PushCheck, PushFailure
from keystead.messaging.push.stats import RECEIPTS
from keystead.messaging.sending import queue_job, trace
from keystead.patterns import Writes
from keystead.patterns.worklist_items import DeadLetter
from keystead.telemetry import counts, logger

SETTLE: Final = Script("keystead.patterns", "scripts/worklist/settle.lua")
PAGE: Final = 500

counts.describe("push_tickets_given_up", "tickets that became dead letters, whose message was ended then")
_log = logger("messaging.push")


class GivenUp:
    """Ends messages whose ticket is a dead letter. Any number may try at once; each message ends once."""

    def __init__(self, valkey: Valkey, clock: Clock, *, trace_seconds: float) -> None:
        self._valkey, self._clock, self._trace_seconds = valkey, clock, trace_seconds
        self._seen: tuple[Any, ...] | None = None

    async def end_all(self) -> int:
        """End those that have not ended; says how many. Costs one exchange while no letter has come or gone."""
        looks = await self._looks()
        if looks == self._seen:
            return 0
        ended, last = 0, -1  # from the newest on: letters are appended while we look
        while True:
            name = HOT.dead.name(self._valkey.layout)
            raws: list[bytes] = await self._valkey.run(("LRANGE", name, last - PAGE + 1, last), list, repeat=True)
            for raw in raws:
                ended += await self._end(raw)
            if len(raws) < PAGE:
                break
            last -= PAGE
        self._seen = None if ended else looks
        return ended

    async def _end(self, raw: bytes) -> bool:
        try:
            letter = HOT.dead_key.codec.decode(raw)
            check = HOT.queue_key.codec.decode(letter.raw)
        except Undecodable:  # whose it was cannot be said
            return False
        if check.given_up:
            return False
        writes = self._ending(check, letter)
        names, packed = writes.packed(self._valkey.layout)
        done, *stored = await SETTLE(
            self._valkey, keys=(HOT.dead, HOT.poison_key.at(), *names), args=(raw, packed)
        )
        if not done:  # replayed, or ended by another process
            return False
        writes.stored(stored)
        counts.add("push_tickets_given_up")
        _log.error("a push message was given up", uid=check.uid, attempts=letter.attempts)
        return True

    def _ending(self, check: PushCheck, letter: DeadLetter) -> Writes:
        now, writes = self._clock.now(), Writes(self._valkey.layout)
        info = FailureInfo("check", Identifier.INTERNAL, extra="its receipt could not be asked for")
        queue_job(writes, check.failure_job, PushFailure(check, info), now)
        RECEIPTS.tally().incr("failed_due_to_internal_error", at=check.attempt_initially_queued_at).store(writes)
        trace(writes, check.uid, "given up", now, kept_seconds=self._trace_seconds, attempts=letter.attempts)
        ended = HOT.queue_key.codec.encode(replace(check, given_up=True))
        HOT.dead.push_right(writes, replace(letter, raw=ended))
        return writes

    async def _looks(self) -> tuple[Any, ...]:
        """The same as long as the letters are."""
        name = HOT.dead.name(self._valkey.layout)
        async with self._valkey.pipeline(transaction=False) as pipeline:
            length = HOT.dead.length(pipeline)
            newest = pipeline.run(("LINDEX", name, -1), _raw)
            await pipeline.execute()
        return await length, await newest


def _raw(reply: bytes | None) -> bytes | None:
    return reply

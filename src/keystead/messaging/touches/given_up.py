"""Touches that were given up: whoever sent one is told, and what can be tried again by hand stays a dead letter.

A touch becomes a dead letter when planning it failed too often, or too many dispatchers died with it. Nobody who buries
one knows what follows, so the letters are looked through: each touch ends as improper, in the step that puts a letter
without callbacks in the place of its own. Tried again by hand after that, nobody hears a second time.
"""

from typing import Any, Final

from msgspec.structs import replace

from keystead.engine import Script, Valkey
from keystead.engine.failures import ErrorReply
from keystead.keys import Undecodable
from keystead.messaging.touches.dispatcher_plan import Planner
from keystead.messaging.touches.keys import TO_SEND
from keystead.messaging.touches.models import Touch
from keystead.messaging.touches.places import read
from keystead.patterns.worklist_items import DeadLetter
from keystead.telemetry import counts, logger

SETTLE: Final = Script("keystead.patterns", "scripts/worklist/settle.lua")

counts.describe("touches_given_up", "touches that became dead letters, whose end was told then")
_log = logger("messaging.touches")


class GivenUp:
    """Ends touches that are dead letters. Any number may try at once; each touch ends once."""

    def __init__(self, valkey: Valkey, planner: Planner) -> None:
        self._valkey, self._planner = valkey, planner
        self._seen: object = None

    async def end_all(self) -> int:
        """End those that have not ended; says how many. Costs two reads while no letter has come or gone."""
        found = await self._looks()
        if found == self._seen:
            return 0
        ended = refused = 0
        async for raw, letter in read(self._valkey, TO_SEND.dead):
            try:
                touch = TO_SEND.queue_key.codec.decode(letter.raw)
            except Undecodable:  # whose it was cannot be said
                continue
            if touch.given_up:
                continue
            try:
                ended += await self._end(raw, letter, touch)
            except ErrorReply as error:  # of what this one writes; the others can end
                refused += 1
                _log.error("a touch that was given up cannot end", uid=touch.uid, reason=str(error)[:200])
        self._seen = None if ended or refused else found
        return ended

    async def _end(self, raw: bytes, letter: DeadLetter, touch: Touch) -> bool:
        layout = self._valkey.layout
        writes = self._planner.given_up(touch).writes
        silent = replace(touch, success_callback=None, failure_callback=None, given_up=True)
        TO_SEND.dead.push_right(writes, replace(letter, raw=TO_SEND.queue_key.codec.encode(silent)))
        names, packed = writes.packed(layout)
        done, *stored = await SETTLE(
            self._valkey, keys=(TO_SEND.dead, TO_SEND.poison_key.at(), *names), args=(raw, packed))
        if not done:  # replayed, or ended by another process
            return False
        writes.stored(stored)
        counts.add("touches_given_up")
        _log.error("a touch was given up", uid=touch.uid, attempts=letter.attempts)
        return True

    async def _looks(self) -> tuple[Any, ...]:
        """The same as long as the letters are."""
        name = TO_SEND.dead.name(self._valkey.layout)
        async with self._valkey.pipeline(transaction=False) as pipeline:
            length = TO_SEND.dead.length(pipeline)
            newest = pipeline.run(("LINDEX", name, -1), lambda reply: reply)
            await pipeline.execute()
        return await length, await newest

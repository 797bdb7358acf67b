"""Erasing a person: whatever is on its way to them is taken out, and nothing new is sent.

What holds when ``erase`` returns:

- a mark stands for two days; touches of the person that still wait are dropped, whatever fails is not tried again;
- none of their messages waits in a lane or for another try; each counts as abandoned in its channel;
- none of their touches waits for news: each ended with its failure callback;
- no row tells what they were sent, and rows that wait to be written are dropped.

What does not: a message that a courier holds at that moment may still leave, and news of what the provider already has
still comes; both are forgotten when they are settled. Traces and marks hold no words and no address, and expire.
"""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import delete, select

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.messaging.touches.keys import BY_USER, ERASED, RECENT_WORDS
from keystead.messaging.touches.outlets import Outlet, Outlets
from keystead.messaging.touches.pending import Ended, Pending
from keystead.messaging.touches.places import Place, find
from keystead.messaging.touches.tables import DEBUG_LOG, PEOPLE, STATES, USER_TOUCHES
from keystead.patterns import Writes
from keystead.store import Database

TAKE_OUT: Final = Script("keystead.messaging.touches", "scripts/take_out.lua")

@dataclass(frozen=True, slots=True)
class Erased:
    """What was taken out."""

    messages: int
    touches: int


class Erasure:
    """Takes out what is on its way to somebody. Safe to repeat."""

    def __init__(
        self, valkey: Valkey, database: Database, clock: Clock, outlets: Outlets, pending: Pending
    ) -> None:
        self._valkey, self._database, self._clock = valkey, database, clock
        self._outlets, self._pending = outlets, pending

    async def erase(self, user_sub: str) -> Erased:
        """Take out everything of this person."""
        valkey = self._valkey.lane_for(user_sub)
        await ERASED.at(user_sub).raise_flag(valkey)
        messages = 0
        for outlet in self._outlets.values():
            places: tuple[Place, ...] = (*outlet.waiting, *outlet.retrying)
            for place in places:
                messages += await self._take_out(valkey, place, user_sub, outlet)
        touches = 0
        for uid in await BY_USER.at(user_sub).members(valkey):
            ended = await self._pending.drop(uid, Writes(valkey.layout), self._clock.now(), "erased")
            touches += ended is Ended.NOW
        await BY_USER.at(user_sub).delete(valkey)
        await RECENT_WORDS.at(user_sub).delete(valkey)
        person = select(PEOPLE.c.id).where(PEOPLE.c.sub == user_sub).scalar_subquery()
        async with self._database.transaction() as sql:
            for table in (STATES, USER_TOUCHES, DEBUG_LOG):
                await sql.execute(delete(table).where(table.c.user_id == person))
        return Erased(messages, touches)

    async def _take_out(self, valkey: Valkey, place: Place, user_sub: str, outlet: Outlet) -> int:
        taken = 0
        found = await find(valkey, place, lambda message: message.user_sub == user_sub)
        for raw, message in found.items():
            writes = Writes(valkey.layout)
            outlet.abandoned(writes, message, self._clock.now())
            names, packed = writes.packed(valkey.layout)
            taken += int(await TAKE_OUT(valkey, keys=[place, *names], args=(raw, packed)))
        return taken

"""The town: people and businesses who live through the public interface of a running installation.

Everything they are and want follows from the seed; when it happens follows from the installation's clock, which may run
faster than the real one. Nothing is invented: what charts show was lived through, request by request. A server that is
away is waited for.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from keystead.demo import doings
from keystead.demo.client import Away, Client, Patience, Refusal
from keystead.demo.people import day_of, make_person
from keystead.demo.plan import FIRST_PEOPLE, MOST_PEOPLE, Errand, Illness, errands, growth_pause, illnesses, rounds
from keystead.demo.reactions import links_in, react
from keystead.demo.residents import Agenda, Resident, Residents, Waiting
from keystead.demo.telling import Telling

TICK_SECONDS: Final = 0.5
MOST_VISITS: Final = 6  # in one tick
MOST_RESPONSES: Final = 8
AT_ONCE: Final = 8
READ_SECONDS: Final = 1.0
READ_ITEMS: Final = 200
LOOK_SECONDS: Final = 20.0
# By a clock that hardly moves, nobody would react while somebody watches.
LEAST_SPEED: Final = 60.0
_CAME_BACK_CHANCE: Final = 0.35
_ORDER_CHANCE: Final = 0.25
_OLD_SECONDS: Final = 600.0


class TownClock:
    """The time of the installation, learnt from its answers: what it was when, and how fast it goes."""

    def __init__(self) -> None:
        self._at, self._shown, self.speed = time.monotonic(), 0.0, 1.0

    def learn(self, shown: float, at: float) -> None:
        """It showed this at so many seconds of our own steady clock."""
        if self._shown and at - self._at >= 0.2:
            self.speed = max(0.1, (shown - self._shown) / (at - self._at))
        self._at, self._shown = at, shown

    def now(self) -> float:
        return self._shown + (time.monotonic() - self._at) * self.speed


class Town:
    """Lives until cancelled. ``say`` hears a line now and then."""

    def __init__(self, client: Client, seed: int, say: Callable[[str], None]) -> None:
        self.clock = TownClock()
        self.residents = Residents()
        self.agenda = Agenda()
        self._client, self._seed = client, seed
        self._telling = Telling(say)
        self._draw = random.Random(f"{seed}:town")
        self._read_to = 0
        self._is_away = False

    async def live(self) -> None:
        """Begin at once with the first people, go on with those of an earlier life, grow from there.

        ``Refusal`` when the key does not count here.
        """
        await self._until_done(self._open)
        try:
            async with asyncio.TaskGroup() as group:
                for part in (self._grow, self._keep_time, self._come_and_go, self._read, self._respond, self._trade,
                             self._fall_ill, self._look_after):
                    group.create_task(part())
        except ExceptionGroup as several:
            if refusals := several.subgroup(Refusal):
                raise _first(refusals) from None
            raise

    # -- beginning ----------------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        await self._look_at_clock()
        for channel in ("push", "sms", "email"):  # whoever was killed in a bad hour left the provider ill
            await self._client.call("PUT", f"/sandbox/{channel}/faults", {})
        await doings.bring_words(self._client)

    async def _grow(self) -> None:
        """The first people at once, those who are known without a pause, then one after the other."""
        arrived = [await self._until_done(partial(self._arrive, number)) for number in range(FIRST_PEOPLE)]
        known = sum(not is_new for _, is_new in arrived)
        self._telling.at_once("the people of last time are back" if known else f"{FIRST_PEOPLE} people live here now")
        for first in range(0, FIRST_PEOPLE, AT_ONCE):
            await asyncio.gather(*(
                self._until_done(partial(self._move_in, *one)) for one in arrived[first:first + AT_ONCE]
            ))
        number, grows = FIRST_PEOPLE, False
        while number < MOST_PEOPLE:
            if grows:
                await asyncio.sleep(growth_pause(number))
            resident, is_new = await self._until_done(partial(self._arrive, number))
            await self._until_done(partial(self._move_in, resident, is_new))
            number, grows = number + 1, grows or is_new

    async def _arrive(self, number: int) -> tuple[Resident, bool]:
        """The nth person, made or found; says whether they are new."""
        resident, is_new = await doings.join(self._client, make_person(self._seed, number))
        self.residents.add(resident)
        if is_new:
            resident.last_day = 0
            self._telling.now_and_then(f"{resident.person.name} joined")
        return resident, is_new

    async def _move_in(self, resident: Resident, is_new: bool) -> None:
        """Addresses, device and wishes; again for somebody who was interrupted before they had said them."""
        if is_new or not await doings.is_settled(self._client, resident):
            await doings.settle(self._client, resident)
        if is_new:
            await doings.visit(self._client, resident)
            await doings.tell(self._client, resident, doings.WELCOME, {})

    # -- the day ------------------------------------------------------------------------------------------------------

    async def _keep_time(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._patiently(self._look_at_clock)

    async def _look_at_clock(self) -> None:
        """Twice, a moment apart: how fast it goes matters as much as what it shows."""
        for pause in (0.4, 0.0):
            before = time.monotonic()
            shown = (await self._client.call("GET", "/stats/runs")).body["at"]
            self.clock.learn(shown, (before + time.monotonic()) / 2)
            await asyncio.sleep(pause)

    async def _come_and_go(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now = self.clock.now()
            coming = [resident for resident, _ in zip(self.residents.coming(now), range(MOST_VISITS), strict=False)]
            if self._draw.random() < _CAME_BACK_CHANCE and (more := self.residents.someone_here(now, self._draw)):
                coming.append(more)
            for resident in coming:
                await self._patiently(partial(self._visit, resident))

    async def _visit(self, resident: Resident) -> None:
        await doings.visit(self._client, resident)
        resident.last_day = day_of(resident.person, resident.joined_at, self.clock.now())
        if self._draw.random() < _ORDER_CHANCE:
            what = self._draw.choice(doings.GOODS)
            await doings.tell(self._client, resident, doings.ORDER, {"what": what})
            self._telling.now_and_then(f"{resident.person.name} ordered {what}")
        else:
            self._telling.now_and_then(f"{resident.person.name} came by" + (
                "" if resident.last_day == 0 else f", {resident.last_day} days after joining"))

    # -- messages -----------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        """What the sandbox took lies in people's hands; each decides what to do with it."""
        began = self.clock.now() - _OLD_SECONDS
        while True:
            found = await self._patiently(partial(
                self._client.call, "GET", "/sandbox/outbox", after=self._read_to, limit=READ_ITEMS))
            items = [] if found is None else found.body["items"]
            if found is not None:
                self._read_to = max(self._read_to, found.body["last"])
            for message in items:
                if message["at"] >= began:
                    self._take(message)
            if len(items) < READ_ITEMS:
                await asyncio.sleep(READ_SECONDS)

    def _take(self, message: dict[str, Any]) -> None:
        resident = self.residents.at(message["to"])
        if resident is None or message["channel"] in resident.quit:
            return
        channel, links = message["channel"], tuple(links_in(message["text"] or message["html"]))
        reaction = react(resident.person, message["id"], channel, len(links))
        if reaction.act != "nothing" or reaction.scanner:
            hurry = self.clock.speed / max(self.clock.speed, LEAST_SPEED)
            self.agenda.add(message["at"] + reaction.after_seconds * hurry, Waiting(resident, reaction, channel, links))

    async def _respond(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            for waiting in self.agenda.due(self.clock.now(), MOST_RESPONSES):
                told = await self._patiently(partial(doings.respond, self._client, waiting))
                self._telling.now_and_then(told or "")

    # -- businesses ---------------------------------------------------------------------------------------------------

    async def _trade(self) -> None:
        began, due = time.monotonic(), list[Errand]()
        for errand in errands(self._seed):
            late = time.monotonic() - began - errand.at
            if late < 0 or len(due) >= AT_ONCE:
                await asyncio.gather(*(self._patiently(partial(doings.run_errand, self._client, one)) for one in due))
                due.clear()
                await asyncio.sleep(max(0.0, began + errand.at - time.monotonic()))
            if late > LOOK_SECONDS:
                began += late  # the server was away: what was wanted meanwhile is not wanted all at once
            due.append(errand)

    async def _look_after(self) -> None:
        began = time.monotonic()
        for at in rounds(self._seed):
            await asyncio.sleep(max(0.0, began + at - time.monotonic()))
            if told := await self._patiently(partial(doings.make_round, self._client)):
                self._telling.at_once(told)

    async def _fall_ill(self) -> None:
        began = time.monotonic()
        for illness in illnesses(self._seed):
            await asyncio.sleep(max(0.0, began + illness.begins - time.monotonic()))
            try:
                await self._patiently(partial(self._be_ill, illness))
                await asyncio.sleep(max(0.0, began + illness.ends - time.monotonic()))
            finally:
                await self._mend(illness)

    async def _be_ill(self, illness: Illness) -> None:
        await self._client.call("PUT", f"/sandbox/{illness.channel}/faults", illness.faults)
        self._telling.at_once(f"the provider of {_NAMES[illness.channel]} {illness.says}")

    async def _mend(self, illness: Illness) -> None:
        try:
            await self._client.call("PUT", f"/sandbox/{illness.channel}/faults", {})
            self._telling.at_once(f"the provider of {_NAMES[illness.channel]} is well again")
        except (Away, Refusal):
            pass  # mended at the next beginning

    # -- patience -----------------------------------------------------------------------------------------------------

    async def _patiently(self, act: Callable[[], Awaitable[Any]]) -> Any:
        """Do it once. A server that is away is waited for and the act let go; a refusal is part of life."""
        try:
            done = await act()
        except Refusal as refusal:
            if refusal.status in (401, 403):
                raise  # the key does not count here: nobody could live like that
            return None
        except Away as away:
            self._tell_away(away)
            await asyncio.sleep(1.0 + self._draw.random())
            return None
        self._is_away = False
        return done

    async def _until_done(self, act: Callable[[], Awaitable[Any]]) -> Any:
        """Do it, however long the server is away."""
        patience = Patience()
        while True:
            try:
                return await act()
            except Away as away:
                self._tell_away(away)
                await patience.wait()

    def _tell_away(self, away: Away) -> None:
        if not self._is_away:
            self._is_away = True
            self._telling.at_once(f"waiting for the server ({away})")


_NAMES: Final = {"push": "push messages", "sms": "texts", "email": "mails"}


def _first(group: ExceptionGroup[Refusal]) -> Refusal:
    found = group.exceptions[0]
    return _first(found) if isinstance(found, ExceptionGroup) else found

"""A load of requests like the town's, at a rate that does not yield: the next request leaves when it is due, whether or
not the server has answered those before, and its time counts from then. So a server that stalls cannot hide it."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import aiohttp

from keystead.demo import doings
from keystead.demo.client import API, USER_HEADER, Client
from keystead.demo.latencies import Latencies
from keystead.demo.people import make_person
from keystead.demo.reactions import BROWSERS, links_in
from keystead.demo.residents import Resident

Kind = Literal["read", "visit", "send", "click"]
SHARES: Final[dict[Kind, float]] = {"read": 0.5, "visit": 0.25, "send": 0.2, "click": 0.05}
PEOPLE: Final = 60
MOST_UNDER_WAY: Final = 2000
PATIENCE_SECONDS: Final = 10.0
LATE_SECONDS: Final = 0.05
NO_ANSWER: Final = "no answer"
_FIRST_SEED: Final = 1_000_000  # people of a load are not those of a town


@dataclass(slots=True)
class Tally:
    """What became of one kind of request."""

    sent: int = 0
    latencies: Latencies = field(default_factory=Latencies)
    errors: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Outcome:
    """What came out of a load. ``held_back`` were due and not sent, since too many were under way."""

    wanted_rate: float
    seconds: float = 0.0
    held_back: int = 0
    late: int = 0
    kinds: dict[Kind, Tally] = field(default_factory=dict)

    @property
    def sent(self) -> int:
        return sum(tally.sent for tally in self.kinds.values())

    @property
    def errors(self) -> int:
        return sum(tally.errors.total() for tally in self.kinds.values())

    @property
    def rate(self) -> float:
        return self.sent / self.seconds if self.seconds else 0.0

    @property
    def reached(self) -> bool:
        """Whether the load was what was asked for; if not, its figures are of a smaller one."""
        return self.held_back == 0 and self.late <= self.sent / 100

    def everything(self) -> Tally:
        both = Tally()
        for tally in self.kinds.values():
            both.sent += tally.sent
            both.errors += tally.errors
            both.latencies = both.latencies.merged(tally.latencies)
        return both


@dataclass(frozen=True, slots=True)
class Ground:
    """What requests are about: people, and the paths of links that somebody was sent."""

    people: list[Resident]
    links: list[str]


async def prepare(client: Client, seed: int, *, people: int = PEOPLE) -> Ground:
    """Make or find the people, each with a device, and links that somebody was sent lately, if there are any."""
    await doings.bring_words(client)

    async def one(number: int) -> Resident:
        resident, is_new = await doings.join(client, make_person(_FIRST_SEED + seed, number))
        if is_new:
            await doings.settle(client, resident)
        await doings.token_of(client, resident)
        return resident

    found = await asyncio.gather(*(one(number) for number in range(people)))
    links: list[str] = []
    after = 0
    for _ in range(25):
        page = (await client.call("GET", "/sandbox/outbox", after=after, limit=500)).body
        links += [link for message in page["items"] for link in links_in(message["text"])[:1]]
        if not page["items"]:
            break
        after = page["last"]
    return Ground(list(found), list(dict.fromkeys(links))[-1000:])


class Load:
    """Sends for a while at a rate. ``on_beat`` hears now and then how far it is."""

    def __init__(self, url: str, key: str, ground: Ground, *, rate: float, seconds: float, seed: int) -> None:
        self._url, self._key, self._ground = url.rstrip("/"), key, ground
        self._rate, self._seconds = rate, seconds
        self._draw = random.Random(f"{seed}:load")
        self._kinds: tuple[Kind, ...] = tuple(kind for kind in SHARES if kind != "click" or ground.links)
        self._weights = [SHARES[kind] for kind in self._kinds]
        self.outcome = Outcome(rate, kinds={kind: Tally() for kind in self._kinds})

    async def run(self, on_beat: Callable[[Outcome], None] = lambda outcome: None) -> Outcome:
        """Until the time is over and what is under way has been answered, or has taken too long."""
        timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
        connector = aiohttp.TCPConnector(limit=MOST_UNDER_WAY)
        async with (
            aiohttp.ClientSession(timeout=timeout, connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session,
            asyncio.TaskGroup() as group,
        ):
            await self._send_all(group, session, on_beat)
        return self.outcome

    async def _send_all(
        self, group: asyncio.TaskGroup, session: aiohttp.ClientSession, on_beat: Callable[[Outcome], None]
    ) -> None:
        loop, under_way, number = asyncio.get_running_loop(), set[asyncio.Task[None]](), 0
        began = beat_at = loop.time()
        while (due := began + number / self._rate) < began + self._seconds:
            now = loop.time()
            if now >= beat_at:
                self.outcome.seconds = now - began
                on_beat(self.outcome)
                beat_at = now + 0.25
            if due > now:
                await asyncio.sleep(due - now)
            number += 1
            if len(under_way) >= MOST_UNDER_WAY:
                self.outcome.held_back += 1
                await asyncio.sleep(0)
                continue
            self.outcome.late += loop.time() - due > LATE_SECONDS
            task = group.create_task(self._one(session, due))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            if number % 20 == 0:
                await asyncio.sleep(0)  # what is under way has its turn although we are late
        self.outcome.seconds = max(loop.time() - began, self._seconds)
        on_beat(self.outcome)

    async def _one(self, session: aiohttp.ClientSession, due: float) -> None:
        kind = self._draw.choices(self._kinds, self._weights)[0]
        tally = self.outcome.kinds[kind]
        tally.sent += 1
        try:
            async with self._request(session, kind) as response:
                await response.read()
            if response.status >= 400:
                tally.errors[str(response.status)] += 1
        except (aiohttp.ClientError, TimeoutError, OSError):
            tally.errors[NO_ANSWER] += 1
        tally.latencies.add(asyncio.get_running_loop().time() - due)

    def _request(self, session: aiohttp.ClientSession, kind: Kind) -> Any:
        resident = self._draw.choice(self._ground.people)
        if kind == "click":
            agent = {"user-agent": self._draw.choice(BROWSERS), "accept": "text/html"}
            return session.get(self._url + self._draw.choice(self._ground.links), headers=agent, allow_redirects=False)
        if kind == "visit":
            return session.post(f"{self._url}{API}/users/me/visits",
                                headers={"authorization": f"Bearer {resident.token}"})
        by_key = {"authorization": f"Bearer {self._key}"}
        if kind == "send":
            return session.post(f"{self._url}{API}/touches", headers=by_key, json={
                "user_sub": resident.sub, "event_slug": doings.ORDER, "channel": "push",
                "event_parameters": {"name": resident.person.given_name, "what": self._draw.choice(doings.GOODS)},
            })
        path = self._draw.choice((f"/users/{resident.sub}", "/users/me/daily_reminders", "/users/me/contacts/emails"))
        return session.get(f"{self._url}{API}{path}", headers=by_key | {USER_HEADER: resident.sub})


def as_dict(outcome: Outcome) -> dict[str, Any]:
    """For programs: seconds and rates as numbers."""
    def shown(tally: Tally) -> dict[str, Any]:
        spread = tally.latencies
        return {
            "sent": tally.sent, "errors": tally.errors.total(), "by_status": dict(sorted(tally.errors.items())),
            "p50_ms": _ms(spread.percentile(50)), "p95_ms": _ms(spread.percentile(95)),
            "p99_ms": _ms(spread.percentile(99)), "max_ms": _ms(spread.max_seconds),
        }

    return {
        "wanted_rate": outcome.wanted_rate, "rate": round(outcome.rate, 1), "seconds": round(outcome.seconds, 2),
        "reached": outcome.reached, "held_back": outcome.held_back, "late": outcome.late,
        **shown(outcome.everything()), "kinds": {kind: shown(tally) for kind, tally in outcome.kinds.items()},
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)

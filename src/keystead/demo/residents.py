"""The people who live in the town now: what it knows of each beside who they are, and where messages find them."""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from keystead.demo.people import Person, comes_on, day_of, is_awake, local_hour, visiting_hour
from keystead.demo.reactions import Reaction

MOST_WAITING: Final = 5000


@dataclass(slots=True)
class Resident:
    """One of them. ``token`` is what their own devices show; ``last_day`` the last day after joining they came."""

    person: Person
    sub: str
    joined_at: float
    token: str = ""
    last_day: int = -1
    quit: set[str] = field(default_factory=set)


class Residents:
    """Found by number or by an address. As many as the town has people, and no more."""

    def __init__(self) -> None:
        self._all: list[Resident] = []
        self._by_address: dict[str, Resident] = {}

    def add(self, resident: Resident) -> None:
        self._all.append(resident)
        addresses = (resident.person.email, resident.person.phone, resident.person.push_token)
        self._by_address |= {address: resident for address in addresses if address}

    def at(self, address: str) -> Resident | None:
        return self._by_address.get(address)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Resident]:
        return iter(self._all)

    def coming(self, now: float) -> Iterator[Resident]:
        """Those whose hour to come today has passed, and who were not here yet."""
        for resident in self._all:
            day = day_of(resident.person, resident.joined_at, now)
            if resident.last_day < day and comes_on(resident.person, day) and (
                local_hour(resident.person, now) >= visiting_hour(resident.person, day)
            ):
                yield resident

    def someone_here(self, now: float, draw: random.Random) -> Resident | None:
        """Somebody who came today and is awake, if a few tries find one."""
        for _ in range(5):
            found = draw.choice(self._all) if self._all else None
            if found is not None and is_awake(found.person, now) and found.last_day == day_of(
                found.person, found.joined_at, now
            ):
                return found
        return None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Somebody who will do something with a message."""

    resident: Resident
    reaction: Reaction
    channel: str
    links: tuple[str, ...]


class Agenda:
    """Who does what when; bounded, so that a town whose server is away for long does not grow."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Waiting]] = []
        self._order = count()

    def add(self, at: float, waiting: Waiting) -> None:
        if len(self._heap) < MOST_WAITING:
            heapq.heappush(self._heap, (at, next(self._order), waiting))

    def due(self, now: float, most: int) -> list[Waiting]:
        """Take up to ``most`` whose time has come, the earliest first."""
        taken: list[Waiting] = []
        while self._heap and self._heap[0][0] <= now and len(taken) < most:
            taken.append(heapq.heappop(self._heap)[2])
        return taken

    def __len__(self) -> int:
        return len(self._heap)

"""What an instance holds of one family: the process tier and the disk tier, and when they may be used."""

import random
from collections.abc import Mapping
from typing import Any

from keystead.clock import Clock
from keystead.keys.template import Template
from keystead.patterns.cache_disk import DiskTier
from keystead.patterns.cache_ear import Ear
from keystead.patterns.cache_family import Family
from keystead.patterns.cache_process import Entry, ProcessTier

FAILED_REFRESH_SECONDS = 1.0  # before a stale value whose refresh failed is fetched again


class Shelf:
    """The tiers of this process, for one family."""

    def __init__(
        self, family: Family[Any], template: Template, process: ProcessTier, disk: DiskTier | None, clock: Clock
    ) -> None:
        self.process, self.disk = process, disk
        self.ear: Ear | None = None
        self._family, self._template, self._clock = family, template, clock

    @property
    def generation(self) -> int:
        """Grows whenever purges may have been missed."""
        return self.ear.generation if self.ear is not None else 0

    def get(self, key: str, now: float) -> Entry | None:
        """What is held and may be used now."""
        if not self.is_open():  # asked first: it may notice a gap just now, and drop what is held
            return None
        entry = self.process.get(key, now)
        if entry is None:
            if self.disk is None or (entry := self.disk.get(key, now)) is None:
                return None
            self.process.put(key, entry)
        # Families that share a tier may have a name in common, such as a:{x}:b and a:c:{y}.
        return entry if entry.family == self._family.name else None

    def is_open(self) -> bool:
        """Whether what is held may be used: always, unless it is only right while the channel is heard."""
        return self.ear is None or not self._family.collab or self.ear.hears()

    def put(self, key: str, raw: bytes | None, seconds: float | None) -> None:
        """Hold a value, or with None its absence; ``seconds`` bounds how long it is fresh."""
        family = self._family
        if family.local_seconds is None or not self.is_open():
            return
        fresh = family.local_seconds + random.uniform(0, family.jitter_seconds)
        if seconds is not None:
            fresh = min(fresh, seconds)
        fresh_until = self._clock.now() + fresh
        stale = family.stale_seconds if raw is not None else 0.0
        entry = Entry(raw, family.name, fresh_until, fresh_until + stale, family.collab)
        self.process.put(key, entry)
        if self.disk is not None:
            self.disk.put(key, entry)

    def postpone(self, key: str) -> None:
        """Let a stale value be for a moment, after its refresh failed."""
        entry = self.process.get(key, self._clock.now())
        if entry is not None:
            entry.fresh_until = self._clock.now() + FAILED_REFRESH_SECONDS

    def forget(self, key: str) -> None:
        self.process.forget(key)
        if self.disk is not None:
            self.disk.forget(key)

    def forget_where(self, arguments: Mapping[str, str]) -> list[str]:
        """Drop every value whose variables are these, whatever the others; gives their names. Walks over all."""
        def unwanted(key: str, family: str) -> bool:
            return family == self._family.name and self.fits(key, arguments)

        found = {key for key, entry in self.process.items() if unwanted(key, entry.family)}
        if self.disk is not None:
            found |= {key for key, family, _ in self.disk.items() if unwanted(key, family)}
        for key in found:
            self.forget(key)
        return sorted(found)

    def fits(self, key: str, arguments: Mapping[str, str]) -> bool:
        """Whether a name of this family has these variables."""
        found = self._template.match(key) or {}
        return found.items() >= arguments.items()

    def forget_collab(self) -> None:
        """Drop everything that a missed message may have made wrong."""
        if not self._family.collab:
            return
        name = self._family.name
        for key in [key for key, entry in self.process.items() if entry.family == name and entry.collab]:
            self.process.forget(key)
        if self.disk is not None:
            for key in [key for key, family, collab in self.disk.items() if family == name and collab]:
                self.disk.forget(key)

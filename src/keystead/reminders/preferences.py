"""How many people want to be written to when: a live count for each wish, and the changes by day."""

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.reminders.stats import PREFERENCE_CHANGES, PREFERENCE_COUNTS, PREFERENCES


class PreferenceCounts:
    """Counts wishes as they change. It counts what it is told; who wants what is known elsewhere."""

    def __init__(self, valkey: Valkey, clock: Clock) -> None:
        self._valkey, self._clock = valkey, clock

    async def joined(self, preference: str = "unset") -> None:
        """Someone new who has this wish."""
        await PREFERENCE_COUNTS.at().increment(self._valkey, _known(preference), 1)

    async def left(self, preference: str) -> None:
        """Someone with this wish is gone."""
        await PREFERENCE_COUNTS.at().increment(self._valkey, _known(preference), -1)

    async def changed(self, old: str, new: str) -> None:
        """One person's wish was ``old`` and is ``new``; the same wish again changes nothing. One atomic step."""
        if _known(old) == _known(new):
            return
        now = self._clock.now()
        async with self._valkey.pipeline(transaction=True) as block:
            PREFERENCE_COUNTS.at().increment(block, old, -1)
            PREFERENCE_COUNTS.at().increment(block, new, 1)
            PREFERENCE_CHANGES.tally(now).incr(f"{old}:{new}", at=now).store(block)
            await block.execute()

    async def now(self) -> dict[str, int]:
        """How many want what, as of now; never below 0, though some may have had a wish before counting began."""
        found = await PREFERENCE_COUNTS.at().all(self._valkey)
        return {preference: max(0, found.get(preference, 0)) for preference in PREFERENCES}


def _known(preference: str) -> str:
    if preference not in PREFERENCES:
        raise Invalid(f"there is no preference {preference[:40]!r}; known are {', '.join(PREFERENCES)}")
    return preference

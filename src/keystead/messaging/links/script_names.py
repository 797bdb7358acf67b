"""What the room's scripts are told beside their own arguments: templates of the keys that they derive, and the days.

Counts of a link are dated to its creation, which only the script reads; so it is told when the last days began.
"""

from typing import Final

import msgspec

from keystead.dates import UnixDate, day_starts_at
from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.keys import Declaration, KeyReference, Layout
from keystead.messaging.links.keys import (
    BUFFER,
    CHILD_OF,
    CLICK_INDEX,
    CODE_WINDOW,
    DELAYED_CLICK,
    LEAKED,
    LINK,
    LINK_CLICKS,
    TO_PERSIST,
)
from keystead.messaging.links.stats import LINKS_COUNTED
from keystead.patterns.derived import around, pieces

# A link of before is counted on the earliest of these days; it should have been stored or given up long since.
DAYS_TOLD: Final = 5

# In the order in which the scripts take them; each ends with its variable.
_DERIVED: Final[tuple[Declaration, ...]] = (
    LINK, LINK_CLICKS, CODE_WINDOW, CLICK_INDEX, DELAYED_CLICK, CHILD_OF, TO_PERSIST.worker_key,
    LINKS_COUNTED.day_keys[0],
)


class ScriptNames:
    """The first keys and the first argument of the room's scripts, made anew when a day begins."""

    def __init__(self, valkey: Valkey) -> None:
        self._layout: Layout = valkey.layout
        counted, heads = LINKS_COUNTED, []
        for declaration in _DERIVED:
            head, tail = around(declaration, declaration.template.names[0], {}, self._layout)
            if tail:
                raise DeclarationError(f"{declaration.pattern}: scripts of links derive keys that end with a variable")
            heads.append(head)
        breakdown, middle, _ = pieces(counted.extra_keys[0], ("unix_date", "event"), {}, self._layout)
        self._told = (*heads, breakdown, middle, counted.most_breakdown_fields)
        references: tuple[KeyReference, ...] = (
            counted.earliest_key.at(), counted.state_key.at(), counted.late_key.at(), BUFFER.at(), TO_PERSIST.due,
            TO_PERSIST.purgatory_key.at(), TO_PERSIST.workers_key.at(), LEAKED.at(),
        )
        self.keys: tuple[bytes, ...] = tuple(reference.name(self._layout) for reference in references)
        self._from, self._until, self._packed = 0.0, 0.0, b""

    def packed(self, now: float) -> bytes:
        """The first argument at this time."""
        if not self._from <= now < self._until:
            today, zone = LINKS_COUNTED.day_of(now), LINKS_COUNTED.home
            days = [UnixDate(today + 1 - back) for back in range(DAYS_TOLD + 1)]
            begun = [(day_starts_at(day, zone), day) for day in days]
            self._until, self._from = begun[0][0], begun[1][0]
            # A clock that runs ahead elsewhere may have made a link that is from tomorrow here.
            self._packed = msgspec.msgpack.encode((*self._told, *(part for pair in begun for part in pair)))
        return self._packed

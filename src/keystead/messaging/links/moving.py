"""Moving links from the buffer to the database: how they are read, and what is left to do when they are rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from keystead.engine import Valkey
from keystead.keys import Layout
from keystead.messaging.links.keys import BUFFER, CLICK_INDEX, CLICK_UID, LINK, LINK_CLICKS
from keystead.messaging.links.models import BufferedLink, Click, TrackType
from keystead.patterns import Writes

ROWS_TOGETHER: Final = 100
READ_TOGETHER: Final = 12


@dataclass(frozen=True, slots=True)
class Moving:
    """A code with what the buffer holds of it. No link: there was nothing, or nothing that could be read."""

    code: str
    link: BufferedLink | None
    clicks: list[Click]

    @property
    def rows(self) -> int:
        return 1 + len(self.clicks)

    def forget(self, layout: Layout) -> Writes:
        """The writes that take the link out of the buffer, to be guarded by whoever put it aside."""
        writes = Writes(layout)
        BUFFER.at().remove(writes, self.code)
        LINK.at(self.code).delete(writes)
        LINK_CLICKS.at(self.code).delete(writes)
        for click in self.clicks:
            if click.track_type is TrackType.ON_CLICK and CLICK_UID.accepts(click.uid):
                CLICK_INDEX.at(click.uid).delete(writes)
        return writes


async def read_moving(valkey: Valkey, codes: Sequence[str]) -> list[Moving]:
    """Links with their clicks, which do not change while somebody stores them; a few codes for each round trip."""
    found = []
    for first in range(0, len(codes), READ_TOGETHER):
        some = codes[first : first + READ_TOGETHER]
        async with valkey.pipeline(transaction=False) as pipeline:
            answers = [(code, LINK.at(code).get(pipeline), LINK_CLICKS.at(code).range(pipeline)) for code in some]
            await pipeline.execute()
        found += [Moving(code, await link, await clicks) for code, link, clicks in answers]
    return found


def in_batches(moving: Sequence[Moving]) -> Iterator[list[Moving]]:
    """So many rows that one transaction is worth it; a link stays with its clicks."""
    batch: list[Moving] = []
    rows = 0
    for each in moving:
        if batch and rows + each.rows > ROWS_TOGETHER:
            yield batch
            batch, rows = [], 0
        batch.append(each)
        rows += each.rows
    if batch:
        yield batch

"""Clicks on links of the database: written down before they are answered, those that wait together with one commit.

A commit has to reach the disk, which takes milliseconds however little is in it. So while one is under way the clicks
that come meanwhile gather, and the next one takes all of them.
"""

import asyncio
from dataclasses import dataclass
from itertools import islice
from typing import Final

from keystead.errors import Unavailable
from keystead.messaging.links.models import Click
from keystead.messaging.links.rows import StoredLink, add_clicks
from keystead.store import Database

MOST_TOGETHER: Final = 500


@dataclass(slots=True, eq=False)
class _Waiting:
    """A click that is not known to be a row. ``alone``: one it was with may have spoiled the commit."""

    link_id: int
    click: Click
    is_row: bool = False
    alone: bool = False
    error: Unavailable | None = None

    @property
    def is_free(self) -> bool:
        """Whether somebody else may write it."""
        return not (self.is_row or self.alone or self.error is not None)


class ClickRows:
    """Writes clicks down. Whoever is first in line does it for all that wait."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._line = asyncio.Lock()
        self._waiting: dict[str, _Waiting] = {}

    async def add(self, link: StoredLink, click: Click, now: float) -> None:
        """Returns when the click is a row, and raises when it is not, or may not be: as its own transaction would."""
        mine = self._waiting[click.uid] = _Waiting(link.id, click)
        try:
            async with self._line:
                if mine.is_row:
                    return
                if mine.error is not None:
                    raise mine.error
                await self._write(mine, now)
        finally:
            self._waiting.pop(click.uid, None)

    async def _write(self, mine: _Waiting, now: float) -> None:
        together = [mine]
        if not mine.alone:
            others = (each for each in self._waiting.values() if each is not mine and each.is_free)
            together += islice(others, MOST_TOGETHER - 1)
        try:
            await add_clicks(self._database, [(each.link_id, each.click) for each in together], now)
        except Unavailable as error:
            for each in together:  # they need not find out one after another
                each.error = error
            raise
        except Exception:
            if len(together) == 1:
                raise
            for each in together:
                each.alone = True
            await self._write(mine, now)
        else:
            for each in together:
                each.is_row = True

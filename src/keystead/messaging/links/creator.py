"""Makes links: usable from the moment they are made, in the buffer until their message was delivered."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.errors import Invalid
from keystead.ids import new_uid
from keystead.messaging.links.codes import Codes
from keystead.messaging.links.keys import BUFFER, LINK
from keystead.messaging.links.models import DEFAULTS, BufferedLink, LinkWanted, Style
from keystead.messaging.links.rows import codes_taken
from keystead.messaging.links.script_names import ScriptNames
from keystead.messaging.links.stats import LINKS_COUNTED
from keystead.patterns import Writes
from keystead.patterns.guarded import judged
from keystead.settings import LinksSettings
from keystead.store import Database

CREATE: Final = Script("keystead.messaging.links", "scripts/create.lua")
ABANDON: Final = Script("keystead.messaging.links", "scripts/abandon.lua")
MOST_EXTRA_CHARACTERS: Final = 4096
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Creator:
    """Makes links."""

    def __init__(
        self, valkey: Valkey, database: Database, clock: Clock, *, settings: LinksSettings = DEFAULTS,
        codes: Codes | None = None,
    ) -> None:
        self._valkey, self._database, self._clock = valkey, database, clock
        self._names = ScriptNames(valkey)
        self._codes = codes or Codes(settings)

    async def create(self, wanted: Sequence[LinkWanted]) -> list[BufferedLink]:
        """Make links, in the order asked for; few round trips, however many they are.

        Each is atomic: in the buffer and counted, or not there. A short code is handed out only after the database
        was asked once more with the code already in the buffer, so that no two links ever have the same one.
        """
        for each in wanted:
            _check(each)
        made: list[BufferedLink | None] = [None] * len(wanted)
        counted: set[int] = set()
        left = list(range(len(wanted)))
        while left:
            links = {place: self._link(wanted[place]) for place in left}
            short = {link.code for place, link in links.items() if wanted[place].style is Style.SHORT}
            taken = await codes_taken(self._database, short)
            tried = {place: link for place, link in links.items() if link.code not in taken}
            entered = await self._enter(tried, counted)
            counted |= entered
            taken = await codes_taken(self._database, {links[place].code for place in entered} & short)
            left = []
            for place, link in links.items():
                free = place in entered and link.code not in taken
                if free:
                    made[place] = link
                else:
                    left.append(place)
                    if place in entered:
                        await self._withdraw(link.code)
                if link.code in short:
                    self._codes.was_free() if free else self._codes.was_taken()
        return [link for link in made if link is not None]

    def _link(self, wanted: LinkWanted) -> BufferedLink:
        return BufferedLink(
            new_uid("utl"), self._codes.new(wanted.style), wanted.touch_uid, wanted.page_identifier, self._clock.now(),
            wanted.page_extra or {}, wanted.preview_identifier, wanted.preview_extra or {},
        )

    async def _enter(self, links: dict[int, BufferedLink], counted: set[int]) -> set[int]:
        """Put links into the buffer; says which had a free code. One that was counted before is not counted again."""
        if not links:
            return set()
        async with self._valkey.pipeline(transaction=False) as pipeline:
            answers = {}
            for place, link in links.items():
                writes = Writes(self._valkey.layout)
                if place not in counted:
                    LINKS_COUNTED.tally().incr("created", at=link.created_at).store(writes)
                names, packed = writes.packed(self._valkey.layout)
                fields = [part for name, raw in LINK.record.encode(link).items() for part in (name, raw.decode())]
                answers[place] = writes, CREATE(
                    pipeline, keys=[BUFFER.at(), LINK.at(link.code), *names],
                    args=(link.code, repr(link.created_at), msgspec.msgpack.encode(fields), packed),
                )
            await pipeline.execute()
        return {place for place, (writes, answer) in answers.items() if judged(writes, await answer)}

    async def _withdraw(self, code: str) -> None:
        """Nobody holds the code yet; whoever guessed it meanwhile meant the link of the database."""
        now = self._clock.now()
        await ABANDON(
            self._valkey, keys=self._names.keys, args=(self._names.packed(now), "withdrawn", code, repr(now), 0)
        )


def _check(wanted: LinkWanted) -> None:
    for what, identifier in (("page", wanted.page_identifier), ("preview", wanted.preview_identifier)):
        if not _IDENTIFIER.fullmatch(identifier):
            raise Invalid(f"the identifier of a {what} is 1 to 64 letters, digits, _, . or -, got {identifier[:80]!r}")
    if not wanted.touch_uid:
        raise Invalid("a link belongs to a message: say the touch_uid")
    for extra in (wanted.page_extra, wanted.preview_extra):
        try:
            size = len(msgspec.json.encode(extra or {}))
        except (TypeError, ValueError) as error:
            raise Invalid(f"what a link says of its page must be JSON: {error}") from None
        if size > MOST_EXTRA_CHARACTERS:
            raise Invalid(f"what a link says of its page has {size} characters, at most {MOST_EXTRA_CHARACTERS} fit")

"""Trackable links as other rooms see them: made, clicked on, and in the end stored or given up."""

from collections.abc import Sequence
from typing import Any, Final

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import KeysteadError, Unavailable
from keystead.ids import new_uid
from keystead.keys import Reply
from keystead.messaging.links.clicks import Clicks
from keystead.messaging.links.creator import ABANDON, Creator
from keystead.messaging.links.keys import CODE, LINK
from keystead.messaging.links.models import (
    DEFAULTS,
    Abandoned,
    AbandonOutcome,
    BufferedLink,
    Clicked,
    LinkWanted,
    PersistOutcome,
    Style,
    Target,
    TrackType,
)
from keystead.messaging.links.script_names import ScriptNames
from keystead.settings import LinksSettings
from keystead.store import Database
from keystead.telemetry import logger

PERSIST: Final = Script("keystead.messaging.links", "scripts/persist.lua")
PERSIST_JOB: Final = "touch.persist_links"
ABANDON_JOB: Final = "touch.abandon_links"
_PERSISTED: Final = {
    1: PersistOutcome.QUEUED, 0: PersistOutcome.ALREADY_QUEUED, -1: PersistOutcome.PERSISTING,
    -2: PersistOutcome.NOT_IN_BUFFER,
}

_log = logger("links")


class Links:
    """Every operation on a link is one atomic step, with its counts."""

    def __init__(self, valkey: Valkey, database: Database, clock: Clock, *, settings: LinksSettings = DEFAULTS) -> None:
        self._valkey, self._clock, self._settings = valkey, clock, settings
        self._names = ScriptNames(valkey)
        self._creator = Creator(valkey, database, clock, settings=settings)
        self._clicks = Clicks(valkey, database, clock, settings=settings)

    async def create(
        self, page_identifier: str = "home", page_extra: dict[str, Any] | None = None,
        preview_identifier: str = "default", preview_extra: dict[str, Any] | None = None, *, touch_uid: str,
        style: Style = Style.NORMAL,
    ) -> BufferedLink:
        """Make a link for a message. It works at once; it is kept if ``persist`` follows and forgotten by ``abandon``.

        A message that does either names the jobs ``PERSIST_JOB`` and ``ABANDON_JOB`` with its ``codes`` as callbacks.
        """
        wanted = LinkWanted(touch_uid, page_identifier, page_extra, preview_identifier, preview_extra, style)
        return (await self._creator.create([wanted]))[0]

    async def create_many(self, wanted: Sequence[LinkWanted]) -> list[BufferedLink]:
        """Make links, in the order asked for."""
        return await self._creator.create(wanted)

    async def click(
        self, code: str, *, track_type: TrackType = TrackType.ON_CLICK, visitor_uid: str | None = None,
        user_sub: str | None = None, parent_uid: str | None = None, limited: bool = True,
    ) -> Clicked:
        """Somebody clicked, or logged in after the click ``parent_uid``. See ``Clicks.click``."""
        return await self._clicks.click(
            code, track_type=track_type, visitor_uid=visitor_uid, user_sub=user_sub, parent_uid=parent_uid,
            limited=limited,
        )

    async def resolve(self, code: str, *, limited: bool = False) -> Target | None:
        """Where the code leads, without writing down or counting anything.

        ``limited``: for whoever may be guessing codes. In a flood of guesses it leads nowhere, or now and then home.
        """
        return (await self._clicks.click(code, should_track=False, limited=limited)).target

    async def persist(self, code: str) -> PersistOutcome:
        """The message was delivered: store the link, half an hour from now."""
        if not CODE.accepts(code):
            return PersistOutcome.NOT_IN_BUFFER
        now = self._clock.now()
        due_at = repr(now + self._settings.persist_seconds)
        reply: Reply = await PERSIST(self._valkey, keys=self._names.keys, args=(
            self._names.packed(now), new_uid("call"), code, repr(now), due_at,
        ))
        return _PERSISTED[reply]

    async def abandon(self, code: str) -> Abandoned:
        """The message was not delivered: forget the link and the clicks on it, also if it waits to be stored."""
        if not CODE.accepts(code):
            return Abandoned(AbandonOutcome.UNKNOWN)
        now = self._clock.now()
        reply: Reply = await ABANDON(self._valkey, keys=self._names.keys, args=(
            self._names.packed(now), new_uid("call"), code, repr(now), 1,
        ))
        if reply[0] == 1:
            flat = reply[1]
            link = LINK.record.decode(dict(zip(flat[::2], flat[1::2], strict=True)))
            return Abandoned(AbandonOutcome.ABANDONED, link, reply[2])
        return Abandoned(AbandonOutcome.PERSISTING if reply[0] else AbandonOutcome.UNKNOWN)

    # -- callbacks of messages --------------------------------------------------------------------------------------

    async def persist_all(self, codes: Sequence[str]) -> None:
        """As ``persist``, for each; an error of one is told and does not stop the others.

        Safe to repeat. ``Unavailable`` is raised, after all were tried, so that the job comes again.
        """
        away: Unavailable | None = None
        for code in codes:
            try:
                outcome = await self.persist(code)
            except Unavailable as error:
                away = error
            except (KeysteadError, ErrorReply) as error:
                _log.error("a link could not be queued to be stored", error=type(error).__name__)
            else:
                if outcome is PersistOutcome.NOT_IN_BUFFER:
                    _log.warning("a link to be stored is not in the buffer")
        if away is not None:
            raise away

    async def abandon_all(self, codes: Sequence[str]) -> None:
        """As ``abandon``, for each; otherwise as ``persist_all``."""
        away: Unavailable | None = None
        for code in codes:
            try:
                outcome = (await self.abandon(code)).outcome
            except Unavailable as error:
                away = error
            except (KeysteadError, ErrorReply) as error:
                _log.error("a link could not be given up", error=type(error).__name__)
            else:
                if outcome is AbandonOutcome.PERSISTING:
                    _log.warning("a link of a message that failed is being stored")
        if away is not None:
            raise away

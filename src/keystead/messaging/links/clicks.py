"""Clicks on links: found wherever the link is, and written down once, wherever that is possible just now."""

import random
from collections.abc import Callable
from typing import Any, Final

import msgspec

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.errors import DeclarationError
from keystead.ids import new_uid
from keystead.keys import Reply
from keystead.messaging.links.click_rows import ClickRows
from keystead.messaging.links.keys import (
    CLICK_UID,
    CODE,
    CODE_WINDOW_SECONDS,
    DELAYED,
    FLOOD_WINDOW,
    FLOOD_WINDOW_SECONDS,
    WARNING_SECONDS,
    WARNING_WINDOW,
)
from keystead.messaging.links.models import DEFAULTS, Click, Clicked, ClickOutcome, Target, TrackType
from keystead.messaging.links.rows import add_login, find_link
from keystead.messaging.links.script_names import ScriptNames
from keystead.messaging.links.stats import LINKS_COUNTED
from keystead.settings import LinksSettings
from keystead.store import Database
from keystead.telemetry import counts, logger

CLICK: Final = Script("keystead.messaging.links", "scripts/click.lua")
ROUNDS: Final = 3
# Codes that are not short have sixteen random bytes or more, in six bits for each character.
UNGUESSED_CHARACTERS: Final = 22
_NEVER: Final = 2**53
# What is looked for where a parent cannot be one of ours.
_NO_CLICK: Final = "utlc_none-of-ours"
_WINDOWS: Final = " ".join(str(seconds * 1000) for seconds in (CODE_WINDOW_SECONDS, FLOOD_WINDOW_SECONDS,
                                                              WARNING_SECONDS))
_UNTRACKED, _BUFFERED, _DELAYED, _ASK, _HAS_CHILD, _NO_PARENT, _SAY_PAGE, _FLOOD, _TOO_SOON = (
    0, 1, 2, -1, -2, -3, -4, -5, -6
)
_OF_VERDICT: Final = {
    _UNTRACKED: ClickOutcome.UNTRACKED, _BUFFERED: ClickOutcome.BUFFERED, _DELAYED: ClickOutcome.DELAYED,
    _HAS_CHILD: ClickOutcome.PARENT_HAS_CHILD, _NO_PARENT: ClickOutcome.PARENT_NOT_FOUND,
    _TOO_SOON: ClickOutcome.TOO_SOON,
}

_log = logger("links")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode
counts.describe("link_floods", "clicks of nobody known that were refused, because there were too many")


class Clicks:
    """Answers clicks. One on a link that is not in the database takes one round trip, limits and counts included."""

    def __init__(
        self, valkey: Valkey, database: Database, clock: Clock, *, settings: LinksSettings = DEFAULTS,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._valkey, self._database, self._clock, self._settings = valkey, database, clock, settings
        self._chance = chance
        self._rows = ClickRows(database)
        self._names = ScriptNames(valkey)
        self._keys = (*self._names.keys, *(
            reference.name(valkey.layout) for reference in (DELAYED.due, FLOOD_WINDOW.at(), WARNING_WINDOW.at())
        ))

    async def click(
        self, code: str, *, track_type: TrackType = TrackType.ON_CLICK, visitor_uid: str | None = None,
        user_sub: str | None = None, parent_uid: str | None = None, should_track: bool = True, limited: bool = False,
    ) -> Clicked:
        """Where the code leads, and what became of the click.

        ``parent_uid`` is the click before a login, and given exactly with ``POST_LOGIN``. ``limited``: only the first
        click on a code within three seconds is written down, and when very many come of nobody known, those with a
        code that can be guessed are refused (``FLOOD``), a few of them with an answer that leads home. Every attempt
        that is tracked is counted once, with what became of it.
        """
        if (parent_uid is not None) is not (track_type is TrackType.POST_LOGIN):
            raise DeclarationError("a login has a click before it, and a click has none")
        if parent_uid is not None and not CLICK_UID.accepts(parent_uid):
            parent_uid = _NO_CLICK
        now, uid = self._clock.now(), new_uid("utlc")
        click = Click(uid, now, track_type, visitor_uid, user_sub, parent_uid)
        if not CODE.accepts(code):
            return await self._unknown(click, now) if should_track else Clicked(ClickOutcome.UNKNOWN_LINK, uid)
        page = ""
        for _ in range(ROUNDS):
            verdict, found = await self._try(code, click, now, should_track, limited, page)
            if verdict == _FLOOD:
                return self._flood(code, uid, first=bool(found))
            if found:
                return Clicked(_OF_VERDICT[verdict], uid, _target(found))
            stored = await find_link(self._database, code)
            if stored is None:
                return await self._unknown(click, now) if should_track else Clicked(ClickOutcome.UNKNOWN_LINK, uid)
            page = stored.target.page_identifier
            if verdict == _ASK:
                await self._rows.add(stored, click, now)
                outcome = ClickOutcome.DIRECT_TO_DB
            elif verdict == _NO_PARENT:
                outcome = await add_login(self._database, stored, click, now)
            elif verdict == _SAY_PAGE:
                continue
            else:
                outcome = _OF_VERDICT[verdict]
            if outcome not in (ClickOutcome.UNTRACKED, ClickOutcome.DELAYED):
                await self._count(outcome, click, page, now)
            return Clicked(outcome, uid, stored.target)
        raise AssertionError("the script asks for the page of a link once")

    async def _try(
        self, code: str, click: Click, now: float, should_track: bool, limited: bool, page: str
    ) -> tuple[int, list[bytes]]:
        """One round trip: the verdict, and the fields of the link if it is in the buffer."""
        parent, first = click.parent_uid or "", click.track_type is TrackType.ON_CLICK
        fields = (
            "uid", click.uid, "link_code", code, "track_type", click.track_type.value, "parent_uid", parent, "user_sub",
            click.user_sub or "", "visitor_uid", click.visitor_uid or "", "clicked_at", repr(click.clicked_at),
        )
        flood_most = 0
        if limited and first and click.user_sub is None:
            # Who holds a code that nobody guesses is heard in any flood: else anybody could make one, and then nobody
            # could unsubscribe.
            flood_most = self._settings.flood_clicks if len(code) < UNGUESSED_CHARACTERS else _NEVER
        reply: Reply = await CLICK(self._valkey, keys=self._keys, args=(
            self._names.packed(now), click.uid, code, repr(now), int(should_track), flood_most, int(limited and first),
            _WINDOWS, click.track_type.value, parent, _encode(click), msgspec.msgpack.encode(fields),
            repr(now + self._settings.delayed_seconds), _who(click), page,
        ))
        return reply[0], reply[1]

    async def _unknown(self, click: Click, now: float) -> Clicked:
        await self._count(ClickOutcome.UNKNOWN_LINK, click, "", now)
        return Clicked(ClickOutcome.UNKNOWN_LINK, click.uid)

    async def _count(self, outcome: ClickOutcome, click: Click, page: str, now: float) -> None:
        """What the script could not count, since it did not know the page."""
        if outcome is ClickOutcome.DIRECT_TO_DB:
            event, breakdown = "clicks_direct_to_db", f"{click.track_type.value}:{page}:{_who(click)}"
        elif outcome is ClickOutcome.UNKNOWN_LINK:
            event, breakdown = "clicks_failed", outcome.value
        else:
            event, breakdown = "clicks_failed", f"{click.track_type.value}:{page}:db:{outcome.value}"
        tally = LINKS_COUNTED.tally().incr("click_attempts", at=now).incr(event, breakdown, at=now)
        await tally.store(self._valkey)

    def _flood(self, code: str, uid: str, *, first: bool) -> Clicked:
        """Codes are being guessed. Whoever does it learns nothing from an answer that any code gets now and then."""
        counts.add("link_floods")
        if first:
            _log.error("codes of links are being guessed: clicks of nobody known are refused for a while")
        if self._chance() < self._settings.flood_fake_share:
            return Clicked(ClickOutcome.FLOOD, uid, Target(new_uid("utl"), code, "home", {}, "default", {}))
        return Clicked(ClickOutcome.FLOOD, uid)


def _who(click: Click) -> str:
    return f"vis={click.visitor_uid is not None}:user={click.user_sub is not None}"


def _target(flat: list[bytes]) -> Target | None:
    """Where the link leads, of which these are the fields; None if they cannot be read. Field by field: it is hot."""
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    try:
        return Target(
            fields[b"uid"].decode(), fields[b"code"].decode(), fields[b"page_identifier"].decode(),
            _extra(fields.get(b"page_extra", b"{}")), fields.get(b"preview_identifier", b"default").decode(),
            _extra(fields.get(b"preview_extra", b"{}")), touch_uid=fields[b"touch_uid"].decode(),
        )
    except (KeyError, UnicodeDecodeError, msgspec.DecodeError) as error:
        _log.error("a link in the buffer cannot be read", error=type(error).__name__)
        return None


def _extra(raw: bytes) -> dict[str, Any]:
    return {} if raw == b"{}" else _decode(raw)

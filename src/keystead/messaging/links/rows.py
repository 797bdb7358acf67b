"""Links and clicks in the database: found, and stored so that storing again changes nothing."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from sqlalchemy import ColumnElement, bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.messaging.links.models import BufferedLink, Click, ClickOutcome, DelayedClick, Target, TrackType
from keystead.messaging.links.tables import USER_TOUCH_LINK_CLICKS as CLICKS
from keystead.messaging.links.tables import USER_TOUCH_LINKS as LINKS
from keystead.messaging.links.tables import USER_TOUCHES, USERS, VISITORS
from keystead.store import Database, Query

_TARGET: Final = (
    LINKS.c.id, LINKS.c.uid, LINKS.c.code, LINKS.c.page_identifier, LINKS.c.page_extra, LINKS.c.preview_identifier,
    LINKS.c.preview_extra,
)
_BY_CODE: Final = Query(select(*_TARGET).where(LINKS.c.code == bindparam("code")))


@dataclass(frozen=True, slots=True)
class StoredLink:
    """A link of the database."""

    id: int
    target: Target


class LinkStored(Enum):
    """What became of a link: a row now, a row before, no message to belong to, or a code that another link has."""

    STORED = "stored"
    THERE = "there"
    NO_TOUCH = "no touch"
    TAKEN = "taken"


@dataclass(frozen=True, slots=True)
class Storing:
    """What became of a link and its clicks; ``clicks``: how many are rows, by now or since before."""

    link: LinkStored
    clicks: int = 0


async def codes_taken(database: Database, codes: Collection[str]) -> set[str]:
    """Which of these codes belong to links of the database."""
    if not codes:
        return set()
    async with database.reading() as sql:
        return set(await sql.scalars(select(LINKS.c.code).where(LINKS.c.code.in_(codes))))


async def find_link(database: Database, code: str) -> StoredLink | None:
    """The link that has this code."""
    found = await database.rows(_BY_CODE, code=code)
    if not found:
        return None
    number, *target = found[0]
    return StoredLink(number, replace(Target(*target), stored=True))


async def addresses_written_to(database: Database, code: str, touch_uid: str) -> list[str]:
    """The email addresses that the message of a link went to; found by its code, or by the uid of the message."""
    touches, written = USER_TOUCHES.c, select(USER_TOUCHES.c.destination).where(USER_TOUCHES.c.channel == "email")
    of_link = select(touches.send_uid).join(LINKS, LINKS.c.user_touch_id == touches.id).where(LINKS.c.code == code)
    message: ColumnElement[bool] = touches.send_uid == touch_uid if touch_uid else touches.send_uid.in_(of_link)
    async with database.reading() as sql:
        return list(await sql.scalars(written.where(message).distinct()))


# -- clicks as they come ----------------------------------------------------------------------------------------------


async def add_clicks(database: Database, clicks: Sequence[tuple[int, Click]], now: float) -> None:
    """Write down clicks on links of the database, by the ids of those, all or none."""
    async with database.transaction() as sql:
        await _insert_clicks(database, sql, clicks, now)


async def add_login(database: Database, link: StoredLink, click: Click, now: float) -> ClickOutcome:
    """Write down the login after a click, unless there is no such click on this link, or its login is known."""
    c = CLICKS.c
    parent = (c.uid == click.parent_uid) & (c.user_touch_link_id == link.id) & (c.track_type == TrackType.ON_CLICK)
    async with database.transaction() as sql:
        # Whoever comes second waits for the first on this row, and then finds the child known.
        marked = await sql.scalar(
            update(CLICKS).where(parent, c.child_known.is_(False)).values(child_known=True).returning(c.id)
        )
        if marked is None:
            found = await sql.scalar(select(c.id).where(parent))
            return ClickOutcome.PARENT_NOT_FOUND if found is None else ClickOutcome.PARENT_HAS_CHILD
        stored = await _insert_clicks(database, sql, [(link.id, click)], now)
        return ClickOutcome.DIRECT_TO_DB if stored else ClickOutcome.PARENT_HAS_CHILD


# -- many -------------------------------------------------------------------------------------------------------------


async def store_links(
    database: Database, sql: AsyncConnection, links: Sequence[tuple[BufferedLink, Sequence[Click]]], now: float
) -> dict[str, Storing]:
    """Store links with their clicks, as part of a transaction; says by code what became of each."""
    touches = await _first_touches(sql, {link.touch_uid for link, _ in links})
    rows = [
        {"uid": link.uid, "user_touch_id": touches[link.touch_uid], "code": link.code,
         "page_identifier": link.page_identifier, "page_extra": link.page_extra,
         "preview_identifier": link.preview_identifier, "preview_extra": link.preview_extra}
        for link, _ in sorted(links, key=lambda pair: pair[0].code) if link.touch_uid in touches
    ]
    fresh: set[str] = set()
    if rows:
        inserting = database.insert(LINKS).on_conflict_do_nothing().returning(LINKS.c.uid)
        fresh = {row[0] for row in await sql.execute(inserting, rows)}
    uids = [link.uid for link, _ in links]
    numbers = _by_first(await sql.execute(select(LINKS.c.uid, LINKS.c.id).where(LINKS.c.uid.in_(uids))))
    clicks = [(numbers[link.uid], click) for link, clicks in links if link.uid in numbers for click in clicks]
    await _insert_clicks(database, sql, clicks, now)
    known = await _known_clicks(sql, [click.uid for _, click in clicks])
    outcomes: dict[str, Storing] = {}
    for link, its in links:
        if link.uid in numbers:
            found = LinkStored.STORED if link.uid in fresh else LinkStored.THERE
            outcomes[link.code] = Storing(found, sum(click.uid in known for click in its))
        else:
            outcomes[link.code] = Storing(LinkStored.TAKEN if link.touch_uid in touches else LinkStored.NO_TOUCH)
    return outcomes


async def link_pages(sql: AsyncConnection, codes: Iterable[str]) -> dict[str, tuple[int, str]]:
    """The id and the page of each of these links that is in the database."""
    found = await sql.execute(
        select(LINKS.c.code, LINKS.c.id, LINKS.c.page_identifier).where(LINKS.c.code.in_(list(codes)))
    )
    return {code: (number, page) for code, number, page in found}


async def store_delayed(
    database: Database, sql: AsyncConnection, clicks: Sequence[DelayedClick], links: Mapping[str, tuple[int, str]],
    now: float,
) -> tuple[set[str], set[str]]:
    """Store clicks on links of the database; says which uids are new rows, and which were rows before."""
    known = await _known_clicks(sql, [click.uid for click in clicks])
    fitting = [(links[click.link_code][0], click.click) for click in clicks
               if click.link_code in links and click.uid not in known]
    return await _insert_clicks(database, sql, fitting, now), known


async def known_clicks(sql: AsyncConnection, uids: Iterable[str]) -> set[str]:
    """Which of these clicks are rows."""
    return await _known_clicks(sql, list(uids))


async def _insert_clicks(
    database: Database, sql: AsyncConnection, clicks: Sequence[tuple[int, Click]], now: float
) -> set[str]:
    """Store clicks by the id of their link: first clicks, then logins, whose click must be on the same link and have
    no other. Says which are new."""
    if not clicks:
        return set()
    users = await _ids(sql, USERS.c.sub, USERS.c.id, {click.user_sub for _, click in clicks})
    visitors = await _ids(sql, VISITORS.c.uid, VISITORS.c.id, {click.visitor_uid for _, click in clicks})

    def row(link_id: int, click: Click, parent_id: int | None) -> dict[str, Any]:
        return {
            "uid": click.uid, "user_touch_link_id": link_id, "track_type": click.track_type.value,
            "parent_id": parent_id, "user_id": users.get(click.user_sub or ""),
            "visitor_id": visitors.get(click.visitor_uid or ""), "parent_known": click.parent_uid is not None,
            "user_known": click.user_sub is not None, "visitor_known": click.visitor_uid is not None,
            "child_known": False, "clicked_at": click.clicked_at, "created_at": now,
        }

    inserting = database.insert(CLICKS).on_conflict_do_nothing().returning(CLICKS.c.uid)
    in_order = sorted(clicks, key=lambda pair: (pair[1].clicked_at, pair[1].uid))
    first = [row(link_id, click, None) for link_id, click in in_order if click.parent_uid is None]
    stored = {found[0] for found in await sql.execute(inserting, first)} if first else set()
    logins = [(link_id, click) for link_id, click in in_order if click.parent_uid is not None]
    if not logins:
        return stored
    parents = await sql.execute(
        select(CLICKS.c.uid, CLICKS.c.user_touch_link_id, CLICKS.c.id)
        .where(CLICKS.c.uid.in_([click.parent_uid for _, click in logins]), CLICKS.c.track_type == TrackType.ON_CLICK)
    )
    number_of = {(uid, link_id): number for uid, link_id, number in parents}
    rows = [row(link_id, click, number_of[click.parent_uid or "", link_id])
            for link_id, click in logins if (click.parent_uid, link_id) in number_of]
    if rows:
        # A second child of one click meets the unique parent_id and is left out.
        stored |= {found[0] for found in await sql.execute(inserting, rows)}
        await sql.execute(
            update(CLICKS).where(CLICKS.c.id.in_([each["parent_id"] for each in rows])).values(child_known=True)
        )
    return stored


async def _known_clicks(sql: AsyncConnection, uids: Sequence[str]) -> set[str]:
    return set(await sql.scalars(select(CLICKS.c.uid).where(CLICKS.c.uid.in_(uids)))) if uids else set()


async def _first_touches(sql: AsyncConnection, uids: Collection[str]) -> dict[str, int]:
    touches = USER_TOUCHES.c
    return _by_first(await sql.execute(
        select(touches.send_uid, func.min(touches.id)).where(touches.send_uid.in_(uids)).group_by(touches.send_uid)
    ))


async def _ids(
    sql: AsyncConnection, name: ColumnElement[str], number: ColumnElement[int], wanted: Iterable[str | None]
) -> dict[str, int]:
    names = [each for each in wanted if each]
    return _by_first(await sql.execute(select(name, number).where(name.in_(names)))) if names else {}


def _by_first(rows: Iterable[Any]) -> dict[str, int]:
    return {row[0]: row[1] for row in rows}

"""Attribution: clicks and links are written down, and what they change of the counts leaves with the transaction."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock
from keystead.ids import new_uid
from keystead.members.conversion import Click, Conversions, Person
from keystead.members.counting import CONVERSIONS_JOB
from keystead.members.models import VisitorClick, VisitorLink
from keystead.members.stats import CONVERSION
from keystead.members.tables import USERS, UTMS, VISITOR_USERS, VISITOR_UTMS, VISITORS
from keystead.members.utms import Utm
from keystead.store import Database, SqlOutbox

_JOB_CHANGES: Final = 100  # a campaign may be named by 15,000 characters, and a job should stay small


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of entries. ``known``: it was written down before. ``lost``: there is no such device or person."""

    inserted: int
    known: int
    lost: int


class Attribution:
    """Writes down entries of the queues, any number in one transaction.

    Whoever adds to a device locks it, and then the people whose credit may change, each kind in the order of ids: so
    the newest click of a person is never decided twice at once, and nobody waits in a circle. An entry that comes again
    changes nothing. Counts follow through the SQL outbox, once.
    """

    def __init__(self, database: Database, outbox: SqlOutbox, clock: Clock) -> None:
        self._database, self._outbox, self._clock = database, outbox, clock

    async def record_clicks(self, entries: Sequence[VisitorClick]) -> Recorded:
        """New clicks of devices. ``Invalid`` if one of them is no campaign: then none is written."""
        utms = [Utm.of_click(entry) for entry in entries]
        uids = [click_uid(entry, utm) for entry, utm in zip(entries, utms, strict=True)]
        conversions = Conversions(CONVERSION.day_of)
        rows: dict[str, tuple[int, Utm, float]] = {}
        lost = 0
        async with self._database.transaction() as sql:
            visitors = await _lock_visitors(sql, {entry.visitor_uid for entry in entries})
            known = await _known_clicks(sql, uids)
            users_of = await _users_of(sql, visitors.values())
            people = await _lock_people(sql, {user for users in users_of.values() for user in users})
            for entry, utm, uid in zip(entries, utms, uids, strict=True):
                visitor = visitors.get(entry.visitor_uid)
                if visitor is None:
                    lost += 1
                elif uid not in known and uid not in rows:
                    rows[uid] = visitor, utm, entry.clicked_at
                    click = Click(entry.clicked_at, uid, utm.canonical)
                    conversions.clicked(click, [people[user] for user in users_of.get(visitor, ())])
            if rows:
                await _touch(sql, Counter(visitor for visitor, _, _ in rows.values()))
                ids = await self._utm_ids(sql, {utm.canonical: utm for _, utm, _ in rows.values()})
                await self._database.insert_many(sql, VISITOR_UTMS, [
                    {"uid": uid, "visitor_id": visitor, "utm_id": ids[utm.canonical], "clicked_at": clicked_at}
                    for uid, (visitor, utm, clicked_at) in rows.items()
                ])
                await self._announce(sql, conversions)
        return Recorded(len(rows), len(entries) - len(rows) - lost, lost)

    async def record_links(self, entries: Sequence[VisitorLink]) -> Recorded:
        """People were seen on devices. A link that is known is only seen later than before."""
        conversions = Conversions(CONVERSION.day_of)
        seen: dict[tuple[int, int], list[float]] = defaultdict(list)  # by user and device, in the order of the queue
        lost = 0
        async with self._database.transaction() as sql:
            visitors = await _lock_visitors(sql, {entry.visitor_uid for entry in entries})
            users = await _ids_of(sql, {entry.user_sub for entry in entries})
            people = await _lock_people(sql, users.values())
            for entry in entries:
                user, visitor = users.get(entry.user_sub), visitors.get(entry.visitor_uid)
                if user is None or visitor is None or user not in people:
                    lost += 1
                else:
                    seen[user, visitor].append(entry.seen_at)
            known = await _known_links(sql, {user for user, _ in seen})
            new = {pair: times for pair, times in seen.items() if pair not in known}
            clicks = await _clicks_of(sql, {visitor for _, visitor in new})
            for (user, visitor), times in new.items():
                conversions.linked(people[user], clicks.get(visitor, ()), times[0])
            await _see_again(sql, {pair: max(times) for pair, times in seen.items() if pair in known})
            if new:
                await _touch(sql, Counter(visitor for _, visitor in new))
                await self._database.insert_many(sql, VISITOR_USERS, [
                    {"user_id": user, "visitor_id": visitor, "first_seen_at": min(times), "last_seen_at": max(times)}
                    for (user, visitor), times in new.items()
                ])
                await self._announce(sql, conversions)
        return Recorded(len(new), len(entries) - len(new) - lost, lost)

    async def _utm_ids(self, sql: AsyncConnection, utms: Mapping[str, Utm]) -> dict[str, int]:
        """Ids by canonical spelling; campaigns nobody has seen are made, in order, so that two who do wait in line."""
        found = select(UTMS.c.canonical_query_param, UTMS.c.id).where(UTMS.c.canonical_query_param.in_(utms))
        ids = _by_first(await sql.execute(found))
        if missing := sorted(utms.keys() - ids.keys()):
            now = self._clock.now()
            await self._database.insert_many(sql, UTMS, [
                {"canonical_query_param": name, **utms[name].parts(), "created_at": now} for name in missing
            ], ignore_conflicts=True)
            ids = _by_first(await sql.execute(found))
        return ids

    async def _announce(self, sql: AsyncConnection, conversions: Conversions) -> None:
        """Leave the changes in the outbox, as jobs with a uid of their own under which they are counted once."""
        by_day = conversions.by_day()
        named = {utm for changes in by_day.values() for utm, _, _ in changes}
        verified = set(await sql.scalars(
            select(UTMS.c.canonical_query_param).where(UTMS.c.verified, UTMS.c.canonical_query_param.in_(named))
        ))
        for day, changes in by_day.items():
            for first in range(0, len(changes), _JOB_CHANGES):
                some = changes[first : first + _JOB_CHANGES]
                await self._outbox.enqueue(
                    sql, CONVERSIONS_JOB, uid=new_uid("conv"), unix_date=day, changes=some,
                    verified=sorted(verified & {utm for utm, _, _ in some}),
                )


def click_uid(entry: VisitorClick, utm: Utm) -> str:
    """The same for the same entry, so that one that is processed again is recognised."""
    raw = msgspec.json.encode([entry.visitor_uid, utm.canonical, entry.clicked_at])
    return f"vutm_{hashlib.sha256(raw).hexdigest()[:40]}"


# -- reading and locking --------------------------------------------------------------------------------------------
# NO KEY UPDATE: rows that only refer to a locked one may still be inserted. SQLite has one writer and needs no locks.


def _by_first(rows: Iterable[Any]) -> dict[str, int]:
    return {row[0]: row[1] for row in rows}


async def _lock_visitors(sql: AsyncConnection, uids: Iterable[str]) -> dict[str, int]:
    rows = await sql.execute(
        select(VISITORS.c.uid, VISITORS.c.id).where(VISITORS.c.uid.in_(list(uids))).order_by(VISITORS.c.id)
        .with_for_update(key_share=True)
    )
    return _by_first(rows)


async def _lock_people(sql: AsyncConnection, ids: Iterable[int]) -> dict[int, Person]:
    """People by id, with the newest of their attributable clicks."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    rows = await sql.execute(
        select(USERS.c.id, USERS.c.created_at).where(USERS.c.id.in_(wanted)).order_by(USERS.c.id)
        .with_for_update(key_share=True)
    )
    people = {number: Person(joined_at) for number, joined_at in rows}
    clicks, links = VISITOR_UTMS.c, VISITOR_USERS.c
    newest_first = func.row_number().over(
        partition_by=links.user_id, order_by=(clicks.clicked_at.desc(), clicks.uid.desc())
    )
    ranked = (
        select(links.user_id, clicks.clicked_at, clicks.uid, UTMS.c.canonical_query_param, newest_first.label("place"))
        .select_from(VISITOR_USERS).join(USERS, USERS.c.id == links.user_id)
        .join(VISITOR_UTMS, clicks.visitor_id == links.visitor_id).join(UTMS, UTMS.c.id == clicks.utm_id)
        .where(links.user_id.in_(wanted), clicks.clicked_at <= USERS.c.created_at).subquery()
    )
    newest = select(ranked.c.user_id, ranked.c.clicked_at, ranked.c.uid, ranked.c.canonical_query_param)
    for user, clicked_at, uid, utm in await sql.execute(newest.where(ranked.c.place == 1)):
        if user in people:
            people[user].newest = Click(clicked_at, uid, utm)
    return people


async def _known_clicks(sql: AsyncConnection, uids: Sequence[str]) -> set[str]:
    return set(await sql.scalars(select(VISITOR_UTMS.c.uid).where(VISITOR_UTMS.c.uid.in_(uids))))


async def _users_of(sql: AsyncConnection, visitors: Iterable[int]) -> dict[int, list[int]]:
    links: dict[int, list[int]] = defaultdict(list)
    pairs = select(VISITOR_USERS.c.visitor_id, VISITOR_USERS.c.user_id)
    for visitor, user in await sql.execute(pairs.where(VISITOR_USERS.c.visitor_id.in_(list(visitors)))):
        links[visitor].append(user)
    return links


async def _ids_of(sql: AsyncConnection, subs: Iterable[str]) -> dict[str, int]:
    rows = await sql.execute(select(USERS.c.sub, USERS.c.id).where(USERS.c.sub.in_(list(subs))))
    return _by_first(rows)


async def _known_links(sql: AsyncConnection, users: Iterable[int]) -> set[tuple[int, int]]:
    pairs = select(VISITOR_USERS.c.user_id, VISITOR_USERS.c.visitor_id)
    return {(user, visitor)
            for user, visitor in await sql.execute(pairs.where(VISITOR_USERS.c.user_id.in_(list(users))))}


async def _clicks_of(sql: AsyncConnection, visitors: Iterable[int]) -> dict[int, list[Click]]:
    clicks: dict[int, list[Click]] = defaultdict(list)
    rows = await sql.execute(
        select(VISITOR_UTMS.c.visitor_id, VISITOR_UTMS.c.clicked_at, VISITOR_UTMS.c.uid, UTMS.c.canonical_query_param)
        .join(UTMS, UTMS.c.id == VISITOR_UTMS.c.utm_id).where(VISITOR_UTMS.c.visitor_id.in_(list(visitors)))
    )
    for visitor, clicked_at, uid, utm in rows:
        clicks[visitor].append(Click(clicked_at, uid, utm))
    return clicks


async def _touch(sql: AsyncConnection, visitors: Mapping[int, int]) -> None:
    """Let the version of each device grow by as many clicks or links as it got."""
    grown = update(VISITORS).where(VISITORS.c.id == bindparam("visitor"))
    await sql.execute(
        grown.values(version=VISITORS.c.version + bindparam("by")),
        [{"visitor": visitor, "by": amount} for visitor, amount in sorted(visitors.items())],
    )


async def _see_again(sql: AsyncConnection, seen: Mapping[tuple[int, int], float]) -> None:
    if seen:
        links = VISITOR_USERS.c
        later = update(VISITOR_USERS).where(
            links.user_id == bindparam("user"), links.visitor_id == bindparam("visitor"),
            links.last_seen_at < bindparam("at"),
        )
        await sql.execute(later.values(last_seen_at=bindparam("at")), [
            {"user": user, "visitor": visitor, "at": at} for (user, visitor), at in sorted(seen.items())
        ])

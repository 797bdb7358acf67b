"""Contacts from a CSV file of any length: a thousand lines in each transaction, broken lines left out and told."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from sqlalchemy import Table, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock
from keystead.ids import UserSub
from keystead.members.addresses import folded_email
from keystead.members.contact_changes import Action, ContactChanges
from keystead.members.contact_tables import USER_EMAIL_ADDRESSES, USER_PHONE_NUMBERS
from keystead.members.contacts_lines import BrokenLine, ContactLine, ContactLines
from keystead.members.people import lock_people
from keystead.members.veil import Veil
from keystead.store import Database, SqlOutbox

BATCH_LINES: Final = 1000
# So many broken lines are kept in the result; all of them are counted and told.
KEPT_BROKEN: Final = 100
_WHY: Final = "migration"


@dataclass(slots=True)
class Imported:
    """What became of a file so far. ``known``: addresses that people had already, with nothing to change."""

    lines: int = 0
    created: int = 0
    verified: int = 0
    known: int = 0
    broken: int = 0
    first_broken: list[BrokenLine] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Given:
    """An address that a line gives to somebody. ``key``: what it is compared by."""

    sub: UserSub
    user_id: int
    address: str
    key: str
    verified: bool
    enabled: bool


class ContactsImport:
    """Imports contacts. Who repeats it, also after it was cut off, changes nothing that was imported before."""

    def __init__(
        self, database: Database, outbox: SqlOutbox, clock: Clock, veil: Veil = Veil()  # noqa: B008 - a value
    ) -> None:
        self._database, self._outbox, self._clock, self._veil = database, outbox, clock, veil

    async def run(
        self, file: BinaryIO, *, region: str | None = None,
        on_broken: Callable[[BrokenLine], None] = lambda broken: None,
        on_batch: Callable[[Imported], None] = lambda imported: None,
    ) -> Imported:
        """Import a whole file; see ``ContactLines`` for its form. Memory does not grow with the file.

        ``on_broken`` hears of each line that is left out, ``on_batch`` after each thousand. ``Invalid`` for a header
        that cannot be used: then nothing is imported.
        """
        lines = await asyncio.to_thread(ContactLines, file, region)
        result = Imported()
        while batch := await asyncio.to_thread(lines.take, BATCH_LINES):
            broken = [line for line in batch if isinstance(line, BrokenLine)]
            broken += await self._store([line for line in batch if isinstance(line, ContactLine)], result)
            result.lines += len(batch)
            result.broken += len(broken)
            result.first_broken += broken[: KEPT_BROKEN - len(result.first_broken)]
            for line in broken:
                on_broken(line)
            on_batch(result)
        return result

    async def _store(self, lines: Sequence[ContactLine], result: Imported) -> list[BrokenLine]:
        """One transaction; returns lines of people who do not exist."""
        now = self._clock.now()
        changes = ContactChanges(now)
        async with self._database.transaction() as sql:
            people = await lock_people(sql, {UserSub(line.user_sub) for line in lines})
            known = [line for line in lines if line.user_sub in people]
            emails = [_given(line, people[UserSub(line.user_sub)].id, line.email) for line in known if line.email]
            phones = [_given(line, people[UserSub(line.user_sub)].id, line.phone) for line in known if line.phone]
            counts = [
                await self._give(sql, table, shown, key, name, channel, reason, given, changes, now)
                for table, shown, key, name, channel, reason, given in (
                    (USER_EMAIL_ADDRESSES, "email", "folded", "email", "email", "email_added", emails),
                    (USER_PHONE_NUMBERS, "phone_number", "phone_number", "phone", "sms", "phone_verify_finish", phones),
                )
            ]
            await self._veil.lift_emails(sql, {each.key: each.address for each in emails})
            await self._veil.lift_phones(sql, (each.key for each in phones))
            await changes.store(sql, self._database, self._outbox)
        created, verified = (sum(each) for each in zip(*counts, strict=True))
        result.created += created
        result.verified += verified
        result.known += len(emails) + len(phones) - created - verified
        return [BrokenLine(line.number, "there is no such person") for line in lines if line.user_sub not in people]

    async def _give(
        self, sql: AsyncConnection, table: Table, shown: str, key: str, name: str, channel: str, reason: str,
        given: Sequence[_Given], changes: ContactChanges, now: float,
    ) -> tuple[int, int]:
        """How many addresses are new, and how many known ones are verified by now."""
        by_pair = {(each.user_id, each.key): each for each in _strongest(given)}
        if not by_pair:
            return 0, 0
        pair = (table.c.user_id, table.c[key])
        inserting = self._database.insert(table).on_conflict_do_nothing().returning(*pair)
        rows = [{
            "user_id": each.user_id, shown: each.address, key: each.key, "verified": each.verified,
            "receives_notifications": each.enabled, "created_at": now,
        } for each in by_pair.values()]
        created = {(user, found) for user, found in await sql.execute(inserting, rows)}
        for each in (by_pair[one] for one in created):
            action = Action.CREATE_VERIFIED if each.verified else Action.CREATE_UNVERIFIED
            changes.did(each.user_id, name, each.address, action, _WHY, enabled=each.enabled)
            if each.verified and each.enabled:
                changes.reached(each.sub, channel, reason)
        rest = [one for one, each in by_pair.items() if one not in created and each.verified]
        if not rest:
            return len(created), 0
        verified = await sql.execute(
            update(table).where(tuple_(*pair).in_(rest), ~table.c.verified).values(verified=True)
            .returning(*pair, table.c.receives_notifications)
        )
        count = 0
        for user, found, enabled in verified.all():
            each, count = by_pair[user, found], count + 1
            changes.did(user, name, each.address, Action.VERIFY, _WHY)
            if enabled:
                changes.reached(each.sub, channel, reason)
        return len(created), count


def _given(line: ContactLine, user_id: int, address: str) -> _Given:
    key = folded_email(address)  # a number is the same in any case
    return _Given(UserSub(line.user_sub), user_id, address, key, line.verified, line.receives_notifications)


def _strongest(given: Sequence[_Given]) -> Iterable[_Given]:
    """The same address twice in a batch counts as verified if one of the lines says so: that one comes last."""
    return sorted(given, key=lambda each: each.verified)

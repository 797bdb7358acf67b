"""Addresses and numbers that nobody writes to: they bounced, complained, cannot be reached, or said stop."""

import hashlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock
from keystead.ids import UserSub, new_uid
from keystead.members.addresses import folded_email
from keystead.members.contact_changes import Action, ContactChanges
from keystead.members.contact_tables import (
    EMAIL_FAILURES,
    SUPPRESSED_EMAILS,
    SUPPRESSED_PHONE_NUMBERS,
    UNSUBSCRIBED_EMAILS_LOG,
    USER_EMAIL_ADDRESSES,
    USER_PHONE_NUMBERS,
)
from keystead.members.tables import USERS, VISITORS
from keystead.members.veil import Veil
from keystead.store import Database, SqlOutbox

# So many failures that may pass by themselves, within so long, count as one that does not.
TRANSIENT_FAILURES: Final = 3
TRANSIENT_SECONDS: Final = 30 * 86400.0
STEP: Final = 100
_MOST_ADDRESS: Final = 320
_MOST_EXTRA: Final = 500


class EmailReason(StrEnum):
    """Why an address is not written to."""

    BOUNCE = "Bounce"
    COMPLAINT = "Complaint"
    USER = "User"
    ADMIN = "Admin"


class PhoneReason(StrEnum):
    """Why a number is not written to."""

    STOP = "Stop"
    UNREACHABLE = "Unreachable"
    USER = "User"


_TOLD: Final = {EmailReason.USER: "user", PhoneReason.USER: "user", PhoneReason.STOP: "sms_stop"}


class Suppression:
    """Keeps both lists. Each change is one transaction with all that follows from it, and safe to repeat."""

    def __init__(
        self, database: Database, outbox: SqlOutbox, clock: Clock, veil: Veil = Veil()  # noqa: B008 - a value
    ) -> None:
        self._database, self._outbox, self._clock, self._veil = database, outbox, clock, veil

    # -- email ------------------------------------------------------------------------------------------------------

    async def suppress_email(self, address: str, reason: EmailReason | str) -> bool:
        """Write to this address no more; says whether that is new. Those who have it are told to the reminders."""
        async with self._database.transaction() as sql:
            return await self._suppress_email(sql, address, EmailReason(reason))

    async def email_failed(
        self, address: str, failure_type: EmailReason | str, failure_extra: str = "", *, cause: str = ""
    ) -> bool:
        """An email bounced or was complained about: record it, and suppress the address; says whether it is now.

        ``failure_extra``: for a bounce its two types, such as ``Transient/General``. A transient one suppresses only
        when three came within thirty days. ``cause``: what failed, such as the email's uid; news of the same cause and
        address are recorded once.
        """
        kind, folded, now = EmailReason(failure_type), folded_email(address), self._clock.now()
        extra = failure_extra[:_MOST_EXTRA]
        row = {
            "uid": _failure_uid(cause, folded, kind) if cause else new_uid("ef"), "email_address": address.strip(),
            "folded": folded, "failure_type": kind.value, "failure_extra": extra, "created_at": now,
        }
        async with self._database.transaction() as sql:
            await self._database.insert_many(sql, EMAIL_FAILURES, [row], ignore_conflicts=True)
            if _is_transient(kind, extra) and await self._recent_failures(sql, folded, now) < TRANSIENT_FAILURES:
                return await _is_listed(sql, (folded, self._veil.of(folded)))
            await self._suppress_email(sql, address, kind)
            return True

    async def unsubscribe_email(self, address: str, *, link_code: str, visitor_uid: str | None = None) -> bool:
        """Somebody who holds a link to do so wants no more email at this address; says whether that is new. Logged."""
        now = self._clock.now()
        async with self._database.transaction() as sql:
            visitor = None
            if visitor_uid is not None:
                visitor = await sql.scalar(select(VISITORS.c.id).where(VISITORS.c.uid == visitor_uid))
            suppressed = await self._suppress_email(sql, address, EmailReason.USER)
            await self._database.insert_many(sql, UNSUBSCRIBED_EMAILS_LOG, [{
                "uid": new_uid("uel"), "link_code": link_code, "visitor_id": visitor,
                "visitor_known": visitor is not None, "email_address": address.strip()[:_MOST_ADDRESS],
                "suppressed": suppressed, "created_at": now,
            }])
            return suppressed

    async def lift_email(self, address: str) -> bool:
        """Let an address be written to again; says whether it was on the list."""
        folded, changes = folded_email(address), ContactChanges(self._clock.now())
        async with self._database.transaction() as sql:
            either = SUPPRESSED_EMAILS.c.folded.in_((folded, self._veil.of(folded)))
            gone = await sql.execute(delete(SUPPRESSED_EMAILS).where(either))
            if not gone.rowcount:
                return False
            for sub in await _people_of_email(sql, folded):
                changes.reached(sub, "email", "email_added")
            await changes.store(sql, self._database, self._outbox)
        return True

    async def emails(self, addresses: Iterable[str]) -> set[str]:
        """Those of the addresses that must not be written to, spelled as given. A hundred for each query."""
        by_key: dict[str, list[str]] = {}
        for address in addresses:
            by_key.setdefault(folded_email(address), []).append(address)
        listed = SUPPRESSED_EMAILS.c.folded
        return {address for key in await self._listed(listed, list(by_key)) for address in by_key[key]}

    # -- phones -----------------------------------------------------------------------------------------------------

    async def suppress_phone(
        self, number: str, reason: PhoneReason | str, details: Mapping[str, object] | None = None
    ) -> bool:
        """Write to this number no more; says whether that is new. Those who have it are told to the reminders."""
        why, changes = PhoneReason(reason), ContactChanges(self._clock.now())
        row = {
            "uid": new_uid("spn"), "phone_number": number, "reason": why.value, "reason_details": dict(details or {}),
            "created_at": self._clock.now(),
        }
        async with self._database.transaction() as sql:
            new = await self._database.insert_many(sql, SUPPRESSED_PHONE_NUMBERS, [row], ignore_conflicts=True)
            if not new:
                return False
            for _, sub, _, _ in await _owners_of_phone(sql, number):
                changes.reached(sub, "sms", _TOLD.get(why, "unreachable"))
            await changes.store(sql, self._database, self._outbox)
        return True

    async def lift_phone(self, number: str) -> bool:
        """The holder of a number wants texts again. Says whether there is exactly one person who has it.

        Then the number is verified, gets texts, and is off the list. Otherwise nothing happens: nobody knows whose
        wish it was.
        """
        changes = ContactChanges(self._clock.now())
        async with self._database.transaction() as sql:
            owners = await _owners_of_phone(sql, number)
            if len(owners) != 1:
                return False
            user, sub, verified, enabled = owners[0]
            own = (USER_PHONE_NUMBERS.c.user_id == user, USER_PHONE_NUMBERS.c.phone_number == number)
            await sql.execute(update(USER_PHONE_NUMBERS).where(*own).values(verified=True, receives_notifications=True))
            either = SUPPRESSED_PHONE_NUMBERS.c.phone_number.in_((number, self._veil.of(number)))
            gone = await sql.execute(delete(SUPPRESSED_PHONE_NUMBERS).where(either))
            if not verified:
                changes.did(user, "phone", number, Action.VERIFY, "sms_start")
            if not enabled:
                changes.did(user, "phone", number, Action.ENABLE, "sms_start")
            if gone.rowcount or not verified or not enabled:
                changes.reached(sub, "sms", "sms_start")
            await changes.store(sql, self._database, self._outbox)
        return True

    async def phones(self, numbers: Iterable[str]) -> set[str]:
        """Those of the numbers that must not be written to. A hundred for each query."""
        return await self._listed(SUPPRESSED_PHONE_NUMBERS.c.phone_number, list(dict.fromkeys(numbers)))

    # -- inside -----------------------------------------------------------------------------------------------------

    async def _suppress_email(self, sql: AsyncConnection, address: str, reason: EmailReason) -> bool:
        folded, now = folded_email(address), self._clock.now()
        row = {"uid": new_uid("se"), "email_address": address.strip()[:_MOST_ADDRESS], "folded": folded,
               "reason": reason.value, "created_at": now}
        if not await self._database.insert_many(sql, SUPPRESSED_EMAILS, [row], ignore_conflicts=True):
            return False
        changes = ContactChanges(now)
        for sub in await _people_of_email(sql, folded):
            changes.reached(sub, "email", _TOLD.get(reason, "unreachable"))
        await changes.store(sql, self._database, self._outbox)
        return True

    @staticmethod
    async def _recent_failures(sql: AsyncConnection, folded: str, now: float) -> int:
        failures = EMAIL_FAILURES.c
        # Of several that fail at the same moment the last one sees them all.
        await sql.execute(
            select(failures.id).where(failures.folded == folded).order_by(failures.id).with_for_update()
        )
        return await sql.scalar(
            select(func.count()).where(failures.folded == folded, failures.created_at > now - TRANSIENT_SECONDS)
        ) or 0

    async def _listed(self, column: ColumnElement[str], keys: list[str]) -> set[str]:
        """Those of the keys that are listed, spelled out or veiled."""
        found: set[str] = set()
        async with self._database.reading() as sql:
            for first in range(0, len(keys), STEP):
                by_text = {text: key for key in keys[first : first + STEP] for text in (key, self._veil.of(key))}
                listed = await sql.scalars(select(column).where(column.in_(list(by_text))))
                found.update(by_text[text] for text in listed)
        return found


def _is_transient(kind: EmailReason, extra: str) -> bool:
    return kind is EmailReason.BOUNCE and extra.lower().startswith("transient")


def _failure_uid(cause: str, folded: str, kind: EmailReason) -> str:
    return "ef_" + hashlib.blake2b(f"{cause}\0{folded}\0{kind}".encode(), digest_size=16).hexdigest()


async def _is_listed(sql: AsyncConnection, either: tuple[str, str]) -> bool:
    listed = await sql.scalar(select(SUPPRESSED_EMAILS.c.id).where(SUPPRESSED_EMAILS.c.folded.in_(either)).limit(1))
    return listed is not None


async def _people_of_email(sql: AsyncConnection, folded: str) -> list[UserSub]:
    rows = USER_EMAIL_ADDRESSES.c
    wanted = select(USERS.c.sub).join(USER_EMAIL_ADDRESSES, rows.user_id == USERS.c.id).where(rows.folded == folded)
    return list(await sql.scalars(wanted))


async def _owners_of_phone(sql: AsyncConnection, number: str) -> list[tuple[int, UserSub, bool, bool]]:
    """Id, sub, verified and enabled of whoever has the number."""
    rows = USER_PHONE_NUMBERS.c
    wanted = (
        select(USERS.c.id, USERS.c.sub, rows.verified, rows.receives_notifications)
        .join(USER_PHONE_NUMBERS, rows.user_id == USERS.c.id).where(rows.phone_number == number)
    )
    return [(user, UserSub(sub), verified, enabled) for user, sub, verified, enabled in await sql.execute(wanted)]

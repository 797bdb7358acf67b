"""Where people can be reached: email addresses, phone numbers, devices; and what a message says of its reader."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Table, bindparam, delete, exists, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock
from keystead.errors import Conflict, NotFound
from keystead.ids import UserSub
from keystead.members.addresses import folded_email, normal_email, normal_phone
from keystead.members.contact_changes import ERASED_JOB, Action, ContactChanges
from keystead.members.contact_tables import (
    CONTACT_METHOD_LOG,
    EMAIL_FAILURES,
    USER_EMAIL_ADDRESSES,
    USER_PHONE_NUMBERS,
    USER_PUSH_TOKENS,
    USER_TIMEZONE_LOG,
)
from keystead.members.people import EMAIL_SUPPRESSED, PHONE_SUPPRESSED, lock_person
from keystead.members.tables import USERS
from keystead.members.veil import Veil
from keystead.store import Database, Query, SqlOutbox

STEP: Final = 100
MOST_ADDRESSES: Final = 20


class Added(Enum):
    """What ``add_email`` and ``add_phone`` did: made it, marked a known one as verified, or nothing."""

    CREATED = "created"
    VERIFIED = "verified"
    KNOWN = "known"


@dataclass(frozen=True, slots=True)
class Contact:
    """One way to reach somebody. ``suppressed``: nobody writes there, whatever the person has set."""

    address: str
    verified: bool
    receives_notifications: bool
    suppressed: bool
    created_at: float

    @property
    def usable(self) -> bool:
        return self.verified and self.receives_notifications and not self.suppressed


@dataclass(frozen=True, slots=True)
class Device:
    """A device that push messages can be sent to."""

    token: str
    platform: str
    receives_notifications: bool
    created_at: float
    last_seen_at: float


@dataclass(frozen=True, slots=True)
class Described:
    """What a message may say of its reader. ``timezone``: what they said, None if nothing."""

    given_name: str
    timezone: str | None
    created_at: float


@dataclass(frozen=True, slots=True)
class _Kind:
    """Addresses of one kind: where they are, what they are called in the log, and on which channel they reach."""

    table: Table
    name: Literal["email", "phone"]
    channel: Literal["email", "sms"]
    shown: str
    compared: str
    suppressed: ColumnElement[bool]
    added: str

    def key(self, normal: str) -> str:
        return folded_email(normal) if self.name == "email" else normal

    def values(self, normal: str) -> dict[str, str]:
        return {"email": normal, "folded": folded_email(normal)} if self.name == "email" else {"phone_number": normal}


_EMAIL: Final = _Kind(
    USER_EMAIL_ADDRESSES, "email", "email", "email", "folded",
    EMAIL_SUPPRESSED, "email_added",
)
_PHONE: Final = _Kind(
    USER_PHONE_NUMBERS, "phone", "sms", "phone_number", "phone_number",
    PHONE_SUPPRESSED, "phone_verify_finish",
)


def _listing(kind: _Kind) -> Query:
    columns = kind.table.c
    return Query(
        select(columns[kind.shown], columns.verified, columns.receives_notifications, kind.suppressed,
               columns.created_at)
        .join(USERS, USERS.c.id == columns.user_id).where(USERS.c.sub == bindparam("sub")).order_by(columns.id)
    )


_LISTED: Final = {kind.name: _listing(kind) for kind in (_EMAIL, _PHONE)}
_TOKENS: Final = USER_PUSH_TOKENS.c
_DEVICES: Final = Query(
    select(_TOKENS.token, _TOKENS.platform, _TOKENS.receives_notifications, _TOKENS.created_at, _TOKENS.last_seen_at)
    .join(USERS, USERS.c.id == _TOKENS.user_id).where(USERS.c.sub == bindparam("sub"))
    .order_by(_TOKENS.last_seen_at.desc(), _TOKENS.id.desc())
)


class Contacts:
    """Stores and finds contacts. Each change is one transaction, logged, counted once, and told to the reminders."""

    def __init__(
        self, database: Database, outbox: SqlOutbox, clock: Clock, veil: Veil = Veil()  # noqa: B008 - a value
    ) -> None:
        self._database, self._outbox, self._clock, self._veil = database, outbox, clock, veil

    # -- changes ----------------------------------------------------------------------------------------------------

    async def add_email(
        self, sub: UserSub, email: str, *, verified: bool = False, receives_notifications: bool = True,
        why: str = "app",
    ) -> Added:
        """Give the person an address. One that they have is marked as verified if it is now; its other flags stay.

        ``why``: identity, verify, app or migration. ``Invalid`` for what is no address, ``NotFound`` without the
        person, ``Conflict`` for one who has too many.
        """
        return await self._add(_EMAIL, sub, normal_email(email), verified, receives_notifications, why)

    async def add_phone(
        self, sub: UserSub, number: str, *, verified: bool = False, receives_notifications: bool = True,
        why: str = "app", region: str | None = None,
    ) -> Added:
        """``add_email`` for a number. ``region``: the country a number without a leading + is dialled in."""
        return await self._add(_PHONE, sub, normal_phone(number, region), verified, receives_notifications, why)

    async def remove_email(self, sub: UserSub, email: str, *, why: str = "user") -> bool:
        """Forget an address of the person; says whether they had it."""
        return await self._remove(_EMAIL, sub, normal_email(email), why)

    async def remove_phone(self, sub: UserSub, number: str, *, why: str = "user", region: str | None = None) -> bool:
        """Forget a number of the person; says whether they had it."""
        return await self._remove(_PHONE, sub, normal_phone(number, region), why)

    async def set_email_notifications(self, sub: UserSub, email: str, enabled: bool) -> bool:
        """Whether an address of the person is written to; says whether that is a change. ``NotFound`` without it."""
        return await self._enable(_EMAIL, sub, normal_email(email), enabled)

    async def set_phone_notifications(self, sub: UserSub, number: str, enabled: bool) -> bool:
        """Whether a number of the person is written to; says whether that is a change. ``NotFound`` without it."""
        return await self._enable(_PHONE, sub, normal_phone(number), enabled)

    async def erase(self, sub: UserSub) -> None:
        """Forget every way to reach the person and how they came about, in one transaction; the rooms above are told.

        Addresses that must not be written to stay on their list, as a hash if nobody else has them. The person stays:
        their row goes with their account. ``NotFound`` without the person.
        """
        now = self._clock.now()
        changes = ContactChanges(now)
        async with self._database.transaction() as sql:
            user = await lock_person(sql, sub)
            addresses = USER_EMAIL_ADDRESSES.c
            numbers = USER_PHONE_NUMBERS.c
            had = list(await sql.scalars(select(addresses.folded).where(addresses.user_id == user)))
            had_numbers = list(await sql.scalars(select(numbers.phone_number).where(numbers.user_id == user)))
            for table, name in (
                (USER_PUSH_TOKENS, "push"), (USER_EMAIL_ADDRESSES, "email"), (USER_PHONE_NUMBERS, "phone"),
            ):
                gone = await sql.execute(delete(table).where(table.c.user_id == user))
                for _ in range(gone.rowcount):
                    changes.counted(name, Action.DELETE, "account")
                    if name == "push":
                        changes.counted_token("deleted_due_to_user_deletion")
            for table in (CONTACT_METHOD_LOG, USER_TIMEZONE_LOG):
                await sql.execute(delete(table).where(table.c.user_id == user))
            shared = exists().where(addresses.folded == EMAIL_FAILURES.c.folded)
            await sql.execute(delete(EMAIL_FAILURES).where(EMAIL_FAILURES.c.folded.in_(had), ~shared))
            left = set(await sql.scalars(select(addresses.folded).where(addresses.folded.in_(had))))
            left |= set(await sql.scalars(select(numbers.phone_number).where(numbers.phone_number.in_(had_numbers))))
            await self._veil.draw(sql, set(had) - left, set(had_numbers) - left)
            await changes.store(sql, self._database, self._outbox)
            await self._outbox.enqueue(sql, ERASED_JOB, user_sub=sub)

    # -- reading ----------------------------------------------------------------------------------------------------

    async def emails_of(self, subs: Iterable[UserSub]) -> dict[UserSub, list[str]]:
        """Addresses of each person that may be written to: verified, enabled and not suppressed; oldest first.

        This and the next two ask for a hundred people with each query, and have an entry for everybody who was asked
        for.
        """
        return await self._reached(subs, USER_EMAIL_ADDRESSES, "email", USER_EMAIL_ADDRESSES.c.verified,
                                   ~_EMAIL.suppressed)

    async def phones_of(self, subs: Iterable[UserSub]) -> dict[UserSub, list[str]]:
        """Numbers of each person that may be written to: verified, enabled and not suppressed; oldest first."""
        return await self._reached(subs, USER_PHONE_NUMBERS, "phone_number", USER_PHONE_NUMBERS.c.verified,
                                   ~_PHONE.suppressed)

    async def tokens_of(self, subs: Iterable[UserSub]) -> dict[UserSub, list[str]]:
        """Devices of each person that push messages may be sent to; oldest first."""
        return await self._reached(subs, USER_PUSH_TOKENS, "token")

    async def described(self, subs: Iterable[UserSub]) -> dict[UserSub, Described]:
        """Name, zone and age of each person; who does not exist is left out. A hundred people for each query."""
        wanted = select(USERS.c.sub, USERS.c.given_name, USERS.c.timezone, USERS.c.created_at)
        found: dict[UserSub, Described] = {}
        async with self._database.reading() as sql:
            for some in _steps(subs):
                rows = await sql.execute(wanted.where(USERS.c.sub.in_(some)))
                found.update((UserSub(sub), Described(*rest)) for sub, *rest in rows)
        return found

    async def listed_emails(self, sub: UserSub) -> list[Contact]:
        """Every address of the person, oldest first."""
        return await self._listed(_EMAIL, sub)

    async def listed_phones(self, sub: UserSub) -> list[Contact]:
        """Every number of the person, oldest first."""
        return await self._listed(_PHONE, sub)

    async def listed_devices(self, sub: UserSub) -> list[Device]:
        """Every device of the person, the one seen last first."""
        return [Device(*row) for row in await self._database.rows(_DEVICES, sub=sub)]

    # -- inside -----------------------------------------------------------------------------------------------------

    async def _add(
        self, kind: _Kind, sub: UserSub, normal: str, verified: bool, enabled: bool, why: str
    ) -> Added:
        now = self._clock.now()
        changes = ContactChanges(now)
        async with self._database.transaction() as sql:
            user = await lock_person(sql, sub)
            row = await self._own(sql, kind, user, normal)
            if row is None:
                outcome = Added.CREATED
                await self._check_room(sql, kind, user)
                await sql.execute(insert(kind.table).values(
                    **kind.values(normal), user_id=user, verified=verified, receives_notifications=enabled,
                    created_at=now,
                ))
                if kind is _EMAIL:
                    await self._veil.lift_emails(sql, {kind.key(normal): normal})
                else:
                    await self._veil.lift_phones(sql, [normal])
                action = Action.CREATE_VERIFIED if verified else Action.CREATE_UNVERIFIED
                changes.did(user, kind.name, normal, action, why, enabled=enabled)
            elif verified and not row.verified:
                outcome, enabled = Added.VERIFIED, row.receives_notifications
                await sql.execute(update(kind.table).where(kind.table.c.id == row.id).values(verified=True))
                changes.did(user, kind.name, normal, Action.VERIFY, why)
            else:
                return Added.KNOWN
            if verified and enabled:
                changes.reached(sub, kind.channel, kind.added)
            await changes.store(sql, self._database, self._outbox)
        return outcome

    async def _remove(self, kind: _Kind, sub: UserSub, normal: str, why: str) -> bool:
        changes = ContactChanges(self._clock.now())
        async with self._database.transaction() as sql:
            user = await lock_person(sql, sub)
            row = await self._own(sql, kind, user, normal)
            if row is None:
                return False
            await sql.execute(delete(kind.table).where(kind.table.c.id == row.id))
            changes.did(user, kind.name, normal, Action.DELETE, why)
            if row.verified and row.receives_notifications:
                changes.reached(sub, kind.channel, "user")
            await changes.store(sql, self._database, self._outbox)
        return True

    async def _enable(self, kind: _Kind, sub: UserSub, normal: str, enabled: bool) -> bool:
        changes = ContactChanges(self._clock.now())
        async with self._database.transaction() as sql:
            user = await lock_person(sql, sub)
            row = await self._own(sql, kind, user, normal)
            if row is None:
                raise NotFound("the person has no such address")
            if row.receives_notifications == enabled:
                return False
            await sql.execute(
                update(kind.table).where(kind.table.c.id == row.id).values(receives_notifications=enabled)
            )
            changes.did(user, kind.name, normal, Action.ENABLE if enabled else Action.DISABLE, "user")
            if row.verified:
                changes.reached(sub, kind.channel, kind.added if enabled else "user")
            await changes.store(sql, self._database, self._outbox)
        return True

    @staticmethod
    async def _own(sql: AsyncConnection, kind: _Kind, user: int, normal: str) -> Any:
        same = kind.table.c[kind.compared] == kind.key(normal)
        return (await sql.execute(
            select(kind.table.c.id, kind.table.c.verified, kind.table.c.receives_notifications)
            .where(kind.table.c.user_id == user, same)
        )).first()

    @staticmethod
    async def _check_room(sql: AsyncConnection, kind: _Kind, user: int) -> None:
        count = await sql.scalar(select(func.count()).select_from(kind.table).where(kind.table.c.user_id == user))
        if (count or 0) >= MOST_ADDRESSES:
            raise Conflict(f"a person has at most {MOST_ADDRESSES} of these; remove one first")

    async def _reached(
        self, subs: Iterable[UserSub], table: Table, shown: str, *conditions: ColumnElement[bool]
    ) -> dict[UserSub, list[str]]:
        wanted = list(dict.fromkeys(subs))
        found: dict[UserSub, list[str]] = {sub: [] for sub in wanted}
        query = (
            select(USERS.c.sub, table.c[shown]).join(USERS, USERS.c.id == table.c.user_id)
            .where(table.c.receives_notifications, *conditions).order_by(table.c.id)
        )
        async with self._database.reading() as sql:
            for some in _steps(wanted):
                for sub, address in await sql.execute(query.where(USERS.c.sub.in_(some))):
                    found[sub].append(address)
        return found

    async def _listed(self, kind: _Kind, sub: UserSub) -> list[Contact]:
        return [Contact(*row) for row in await self._database.rows(_LISTED[kind.name], sub=sub)]


def _steps(subs: Iterable[UserSub]) -> Iterable[list[UserSub]]:
    wanted = list(dict.fromkeys(subs))
    return (wanted[first : first + STEP] for first in range(0, len(wanted), STEP))

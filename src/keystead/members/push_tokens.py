"""Devices that push messages are sent to. A device belongs to whoever registered it last."""

import asyncio
import random
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock
from keystead.errors import Invalid, NotFound, Unavailable
from keystead.ids import UserSub, new_uid
from keystead.members.contact_changes import Action, ContactChanges
from keystead.members.contact_tables import USER_PUSH_TOKENS
from keystead.members.tables import USERS
from keystead.store import Database, SqlOutbox

REGISTER_TOKEN_JOB: Final = "keystead.members.register_push_token"  # noqa: S105 - a name
TOKENS_PER_PERSON: Final = 10
PLATFORMS: Final = ("ios", "android", "generic")
TOKEN_PATTERN: Final = r"^ExponentPushToken\[[A-Za-z0-9_-]+\]$"  # noqa: S105 - the form of a token
ROUNDS: Final = 10
_PAUSE_SECONDS: Final = 0.2
LEAST_TOKEN, MOST_TOKEN = 20, 63

_TOKEN: Final = re.compile(TOKEN_PATTERN)
Because = Literal["ticket", "receipt", "user"]
_FORGOTTEN_AS: Final = {
    "ticket": "deleted_due_to_unrecognized_ticket", "receipt": "deleted_due_to_unrecognized_receipt",
}


class Registered(StrEnum):
    """What ``register`` did with a token; exactly one of these is counted."""

    REFRESHED = "refreshed"
    REASSIGNED = "reassigned"
    CREATED = "created"


class _LostRace(Exception):
    """Somebody else has just registered the device."""


@dataclass(frozen=True, slots=True)
class _Owned:
    """A token's row, and who has it."""

    id: int
    user_id: int
    sub: UserSub


class PushTokens:
    """Registers and forgets devices. Each change is one transaction with its log, its counts and what follows."""

    def __init__(self, database: Database, outbox: SqlOutbox, clock: Clock) -> None:
        self._database, self._outbox, self._clock = database, outbox, clock

    async def register(self, sub: UserSub, token: str, platform: str) -> Registered:
        """The person uses the device with this token now. Whoever had it before has it no more.

        Somebody with ten devices loses the one that was not seen for the longest time. ``Invalid`` for what is no
        token, ``NotFound`` without the person.
        """
        check_token(token, platform)
        for _ in range(ROUNDS):
            try:
                return await self._register(sub, token, platform)
            except _LostRace:
                await asyncio.sleep(random.uniform(0, _PAUSE_SECONDS))
        raise Unavailable(f"a device could not be registered in {ROUNDS} rounds: others register it too; try again")

    async def _register(self, sub: UserSub, token: str, platform: str) -> Registered:
        now = self._clock.now()
        changes = ContactChanges(now)
        async with self._database.transaction() as sql:
            user, row = await self._locked(sql, sub, token)
            outcome = _outcome(row, user)
            if row is not None and outcome is Registered.REFRESHED:
                await sql.execute(update(USER_PUSH_TOKENS).where(USER_PUSH_TOKENS.c.id == row.id).values(
                    last_seen_at=now, updated_at=now, platform=platform
                ))
            else:
                if row is not None:
                    # The same device in other hands: a new entry, so that nothing of the former owner stays with it.
                    await sql.execute(delete(USER_PUSH_TOKENS).where(USER_PUSH_TOKENS.c.id == row.id))
                    changes.did(row.user_id, "push", token, Action.DELETE, "reassigned", to=sub)
                    changes.reached(row.sub, "push", "unreachable")
                await self._make_room(sql, user, changes)
                if not await self._database.insert_many(sql, USER_PUSH_TOKENS, [{
                    "uid": new_uid("upt"), "user_id": user, "platform": platform, "token": token,
                    "receives_notifications": True, "created_at": now, "updated_at": now, "last_seen_at": now,
                }], ignore_conflicts=True):
                    raise _LostRace
                changes.did(user, "push", token, Action.CREATE_UNVERIFIED, "app", platform=platform)
                changes.reached(sub, "push", "push_token_added")
            changes.counted_token(outcome.value)
            await changes.store(sql, self._database, self._outbox)
        return outcome

    async def forget(self, token: str, because: Because, *, sub: UserSub | None = None) -> bool:
        """The device is not there any more, or its owner is done with it; says whether it was known.

        ``because``: the provider said so when a message was sent (``ticket``) or later (``receipt``), or ``user``.
        ``sub``: only if it is a device of this person.
        """
        own = USER_PUSH_TOKENS.c.token == token
        if sub is not None:
            own &= USER_PUSH_TOKENS.c.user_id == select(USERS.c.id).where(USERS.c.sub == sub).scalar_subquery()
        changes = ContactChanges(self._clock.now())
        async with self._database.transaction() as sql:
            row = (await sql.execute(
                delete(USER_PUSH_TOKENS).where(own).returning(USER_PUSH_TOKENS.c.user_id)
            )).first()
            if row is None:
                return False
            owner = await sql.scalar(select(USERS.c.sub).where(USERS.c.id == row.user_id))
            why = "user" if because == "user" else "device_not_registered"
            changes.did(row.user_id, "push", token, Action.DELETE, why, said_by=because)
            if because in _FORGOTTEN_AS:
                changes.counted_token(_FORGOTTEN_AS[because])
            changes.reached(UserSub(str(owner)), "push", "user" if because == "user" else "unreachable")
            await changes.store(sql, self._database, self._outbox)
        return True

    async def confirm(self, token: str, at: float) -> bool:
        """A message is known to have arrived at the device; says whether there is such a device."""
        return await self.confirm_many({token: at}) == 1

    async def confirm_many(self, times: dict[str, float]) -> int:
        """``confirm`` for several devices in one transaction; says how many of them there are."""
        found = 0
        async with self._database.transaction() as sql:
            for token, at in sorted(times.items()):
                done = await sql.execute(
                    update(USER_PUSH_TOKENS).where(USER_PUSH_TOKENS.c.token == token).values(last_confirmed_at=at)
                )
                found += done.rowcount
        return found

    @staticmethod
    async def _locked(sql: AsyncConnection, sub: UserSub, token: str) -> tuple[int, _Owned | None]:
        """The person's id and the token's row, both held. People first and in order: nobody waits in a circle."""
        tokens = USER_PUSH_TOKENS.c
        owned = select(tokens.user_id).where(tokens.token == token).scalar_subquery()
        people = await sql.execute(
            select(USERS.c.sub, USERS.c.id).where((USERS.c.sub == sub) | (USERS.c.id == owned)).order_by(USERS.c.id)
            .with_for_update(key_share=True)
        )
        user = next((number for found, number in people.all() if found == sub), None)
        if user is None:
            raise NotFound("there is no such person")
        row = (await sql.execute(
            select(tokens.id, tokens.user_id, USERS.c.sub).join(USERS, USERS.c.id == tokens.user_id)
            .where(tokens.token == token).with_for_update(of=USER_PUSH_TOKENS)
        )).first()
        return user, None if row is None else _Owned(*row)

    @staticmethod
    async def _make_room(sql: AsyncConnection, user: int, changes: ContactChanges) -> None:
        """The devices that were not seen for the longest time go, until there is room for one."""
        tokens = USER_PUSH_TOKENS.c
        rows = (await sql.execute(
            select(tokens.id, tokens.token).where(tokens.user_id == user).order_by(tokens.last_seen_at, tokens.id)
        )).all()
        for number, token in rows[: max(0, len(rows) - TOKENS_PER_PERSON + 1)]:
            await sql.execute(delete(USER_PUSH_TOKENS).where(tokens.id == number))
            changes.did(user, "push", token, Action.DELETE, "excessive")
            changes.counted_token("deleted_due_to_token_limit")


def check_token(token: str, platform: str) -> None:
    """``Invalid`` for what can be no token of a device, or a platform that nobody knows."""
    if not LEAST_TOKEN <= len(token) <= MOST_TOKEN or _TOKEN.fullmatch(token) is None:
        raise Invalid(f"a push token reads ExponentPushToken[...] and has {LEAST_TOKEN} to {MOST_TOKEN} characters")
    if platform not in PLATFORMS:
        raise Invalid(f"there is no platform {platform[:20]!r}; known are {', '.join(PLATFORMS)}")


def _outcome(row: _Owned | None, user: int) -> Registered:
    if row is None:
        return Registered.CREATED
    return Registered.REFRESHED if row.user_id == user else Registered.REASSIGNED

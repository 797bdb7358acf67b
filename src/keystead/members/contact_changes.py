"""What one transaction changes of contacts: the log of it, its counts, and whom reminders may concern by now."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.ids import UserSub, new_uid
from keystead.members.contact_tables import CONTACT_METHOD_LOG
from keystead.store import Database, SqlOutbox

# Jobs that rooms above answer to. ``user_sub`` may be reached, or not any more, on ``channel`` (email, sms or push).
REACHABILITY_JOB: Final = "members.reachability_changed"
# The same of many people at once: ``user_subs``.
REACHABILITIES_JOB: Final = "members.reachabilities_changed"
# ``user_sub`` wants to be forgotten.
ERASED_JOB: Final = "members.erased"
COUNT_CONTACTS_JOB: Final = "keystead.members.count_contacts"
_JOB_PEOPLE: Final = 500


class Action(StrEnum):
    """What happened to a way to reach somebody."""

    CREATE_VERIFIED = "create_verified"
    CREATE_UNVERIFIED = "create_unverified"
    VERIFY = "verify"
    DELETE = "delete"
    ENABLE = "enable_notifs"
    DISABLE = "disable_notifs"


_COUNTED_AS: Final = {
    Action.CREATE_VERIFIED: "created", Action.CREATE_UNVERIFIED: "created", Action.VERIFY: "verified",
    Action.DELETE: "deleted", Action.ENABLE: "enabled_notifications", Action.DISABLE: "disabled_notifications",
}


class ContactChanges:
    """Gathered while a transaction works, and written by ``store`` at its end: all of it leaves with the commit."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._log: list[dict[str, Any]] = []
        self._methods: Counter[tuple[str, str]] = Counter()
        self._tokens: Counter[str] = Counter()
        self._reached: dict[tuple[str, str], dict[UserSub, None]] = {}

    def did(
        self, user_id: int, channel: str, identifier: str, action: Action, why: str, *, enabled: bool = True,
        **details: object,
    ) -> None:
        """Log and count one change. ``why`` is a word that statistics break down by; ``details`` are only logged."""
        self._log.append({
            "uid": new_uid("cml"), "user_id": user_id, "channel": channel, "identifier": identifier,
            "action": action.value, "reason": {"reason": why, **details}, "created_at": self._now,
        })
        self.counted(channel, action, why, enabled=enabled)

    def counted(self, channel: str, action: Action, why: str, *, enabled: bool = True) -> None:
        """Count a change that is not logged."""
        how = [channel]
        if _COUNTED_AS[action] == "created":
            if channel != "push":
                how.append("verified" if action is Action.CREATE_VERIFIED else "unverified")
            how.append("enabled" if enabled else "disabled")
        self._methods[_COUNTED_AS[action], ":".join((*how, why))] += 1

    def counted_token(self, event: str) -> None:
        """Count an event of the devices that push messages go to."""
        self._tokens[event] += 1

    def reached(self, sub: UserSub, channel: str, reason: str) -> None:
        """The person may have begun or ceased to be reachable on a channel: email, sms or push."""
        self._reached.setdefault((channel, reason), {})[sub] = None

    async def store(self, sql: AsyncConnection, database: Database, outbox: SqlOutbox) -> None:
        """Write the log, and leave the jobs that count and tell in the outbox."""
        if self._log:
            await database.insert_many(sql, CONTACT_METHOD_LOG, self._log)
        if self._methods or self._tokens:
            methods: Sequence[list[object]] = [[*event, amount] for event, amount in self._methods.items()]
            await outbox.enqueue(
                sql, COUNT_CONTACTS_JOB, uid=new_uid("cc"), changed_at=self._now, methods=methods,
                tokens=dict(self._tokens),
            )
        for (channel, reason), subs in self._reached.items():
            people = list(subs)
            if len(people) == 1:
                await outbox.enqueue(sql, REACHABILITY_JOB, user_sub=people[0], channel=channel, reason=reason)
                continue
            for first in range(0, len(people), _JOB_PEOPLE):
                some = people[first : first + _JOB_PEOPLE]
                await outbox.enqueue(sql, REACHABILITIES_JOB, user_subs=some, channel=channel, reason=reason)

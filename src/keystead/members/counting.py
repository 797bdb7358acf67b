"""Counting what was written to SQL: each thing once, however often the count is asked for."""

from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Final

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.keys import KeyReference
from keystead.members.keys import CONTACTS_COUNTED, CONVERSIONS_COUNTED, COUNTED_SECONDS, CREATED_COUNTED
from keystead.members.stats import CONTACT_METHODS, CONVERSION, NEW_USERS, PUSH_TOKENS, RETENTION, USERS
from keystead.patterns import Once, Writes, once
from keystead.patterns.rows_by_day import Change, RowsAdded

COUNT_CREATED: Final = Script("keystead.members", "scripts/count_created.lua")
# What the jobs are called that count, since a process may die between its commit and the count.
CREATED_JOB: Final = "keystead.members.count_created"
CONVERSIONS_JOB: Final = "keystead.members.count_conversions"


def count_created(on: ScriptRunner, sub: str, created_at: float) -> Awaitable[bool]:
    """Count that somebody joined at ``created_at``; says whether this was the first call for them.

    In all, by month, by day and in the cohort of the day, in one atomic step and once for each sub. What belongs to a
    day that was rotated is counted as late.
    """
    day, month = RETENTION.day_of(created_at), USERS.month_of(created_at)
    keys: list[KeyReference] = [
        CREATED_COUNTED.at(sub), USERS.total_key.at(), USERS.month_key.at(month), USERS.earliest_key.at(),
        NEW_USERS.day_key.at(day), NEW_USERS.earliest_key.at(), NEW_USERS.state_key.at(), NEW_USERS.late_key.at(),
        RETENTION.state_key.at(), RETENTION.late_key.at(),
    ]
    for period in (f"{days}day" for days in RETENTION.periods):
        keys += [RETENTION.earliest_key.at(period, "false"), RETENTION.members_key.at(period, "false", day),
                 RETENTION.members_key.at(period, "true", day)]
    return COUNT_CREATED(on, keys=keys, args=[COUNTED_SECONDS * 1000, int(month), int(day), sub], decode=bool)


def count_conversions(
    on: ScriptRunner, uid: str, unix_date: int, changes: Sequence[Change], verified: Collection[str]
) -> Awaitable[RowsAdded | None]:
    """Add changes to the counts by campaign of a day; None, and nothing happens, if that was done under this uid.

    One atomic step. What belongs to a day that was rotated is kept as late.
    """
    return CONVERSION.add_once(
        on, CONVERSIONS_COUNTED.at(uid), changes, held_seconds=COUNTED_SECONDS, day=unix_date, verified=verified
    )


def count_contacts(
    on: ScriptRunner, uid: str, at: float, methods: Sequence[tuple[str, str, int]], tokens: Mapping[str, int]
) -> Awaitable[Once]:
    """Count changes of contacts and devices of the instant ``at``, once for each uid, in one atomic step."""
    writes = Writes(on.layout)
    of_methods, of_tokens = CONTACT_METHODS.tally(), PUSH_TOKENS.tally()
    for event, breakdown, amount in methods:
        of_methods.incr(event, breakdown, amount, at=at)
    for event, amount in tokens.items():
        of_tokens.incr(event, amount=amount, at=at)
    for tally in (of_methods, of_tokens):
        if tally:
            tally.store(writes)
    return once(on, CONTACTS_COUNTED.at(uid), writes)

"""Counting what was written to SQL: each thing once, however often the count is asked for."""

from collections.abc import Awaitable
from typing import Final

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.keys import KeyReference
from keystead.members.keys import COUNTED_SECONDS, CREATED_COUNTED
from keystead.members.stats import NEW_USERS, RETENTION, USERS

COUNT_CREATED: Final = Script("keystead.members", "scripts/count_created.lua")
# What the job is called that makes up for a process that died between its commit and the count.
CREATED_JOB: Final = "members.count_created"


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

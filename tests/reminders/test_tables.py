"""Rows of reminders: one for each person and channel, and none without their person."""

import pytest
from sqlalchemy import delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from keystead.members.tables import USERS
from keystead.reminders.tables import ENGAGED, REMINDERS, SETTINGS, SETTINGS_LOG
from keystead.store import Database

WISH = {"channel": "sms", "day_of_week_mask": 127, "time_range": "{}", "created_at": 1.0}


async def test_there_is_one_for_each_person_and_channel_and_they_go_with_the_person(database: Database) -> None:
    async with database.transaction() as sql:
        user = (await sql.execute(insert(USERS).values(sub="user_ada", created_at=1.0).returning(USERS.c.id))).scalar()
        rows = (
            (REMINDERS, {"uid": "udr_{}", "channel": "sms", "start_time": 0, "end_time": 1, "day_of_week_mask": 1,
                         "timezone": "UTC", "created_at": 1.0}),
            (SETTINGS, {**WISH, "uid": "udrs_{}", "updated_at": 1.0}), (ENGAGED, {"engaged": True}),
        )
        for table, row in rows:
            first, second = ({name: value.format(number) if name == "uid" else value for name, value in row.items()}
                             for number in range(2))
            await sql.execute(insert(table).values(user_id=user, **first))
            with pytest.raises(IntegrityError):
                async with sql.begin_nested():
                    await sql.execute(insert(table).values(user_id=user, **second))
        await sql.execute(insert(SETTINGS_LOG).values(user_id=user, uid="drsl_1", reason="{}", **WISH))
        await sql.execute(delete(USERS))
        for table in (REMINDERS, SETTINGS, SETTINGS_LOG, ENGAGED):
            assert await sql.scalar(select(func.count()).select_from(table)) == 0

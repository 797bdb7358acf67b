"""What one transaction changes of contacts leaves with its commit, and not without."""

import pytest
from sqlalchemy import func, select

from keystead.ids import UserSub
from keystead.members.contact_changes import Action, ContactChanges
from keystead.members.contact_tables import CONTACT_METHOD_LOG
from keystead.members.people import lock_person
from keystead.store.tables import OUTBOX

from ..jobs.batch_room import Died
from .room import NOON, Room, on_sqlite

ADA = UserSub("user_ada")

pytestmark = on_sqlite


async def test_changes_are_logged_counted_together_and_told_once_for_each_person(room: Room) -> None:
    await room.person(ADA, NOON)
    changes = ContactChanges(NOON)
    async with room.database.transaction() as sql:
        user = await lock_person(sql, ADA)
        for number in range(3):
            address = f"{number}@example.com"
            changes.did(user, "email", address, Action.CREATE_VERIFIED, "app", enabled=False, who="test")
            changes.reached(ADA, "email", "email_added")
        changes.did(user, "push", "token", Action.DELETE, "excessive")
        changes.counted_token("deleted_due_to_token_limit")
        changes.reached(ADA, "push", "unreachable")
        await changes.store(sql, room.database, room.outbox)
        assert await sql.scalar(select(func.count()).select_from(OUTBOX)) == 3, "one to count, two to tell"
        reasons = list(await sql.scalars(select(CONTACT_METHOD_LOG.c.reason).order_by(CONTACT_METHOD_LOG.c.id)))
    assert reasons == [{"reason": "app", "who": "test"}] * 3 + [{"reason": "excessive"}]
    assert await room.contact_counts() == {
        "created/email:verified:disabled:app": 3, "deleted/push:excessive": 1, "deleted_due_to_token_limit": 1}
    assert await room.heard() == [(ADA, "email", "email_added"), (ADA, "push", "unreachable")]


async def test_many_people_are_told_of_in_few_jobs(room: Room) -> None:
    changes = ContactChanges(NOON)
    for number in range(1200):
        changes.reached(UserSub(f"user_{number}"), "sms", "sms_stop")
    async with room.database.transaction() as sql:
        await changes.store(sql, room.database, room.outbox)
        assert await sql.scalar(select(func.count()).select_from(OUTBOX)) == 3
    assert len(await room.heard()) == 1200


async def test_nothing_leaves_a_transaction_that_does_not_commit(room: Room) -> None:
    await room.person(ADA, NOON)
    with pytest.raises(Died):
        async with room.database.transaction() as sql:
            changes = ContactChanges(NOON)
            changes.did(await lock_person(sql, ADA), "email", "a@example.com", Action.VERIFY, "app")
            changes.reached(ADA, "email", "email_added")
            await changes.store(sql, room.database, room.outbox)
            raise Died
    assert await room.log() == [] and await room.heard() == [] and await room.contact_counts() == {}

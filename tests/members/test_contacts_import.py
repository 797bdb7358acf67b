"""A file of contacts: what can be imported is, what cannot is told, and a repeat changes nothing."""

import io

import pytest
from sqlalchemy import func, insert, select

from keystead.errors import Invalid
from keystead.members.contact_tables import CONTACT_METHOD_LOG, USER_EMAIL_ADDRESSES
from keystead.members.contacts_import import BATCH_LINES, KEPT_BROKEN, ContactsImport
from keystead.members.contacts_lines import BrokenLine
from keystead.members.tables import USERS

from .room import NOON, Room, on_sqlite


def importer(room: Room) -> ContactsImport:
    return ContactsImport(room.database, room.outbox, room.clock)


async def test_lines_become_contacts_and_the_rest_is_told(room: Room) -> None:
    for sub in ("user_ada", "user_ben"):
        await room.person(sub, NOON)
    await room.contacts.add_email("user_ben", "ben@example.com")  # type: ignore[arg-type]
    await room.heard()
    file = b"\n".join((
        b"user_sub,email,phone,verified,receives_notifications",
        b"user_ada,ada@example.com,+1 555 555 0123,yes,", b"user_ben,BEN@example.com,,true,", b"user_ben,nonsense,,,",
        b"user_nobody,x@example.com,,,", b"user_ada,quiet@example.com,,true,no", b"user_ada,ADA@example.com,,,",
    ))
    told: list[BrokenLine] = []
    result = await importer(room).run(io.BytesIO(file), on_broken=told.append)
    assert (result.lines, result.created, result.verified, result.known, result.broken) == (6, 3, 1, 1, 2)
    assert [line.number for line in told] == [4, 5] and told == result.first_broken
    assert "no such person" in told[1].problem
    assert await room.contacts.emails_of(["user_ada", "user_ben"]) == {  # type: ignore[list-item]
        "user_ada": ["ada@example.com"], "user_ben": ["ben@example.com"]}
    assert await room.heard() == [
        ("user_ada", "email", "email_added"), ("user_ada", "sms", "phone_verify_finish"),
        ("user_ben", "email", "email_added"),
    ]
    counts = await room.contact_counts()
    assert [counts[f"created/email:verified:{flag}:migration"] for flag in ("enabled", "disabled")] == [1, 1]
    again = await importer(room).run(io.BytesIO(file))
    assert (again.created, again.verified, again.known, again.broken) == (0, 0, 5, 2)
    assert await room.heard() == [] and await room.contact_counts() == counts


async def test_a_wrong_header_imports_nothing(room: Room) -> None:
    with pytest.raises(Invalid, match="first line"):
        await importer(room).run(io.BytesIO(b"name,mail\nx,y\n"))


@on_sqlite
async def test_a_long_file_goes_by_in_batches_and_broken_lines_are_only_counted_after_a_while(room: Room) -> None:
    lines, people = 3 * BATCH_LINES + 100, 50
    async with room.database.transaction() as sql:
        await sql.execute(insert(USERS), [{"sub": f"user_{n}", "created_at": NOON} for n in range(people)])
    file = io.BytesIO(b"user_sub,email,verified\n" + b"".join(
        b"broken\n" if n % 10 == 0 else b"user_%d,p%d@example.com,1\n" % (n % people, n) for n in range(lines)
    ))
    batches: list[int] = []
    result = await importer(room).run(file, on_batch=lambda so_far: batches.append(so_far.lines))
    assert batches == [1000, 2000, 3000, 3100]
    assert (result.created, result.broken, len(result.first_broken)) == (2790, 310, KEPT_BROKEN)
    async with room.database.reading() as sql:
        for table in (USER_EMAIL_ADDRESSES, CONTACT_METHOD_LOG):
            assert await sql.scalar(select(func.count()).select_from(table)) == 2790
    assert len(await room.heard()) == 4 * 45, "each person once for each batch"
    assert await room.contact_counts() == {"created/email:verified:enabled:migration": 2790}

"""The log reaches the database: each row once, parents before all found, and what cannot be written stops nothing."""

import asyncio

from keystead.errors import Unavailable
from keystead.jobs import StopReason
from keystead.messaging.touches.keys import TO_LOG
from keystead.messaging.touches.models import (
    DebugFields,
    LogEntry,
    StateFields,
    TokenFields,
    TouchFields,
    entry_of,
)
from keystead.messaging.touches.stats import LOG_RUN

from .room import NOON, Room, on_sqlite

TOKEN = "ExponentPushToken[abcdefghij]"


def debug(uid: str, sub: str = "ada", **event) -> DebugFields:
    return DebugFields(uid, "tch_1", sub, {"type": "send_attempt", **event}, NOON)


def state(point: str, value, version: int = 0, sub: str = "ada") -> StateFields:
    return StateFields(f"utps_{sub}_{version}_{value}", sub, point, "sms", value, NOON, version)


async def test_rows_of_every_table_are_written(room: Room):
    point = await room.point()
    await room.person("ada", tokens=[TOKEN])
    await TO_LOG.push(
        room.valkey, entry_of(debug("utbl_1")), entry_of(debug("utbl_2", parent="utbl_1")),
        entry_of(state(point.uid, ["a"])),
        entry_of(TouchFields("tch_r_1", "tch_1", "ada", "sms", point.uid, "+15005550001", {"body": "Hi"}, NOON)),
        entry_of(TokenFields(TOKEN, NOON + 5)),
    )
    ended = await room.log_job.run()
    assert ended.stop_reason is StopReason.LIST_EXHAUSTED and not await TO_LOG.length(room.valkey)
    first, second = await room.rows_of_log()
    assert (first.uid, second.event["parent"]) == ("utbl_1", "utbl_1"), "a parent is found by the uid of the entry"
    (touch,) = await room.touched()
    assert (touch.send_uid, touch.destination, touch.message, touch.created_at) == (
        "tch_1", "+15005550001", {"body": "Hi"}, NOON)
    (kept,) = await room.states()
    assert (kept.state, kept.version) == (["a"], 1)
    assert await room.confirmed_at(TOKEN) == NOON + 5
    run = await LOG_RUN.at().get(room.valkey)
    assert (run.inserts, run.accepted_inserts, run.updates, run.accepted_updates) == (4, 4, 1, 1)
    assert run.failed_inserts == run.failed_updates == 0 and run.partial_batch_inserts == 3


async def test_words_with_nul_are_written_without_it(room: Room):
    """PostgreSQL takes nothing out of JSON that holds NUL, and so would refuse the row for its index."""
    await room.person("ada")
    await TO_LOG.push(room.valkey, entry_of(debug("utbl_1", message={"body\0": ["Hi \0", 1, None]})))
    async with asyncio.timeout(60):  # what the database refuses is tried for very long
        await room.log_job.run()
    assert [event["message"] for event in await room.events()] == [{"body\ufffd": ["Hi \ufffd", 1, None]}]


async def test_entries_that_come_again_are_written_once(room: Room):
    """As after a crash between the database and the end of the batch."""
    point = await room.point()
    await room.person("ada")
    entries = [entry_of(debug("utbl_1")), entry_of(state(point.uid, ["a"])), entry_of(state(point.uid, ["b"], 1)),
               entry_of(TouchFields("tch_r_1", "tch_1", "ada", "sms", point.uid, "x", {}, NOON))]
    for _ in range(2):
        await TO_LOG.push(room.valkey, *entries)
        await room.log_job.run()
    assert len(await room.rows_of_log()) == 1 and len(await room.touched()) == 1
    (kept,) = await room.states()
    assert (kept.state, kept.version) == (["b"], 2)
    run = await LOG_RUN.at().get(room.valkey)
    assert (run.failed_inserts, run.failed_updates) == (3, 1)


async def test_changes_of_one_state_follow_one_another_in_a_batch(room: Room):
    point = await room.point()
    await room.person("ada")
    await room.person("ben")
    chain = [state(point.uid, [number], number, sub) for sub in ("ada", "ben") for number in range(5)]
    await TO_LOG.push(room.valkey, *map(entry_of, chain))
    await room.log_job.run()
    assert [(kept.state, kept.version) for kept in await room.states()] == [([4], 5)] * 2


async def test_a_state_that_moved_meanwhile_is_not_overwritten(room: Room):
    point = await room.point()
    await room.person("ada")
    wrong = [state(point.uid, ["never"], 3), state(point.uid, ["first"]), state(point.uid, ["second"], 1),
             state(point.uid, ["late"], 1), state(point.uid, ["again"])]
    await TO_LOG.push(room.valkey, *map(entry_of, wrong))
    await room.log_job.run()
    (kept,) = await room.states()
    assert (kept.state, kept.version) == (["second"], 2)
    run = await LOG_RUN.at().get(room.valkey)
    assert (run.accepted_inserts, run.failed_inserts, run.accepted_updates, run.failed_updates) == (1, 1, 1, 2)


async def test_rows_of_people_who_are_gone_are_counted_and_left_out(room: Room):
    point = await room.point()
    await room.person("ada")
    await TO_LOG.push(
        room.valkey, entry_of(debug("utbl_1", "gone")), entry_of(state(point.uid, ["a"], 0, "gone")),
        entry_of(state("no_such_point", ["a"])), entry_of(TokenFields("ExponentPushToken[gone]", NOON)),
        entry_of(debug("utbl_2")),
    )
    await room.log_job.run()
    assert [row.uid for row in await room.rows_of_log()] == ["utbl_2"]
    run = await LOG_RUN.at().get(room.valkey)
    assert (run.accepted_inserts, run.failed_inserts, run.failed_updates) == (1, 3, 1)


@on_sqlite
async def test_an_entry_that_is_none_becomes_a_dead_letter_and_the_others_go_on(room: Room):
    await room.person("ada")
    wrong = [LogEntry("user_touches", "update", {}), LogEntry("user_touch_debug_log", "insert", {"uid": 3})]
    await TO_LOG.push(room.valkey, entry_of(debug("utbl_1")), *wrong, entry_of(debug("utbl_2")))
    await TO_LOG.push_raw(room.valkey, b"nonsense")
    await room.log_job.run()
    assert [row.uid for row in await room.rows_of_log()] == ["utbl_1", "utbl_2"]
    assert len(await TO_LOG.dead_letters(room.valkey)) == 3


@on_sqlite
async def test_a_database_that_is_away_costs_no_row(wide_room: Room):
    room = wide_room
    await room.person("ada")
    await TO_LOG.push(room.valkey, entry_of(debug("utbl_1")))
    working = room.log.write

    async def away(entries):
        room.log_job.budget_seconds = 0.0  # no second try in this run
        raise Unavailable("the database is away")

    room.log.write = away
    await room.log_job.run()
    assert await TO_LOG.length(room.valkey) == 1
    room.log.write, room.log_job.budget_seconds = working, 50.0
    await room.log_job.run()
    assert len(await room.rows_of_log()) == 1


@on_sqlite
async def test_full_and_partial_statements_are_told_apart(room: Room):
    await room.person("ada")
    await TO_LOG.push(room.valkey, *(entry_of(debug(f"utbl_{number}")) for number in range(250)))
    await room.log_job.run()
    run = await LOG_RUN.at().get(room.valkey)
    assert (run.full_batch_inserts, run.partial_batch_inserts, run.accepted_inserts) == (2, 1, 250)

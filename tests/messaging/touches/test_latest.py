"""The latest touches of anybody: complete whatever has been written by now, and told without words and addresses."""

from dataclasses import asdict

import pytest
from sqlalchemy import event

from keystead.messaging.touches import latest as module
from keystead.messaging.touches.history import History
from keystead.messaging.touches.keys import TO_LOG, TO_SEND
from keystead.messaging.touches.latest import LatestTouch, LatestTouches
from keystead.messaging.touches.models import Channel, DebugFields, LogEntry, entry_of
from keystead.store import Database

from .room import NOON, Room, on_sqlite

STEPS = ("send_reachable", "send_success")


@pytest.fixture
def history(room: Room) -> History:
    return History(room.valkey, room.database)


def statuses(found: LatestTouches) -> list[tuple[str, str]]:
    return [(touch.uid, touch.status) for touch in found.touches]


async def note(room: Room, uid: str, *steps: str, channel: Channel = "sms", at: float = NOON, **facts: object) -> None:
    """Rows of a touch of Ada, on their way to the log; the first of them belongs to each that begins."""
    events = [{"type": step, "parent": "x", **facts} for step in steps]
    if steps[0] != "again":
        events.insert(0, {"type": "send_attempt", "channel": channel, "event": "hello_there", "queued_at": at,
                          "event_parameters": {"name": "Secret"}})
    for place, one in enumerate(events):
        if one["type"] != "again":
            row = DebugFields(f"{uid}_{at}_{place}_{one['type']}", uid, "ada", one, at)
            await TO_LOG.push(room.valkey, entry_of(row))


async def everything(history: History, most: int, **asked: object) -> list[str]:
    found, before = [], None
    while True:
        page = await history.latest(most=most, before=before, **asked)  # type: ignore[arg-type]
        assert len(page.touches) <= most
        found += [touch.uid for touch in page.touches]
        if (before := page.before) is None:
            return found


async def test_a_touch_is_told_wherever_it_is(room: Room, history: History):
    await room.point()
    await room.person("ada", phones=["+15005550001", "+15005550002"])
    assert await history.latest() == LatestTouches([])
    uid = await room.send("ada")
    assert statuses(await history.latest()) == [(uid, "queued")]
    sending, logging = TO_SEND.worker("test"), TO_LOG.worker("test")
    taken = (await sending.take(room.valkey, 10, now=NOON)).items
    assert statuses(await history.latest()) == [(uid, "queued")], "a dispatcher has it in its hands"
    await sending.put_back(room.valkey, taken)
    room.clock.advance(60)
    await room.dispatcher.run()
    assert statuses(await history.latest()) == [(uid, "on its way")], "its rows are not written yet"
    rows = (await logging.take(room.valkey, 10, now=NOON)).items
    assert statuses(await history.latest()) == [(uid, "on its way")], "whoever writes them has them in their hands"
    await logging.put_back(room.valkey, rows)
    await room.log_job.run()
    assert statuses(await history.latest()) == [(uid, "on its way")]
    first, second = await room.texts()
    await room.fail(first)
    assert statuses(await history.latest()) == [(uid, "failed")], "part of it is written, part of it waits"
    await room.log_job.run()
    assert statuses(await history.latest(failed=True)) == [(uid, "failed")]
    room.clock.advance(5)
    await room.succeed(second)
    assert statuses(await history.latest(failed=True)) == [], "one destination is enough"
    await room.log_job.run()
    assert statuses(await history.latest(failed=True)) == []
    assert (await history.latest()).touches == [
        LatestTouch(uid, NOON + 60, "ada", "hello_there", "sms", "arrived", "", NOON + 65)]


async def test_what_failed_is_told_with_its_reason_and_without_words_and_addresses(room: Room, history: History):
    await room.point()
    ada = await room.person("ada", phones=["+15005550001"])
    nobody = await room.person("ben")
    failed = await room.send(ada)
    await room.dispatcher.run()
    (text_message,) = await room.texts()
    await room.fail(text_message)
    room.clock.advance(1)
    spared, unreachable = await room.send(ada), await room.send(nobody)
    improper = await room.send(ada, parameters={"name": 7})
    await room.dispatcher.run()
    for written in (False, True):
        if written:
            await room.log_job.run()
        found = {touch.uid: touch for touch in (await history.latest()).touches}
        assert set(found) == {failed, spared, unreachable, improper}
        assert (found[spared].status, found[spared].reason) == ("unreachable", "same_content")
        assert (found[failed].status, found[failed].reason) == ("failed", "InternalError")
        assert "must be of type" in found[improper].reason
        wrong = (await history.latest(failed=True)).touches
        assert {touch.uid for touch in wrong} == {failed, unreachable, improper}, "who was spared it missed nothing"
        assert "+1500" not in str([asdict(touch) for touch in (*found.values(), *wrong)])


async def test_pages_hold_everything_once_and_channels_are_told_apart(room: Room, history: History):
    await room.person("ada")
    channels: tuple[Channel, ...] = ("sms", "push", "email", "push", "push")
    for place, channel in enumerate(channels * 3):
        bad = place % 5 == 4
        await note(room, f"tch_{place}", *(("send_unretryable",) if bad else STEPS), channel=channel, at=NOON + place)
    await note(room, "tch_4", "again", "send_unretryable", at=NOON + 50)  # another destination, later
    in_order = [f"tch_{place}" for place in reversed(range(15))]
    waiting = await everything(history, 15)
    assert waiting == in_order
    await room.log_job.run()
    for most in (1, 2, 5, 14, 15, 16):
        assert await everything(history, most) == in_order
        assert await everything(history, most, channel="push") == [
            uid for uid in in_order if int(uid[4:]) % 5 in (1, 3, 4)]
        assert await everything(history, most, failed=True) == ["tch_4", "tch_14", "tch_9"], "the last to fail first"
        assert await everything(history, most, failed=True, channel="sms") == []
    page = await history.latest(most=2)
    await note(room, "tch_new", *STEPS, at=NOON + 60)
    assert [touch.uid for touch in (await history.latest(most=20, before=page.before)).touches] == in_order[2:]
    assert [touch.uid for touch in (await history.latest(most=2)).touches] == ["tch_new", "tch_14"]
    only_new = await history.latest(most=1)
    assert [touch.uid for touch in (await history.latest(most=2, before=only_new.before)).touches] == in_order[:2]


@on_sqlite
async def test_a_rare_channel_among_failures_is_looked_for_step_by_step(
    room: Room, history: History, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "LEAST_STEP", 3)
    monkeypatch.setattr(module, "MOST_STEPS", 2)
    await room.person("ada")
    for place in range(9):
        await note(room, f"tch_{place}", "send_abandon", channel="email" if place == 0 else "push", at=NOON + place)
    await room.log_job.run()
    first = await history.latest(most=2, channel="email", failed=True)
    assert first.touches == [] and first.before is not None, "not found yet, and there is more to look at"
    assert await everything(history, 2, channel="email", failed=True) == ["tch_0"]


@on_sqlite
async def test_a_row_that_cannot_be_written_hides_no_other(room: Room, history: History):
    await room.person("ada")
    await note(room, "tch_1", *STEPS)
    for broken in (LogEntry("user_touch_debug_log", "insert", {"event": "no event"}),
                   LogEntry("user_touch_debug_log", "insert", {"event": {}, "created_at": "noon"}),
                   LogEntry("user_touches", "insert", {})):
        await TO_LOG.push(room.valkey, broken)
    assert statuses(await history.latest()) == [("tch_1", "arrived")]


@pytest.mark.parametrize("asked", [{"channel": "push"}, {"failed": True}])
async def test_rows_that_are_not_listed_are_not_looked_at(room: Room, history: History, asked: dict[str, object]):
    """The statement must say what the index says, in its words and order, or every row there is would be read."""
    await room.person("ada")
    await note(room, "tch_1", "send_unretryable", channel="push")
    await room.log_job.run()
    said: list[tuple[str, object]] = []
    engine = room.database._reading.sync_engine
    event.listen(engine, "before_cursor_execute", lambda _, __, words, values, *___: said.append((words, values)))
    assert len((await history.latest(**asked)).touches) == 1  # type: ignore[arg-type]
    plan = await plan_of(room.database, *next(one for one in said if "DESC" in one[0]))
    assert "user_touch_debug_log_listed" in plan and "Sort" not in plan and "TEMP B-TREE" not in plan, plan


async def plan_of(database: Database, words: str, values: object) -> str:
    async with database.reading() as sql:
        if database.dialect == "postgresql":  # which reads the whole of so small a table, unless it is told not to
            await sql.exec_driver_sql("SET enable_seqscan = off")
            await sql.exec_driver_sql("SET enable_bitmapscan = off")
        explain = "EXPLAIN QUERY PLAN" if database.dialect == "sqlite" else "EXPLAIN"
        return str((await sql.exec_driver_sql(f"{explain} {words}", values)).all())  # type: ignore[arg-type]


async def test_rows_that_go_while_they_are_read_are_passed_over(room: Room, history: History, monkeypatch):
    await room.point()
    await room.person("ada")
    await note(room, "touch_1", *STEPS)
    await room.log_job.run()
    heads = module._Look._heads

    async def erased_meanwhile(look, most, before):
        return [(10**6, "touch_of_somebody_erased"), *await heads(look, most, before)]

    monkeypatch.setattr(module._Look, "_heads", erased_meanwhile)
    assert statuses(await history.latest()) == [("touch_1", "arrived")]

"""Touch points are stored, changed only over what was read, and known to every process soon."""

import asyncio

import pytest

from keystead.engine import Valkey
from keystead.errors import Conflict, Invalid, NotFound
from keystead.messaging.touches.messages import Messages, SmsMessage
from keystead.messaging.touches.points import KEPT_SECONDS, LATELY_SECONDS, TouchPoints
from keystead.store import Database
from keystead.testing.clock import MovableClock

SCHEMA = {"type": "object", "example": {"name": "Ada"}, "required": ["name"],
          "properties": {"name": {"type": "string", "example": "Ada"}}}


def text(template: str) -> Messages:
    return Messages(sms=[SmsMessage(priority=1, uid="a", body_format=template, body_parameters=["name"])])


async def test_a_point_is_made_found_changed_and_removed(
    valkey: Valkey, database: Database, moving_clock: MovableClock
):
    points = TouchPoints(valkey, database, moving_clock)
    made = await points.create("hello_there", SCHEMA, "fixed", text("Hi {name}"))
    assert (await points.named(["hello_there", "nobody"])) == {"hello_there": made}
    with pytest.raises(Conflict, match="already"):
        await points.create("hello_there", SCHEMA, "fixed", text("Hi {name}"))
    changed = await points.change(made.uid, messages=text("Bye {name}"), messages_etag=made.messages_etag)
    assert changed.messages.sms[0].body_format == "Bye {name}" and changed.messages_etag != made.messages_etag
    with pytest.raises(Conflict, match="meanwhile"):
        await points.change(made.uid, messages=text("Oh {name}"), messages_etag=made.messages_etag)
    with pytest.raises(Invalid):
        await points.change(made.uid, schema={"type": "object", "example": {}})
    other = await points.create("other_one", SCHEMA, "fixed", Messages())
    with pytest.raises(Conflict, match="already"):
        await points.change(other.uid, slug="hello_there")
    assert [point.event_slug for point in await points.search()] == ["hello_there", "other_one"]
    assert [point.event_slug for point in await points.search(slug="other_")] == ["other_one"]
    assert [point.event_slug for point in await points.search(after="hello_there")] == ["other_one"]
    await points.remove(made.uid)
    with pytest.raises(NotFound):
        await points.find(made.uid)
    with pytest.raises(NotFound):
        await points.remove(made.uid)
    assert await points.named(["hello_there"]) == {}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_another_process_sees_a_change_at_once_and_a_lost_word_of_it_after_a_minute(
    valkey: Valkey, database: Database, moving_clock: MovableClock
):
    points, elsewhere = TouchPoints(valkey, database, moving_clock), TouchPoints(valkey, database, moving_clock)
    made = await points.create("hello_there", SCHEMA, "fixed", text("Hi {name}"))
    assert await elsewhere.named(["hello_there"])
    changed = await points.change(made.uid, messages=text("Bye {name}"), messages_etag=made.messages_etag)
    assert (await elsewhere.named(["hello_there"]))["hello_there"] == changed

    async def nothing() -> None:
        """The process dies before it tells."""

    points._changed = nothing
    await points.remove(made.uid)
    assert await elsewhere.named(["hello_there"])
    moving_clock.advance(KEPT_SECONDS)
    assert not await elsewhere.named(["hello_there"])


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_tasks_that_read_while_a_point_changes_disturb_nobody(
    valkey: Valkey, database: Database, moving_clock: MovableClock
):
    points = TouchPoints(valkey, database, moving_clock)
    made = await points.create("hello_there", SCHEMA, "fixed", text("Hi {name}"))
    await points.create("other_one", SCHEMA, "fixed", Messages())

    async def ask(slugs: list[str]) -> None:
        for _ in range(20):
            assert set(await points.named(slugs)) == set(slugs)

    async def change() -> None:
        for strategy in ("fixed", "ordered_resettable") * 4:
            await points.change(made.uid, strategy=strategy)

    await asyncio.gather(ask(["hello_there"]), ask(["hello_there", "other_one"]), ask(["other_one"]), change())


async def test_built_in_points_are_added_once_and_never_overwritten(
    valkey: Valkey, database: Database, moving_clock: MovableClock
):
    points = TouchPoints(valkey, database, moving_clock)
    assert await points.ensure_built_in() == 1
    point = (await points.named(["daily_reminder"]))["daily_reminder"]
    await points.change(point.uid, strategy="fixed")
    assert await points.ensure_built_in() == 0
    assert (await points.named(["daily_reminder"]))["daily_reminder"].selection_strategy == "fixed"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_what_was_known_within_a_second_is_known_without_asking(
    valkey: Valkey, database: Database, moving_clock: MovableClock
):
    points = TouchPoints(valkey, database, moving_clock)
    made = await points.create("hello_there", SCHEMA, "fixed", text("Hi {name}"))
    assert points.lately("hello_there") is None
    await points.named(["hello_there", "nobody"])
    assert points.lately("hello_there") == made
    assert points.lately("nobody") is None
    moving_clock.advance(LATELY_SECONDS)
    assert points.lately("hello_there") is None
    await points.named(["hello_there"])
    await points.remove(made.uid)
    assert points.lately("hello_there") is None, "who changes it knows at once"

"""Channels: queueing once, lanes, and what waits for another try."""

from keystead.messaging.sending import Lane, traced
from keystead.patterns import Once, Writes

from .post import DELIVERED, LETTERS, POST, Letter


def counted(server, word: str) -> Writes:
    writes = Writes(server.layout)
    DELIVERED.at().push_right(writes, word)
    return writes


async def test_a_message_is_queued_once_however_often_it_is_given(server):
    letter = Letter("l1", lane="high")
    for expected in (Once.DONE, Once.SEEN, Once.SEEN):
        assert await LETTERS.queue(server, letter, writes=counted(server, "queued"), now=5.0) is expected
    assert await LETTERS.waiting("high").range(server) == [letter]
    assert await DELIVERED.at().range(server) == ["queued"]
    assert [entry.what for entry in await traced(server, "l1")] == ["queued"]


async def test_a_full_lane_refuses_and_nothing_is_written(server):
    for number in range(2):
        letter = Letter(f"l{number}")
        await LETTERS.queue(server, letter, writes=counted(server, "queued"), now=5.0, limit=2)
    refused = await LETTERS.queue(server, Letter("l9"), writes=counted(server, "queued"), now=5.0, limit=2)
    assert refused is Once.FULL
    assert await LETTERS.waiting().length(server) == 2 and await DELIVERED.at().length(server) == 2
    # What was accepted before is not refused now, and what was refused is not seen.
    again = await LETTERS.queue(server, Letter("l1"), writes=counted(server, "queued"), now=5.0, limit=2)
    assert again is Once.SEEN
    later = await LETTERS.queue(server, Letter("l9"), writes=counted(server, "queued"), now=5.0, limit=3)
    assert later is Once.DONE


async def test_only_what_is_due_returns_to_its_lane(server):
    early, late, urgent = Letter("early"), Letter("late"), Letter("urgent", lane="high")
    async with server.pipeline(transaction=False) as pipeline:
        LETTERS.retry_later(pipeline, early, 10.0)
        LETTERS.retry_later(pipeline, late, 20.0)
        LETTERS.retry_later(pipeline, urgent, 5.0)
        await pipeline.execute()
    assert await LETTERS.next_due(server, Lane.NORMAL) == 10.0 and await LETTERS.next_due(server, Lane.LOW) is None
    assert [await LETTERS.move_due(server, lane, now=15.0) for lane in Lane] == [1, 1, 0]
    assert await LETTERS.waiting().range(server) == [early]
    assert await LETTERS.waiting("high").range(server) == [urgent]
    assert await LETTERS.next_due(server, Lane.NORMAL) == 20.0


async def test_a_pause_of_someone_is_not_ended_by_one_for_a_while(server):
    await LETTERS.pause(server)
    await LETTERS.pause_for(server, 1.0)
    assert await LETTERS.paused_key.at().remaining_seconds(server) is None
    assert await LETTERS.resume(server)
    await LETTERS.pause_for(server, 5.0)
    assert 0 < await LETTERS.paused_key.at().remaining_seconds(server) <= 5


async def test_it_is_known_since_when_a_provider_is_being_asked(server):
    assert await LETTERS.asked_since(server, "l1") is None
    await LETTERS.intent("l1").lasting(86_400 - 600).set(server, "0 courier")
    assert 600 <= await LETTERS.asked_since(server, "l1") < 660


def test_every_key_of_a_channel_is_declared_and_says_everything():
    patterns = {declaration.pattern for declaration in POST}
    assert {"post:to_send", "post:to_send:high", "post:to_send:low", "post:retry", "post:inflight:{uid}",
            "post:queued:{uid}", "post:breaker", "post:rate", "post:paused", "post:lock"} <= patterns
    assert all(declaration.purpose and declaration.writers and declaration.readers for declaration in POST)

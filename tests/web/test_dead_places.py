"""Whatever can be given up of messages, links and reminders is found, and comes back to where it was."""

from importlib import import_module

import pytest

from keystead.app import ROOMS
from keystead.messaging.links.keys import TO_PERSIST
from keystead.messaging.sending import Channel
from keystead.messaging.touches.keys import TO_LOG
from keystead.patterns import DeadLetter, DelayedSet, WorkList
from keystead.web.dead_places import PLACES

NO_MESSAGES = ("messaging.sandbox",)  # it only plays a provider


def test_no_queue_of_messages_or_reminders_is_forgotten():
    declared = set()
    for room in ROOMS:
        if room not in NO_MESSAGES and room.startswith(("messaging.", "reminders")):
            for value in vars(import_module(f"keystead.{room}.keys")).values():
                value = value.work if isinstance(value, Channel) else value
                if isinstance(value, WorkList):
                    declared.add(value.queue_key.pattern)
                elif isinstance(value, DelayedSet):
                    declared.add(value.due_key.pattern)
    assert declared == set(PLACES)


@pytest.mark.parametrize("source", [TO_LOG, TO_PERSIST])
async def test_letters_are_tried_again_by_number_and_by_choice(server, source):
    place = PLACES[source.dead_key.pattern.removesuffix(":dead")]
    letters = [DeadLetter(b"item %d" % number, "no", 1.0, 3) for number in range(3)]
    await place.dead.push_right(server, *letters)
    (lane,) = place.lanes(server)
    assert await place.replay(lane, 1, now=5.0) == 1
    chosen = source.dead_key.codec.encode(letters[2])
    assert await place.replay_chosen(lane, [chosen, b"no letter"], now=5.0) == 1
    assert await place.dead.range(lane, 0, -1) == [letters[1]]
    waiting = source.queue if isinstance(source, WorkList) else source.due
    words = ("LRANGE", 0, -1) if isinstance(source, WorkList) else ("ZRANGE", 0, -1)
    assert await lane.run((words[0], waiting.name(lane.layout), *words[1:]), list) == [b"item 0", b"item 2"]

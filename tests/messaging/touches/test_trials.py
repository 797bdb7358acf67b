"""A message is tried out on addresses of the person who tries it, and leaves no trace among the touches."""

import pytest

from keystead.errors import NotFound
from keystead.ids import UserSub
from keystead.messaging.touches.door import Messaging
from keystead.messaging.touches.keys import TO_LOG, TO_SEND
from keystead.messaging.touches.trials import MOST_ADDRESSES, Trials

from .room import HELLO, Room, on_sqlite

pytestmark = on_sqlite


async def test_at_most_three_addresses_get_the_message(room: Room):
    messaging = Messaging(room.touches, room.points, room.outlets, room.sms, room.email, room.push)
    trials = Trials(messaging, room.outlets)
    await room.person("ada", phones=[f"+1500555000{number}" for number in range(5)])
    assert len(await trials.send(UserSub("ada"), HELLO.sms[0], {"name": "Ada"})) == MOST_ADDRESSES == 3
    assert [sms.user_sub for sms in await room.texts()] == ["ada"] * 3
    assert not await TO_SEND.length(room.valkey) and not await TO_LOG.length(room.valkey)
    with pytest.raises(NotFound, match="email"):
        await trials.send(UserSub("ada"), HELLO.email[0], {"name": "Ada"})

"""The queue of touches fills up while a slice is sent: exactly the refused ones give up their links and come again."""

from keystead.engine import Valkey
from keystead.messaging.links.keys import BUFFER
from keystead.messaging.touches import Touches
from keystead.messaging.touches.keys import TO_SEND
from keystead.reminders.keys import QUEUED
from keystead.store import Database

from .test_assigner import Room
from .test_sender import Post, on_sqlite


class Crowded(Touches):
    """Others were faster: there seemed to be room for all, and there is for some."""

    async def has_room(self, most: int = 1) -> bool:
        return True


@on_sqlite
async def test_only_refused_touches_give_up_their_links_and_are_sent_later(server: Valkey, database: Database) -> None:
    room = Room(server, database, "2026-03-02 09:00")
    post = Post(server, database, Crowded(server, room.clock, most_queued=4))
    for number in range(7):
        await post.due(f"udr_{number}", ("sms", "email", "push")[number % 3])
    await post.sender.run()
    accepted = await post.sent()
    assert len(accepted) == 4
    held = {code for touch in accepted if touch.success_callback for code in touch.success_callback.kwargs["codes"]}
    assert {code for code, _ in await BUFFER.at().range(server)} == held, "one too many or too few is given up"
    assert await QUEUED.size(server) == 3
    assert (await post.identities())["sent"] == 4
    await TO_SEND.queue.delete(server)
    room.clock.advance(60)
    post.clock.advance(60)
    await post.sender.run()
    uids = {touch.uid for touch in accepted} | {touch.uid for touch in await post.sent()}
    assert len(await post.sent()) == 3 and len(uids) == 7
    assert (await post.identities())["sent"] == 7

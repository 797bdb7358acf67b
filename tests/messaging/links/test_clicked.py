"""Messages that were clicked on."""

from sqlalchemy import text

from keystead.messaging.links.clicked import ClickedMessages, clicked_messages
from keystead.messaging.links.persister import Persister

from .room import Room


async def test_a_message_counts_once_however_often_it_is_clicked(room: Room) -> None:
    assert await clicked_messages(room.database, 0.0, 0.0) == {}
    for uid, channel, clicks in (("tch_1", "email", 2), ("tch_2", "email", 0), ("tch_3", "sms", 1)):
        await room.touch(uid, channel=channel)
        for _ in range(2):  # two links in each message
            link = await room.link(uid)
            for _ in range(clicks):
                await room.links.click(link.code, limited=False)
            await room.links.persist(link.code)
    room.clock.advance(1800)
    await Persister(room.valkey, room.clock, room.database).run()
    async with room.database.transaction() as sql:
        await sql.execute(text("UPDATE user_touches SET created_at = 500 WHERE send_uid = 'tch_3'"))
    assert await clicked_messages(room.database, 0.0, 100.0) == {
        "email": ClickedMessages(2, 1, 0, 0), "sms": ClickedMessages(1, 1, 1, 1),
    }
    assert set(await clicked_messages(room.database, 400.0, 600.0)) == {"sms"}

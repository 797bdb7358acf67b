"""How many messages with a link were clicked on, by channel."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import BigInteger, Double, Text, case, column, func, select, table

from keystead.messaging.links.tables import USER_TOUCH_LINK_CLICKS, USER_TOUCH_LINKS
from keystead.store import Database

# The messages that arrived, which are rows of another room, as far as they are looked at here.
_MESSAGES: Final = table(
    "user_touches", column("id", BigInteger), column("channel", Text), column("created_at", Double)
)


@dataclass(frozen=True, slots=True)
class ClickedMessages:
    """Messages of one channel that arrived with a link, and how many were clicked on; and the same of late."""

    with_link: int
    clicked: int
    with_link_lately: int
    clicked_lately: int


async def clicked_messages(database: Database, since: float, lately: float) -> dict[str, ClickedMessages]:
    """By channel, since one instant and since a later one. Of links that are stored: those of the last half hour are
    not in it. One query that walks over the links."""
    links, clicks, messages = USER_TOUCH_LINKS.c, USER_TOUCH_LINK_CLICKS.c, _MESSAGES.c
    was_clicked, is_late = clicks.id.is_not(None), messages.created_at >= lately
    numbers = [func.count(func.distinct(case((which, messages.id)))) for which in (
        messages.id.is_not(None), was_clicked, is_late, was_clicked & is_late)]
    query = (
        select(messages.channel, *numbers).select_from(USER_TOUCH_LINKS)
        .join(_MESSAGES, messages.id == links.user_touch_id)
        .outerjoin(USER_TOUCH_LINK_CLICKS, clicks.user_touch_link_id == links.id)
        .where(messages.created_at >= since).group_by(messages.channel)
    )
    async with database.reading() as sql:
        return {str(channel): ClickedMessages(*map(int, found)) for channel, *found in await sql.execute(query)}

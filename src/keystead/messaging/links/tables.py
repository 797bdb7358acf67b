"""The rows of links: those whose message was delivered, and the clicks on them."""

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    column,
    table,
)

from keystead.store import METADATA

# SQLite counts up by itself only a key that is called INTEGER.
_NUMBER: Final = BigInteger().with_variant(Integer(), "sqlite")

# user_touch_id: the first row of the message that the link was made for; it goes when that goes.
USER_TOUCH_LINKS = Table(
    "user_touch_links",
    METADATA,
    Column("id", _NUMBER, Identity(), primary_key=True),
    Column("uid", Text, nullable=False, unique=True),
    Column("user_touch_id", _NUMBER, ForeignKey("user_touches.id", ondelete="CASCADE"), nullable=False),
    Column("code", Text, nullable=False, unique=True),
    Column("page_identifier", Text, nullable=False),
    Column("page_extra", JSON, nullable=False),
    Column("preview_identifier", Text, nullable=False),
    Column("preview_extra", JSON, nullable=False),
    Index("user_touch_links_touch", "user_touch_id"),
)

# The four that end in _known tell what was said when the click came from what went with its row since. A click has one
# child at most: that whoever clicked logged in.
USER_TOUCH_LINK_CLICKS = Table(
    "user_touch_link_clicks",
    METADATA,
    Column("id", _NUMBER, Identity(), primary_key=True),
    Column("uid", Text, nullable=False, unique=True),
    Column("user_touch_link_id", _NUMBER, ForeignKey("user_touch_links.id", ondelete="CASCADE"), nullable=False),
    Column("track_type", Text, nullable=False),
    Column("parent_id", _NUMBER, ForeignKey("user_touch_link_clicks.id", ondelete="SET NULL"), unique=True),
    Column("user_id", _NUMBER, ForeignKey("users.id", ondelete="SET NULL")),
    Column("visitor_id", _NUMBER, ForeignKey("visitors.id", ondelete="SET NULL")),
    Column("parent_known", Boolean, nullable=False),
    Column("user_known", Boolean, nullable=False),
    Column("visitor_known", Boolean, nullable=False),
    Column("child_known", Boolean, nullable=False),
    Column("clicked_at", Double, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("user_touch_link_clicks_link", "user_touch_link_id"),
    Index("user_touch_link_clicks_user", "user_id"),
    Index("user_touch_link_clicks_visitor", "visitor_id"),
)

# Rows of other rooms, as far as links look at them.
USER_TOUCHES: Final = table(
    "user_touches", column("id", _NUMBER), column("send_uid", Text), column("channel", Text),
    column("destination", Text),
)
USERS: Final = table("users", column("id", _NUMBER), column("sub", Text))
VISITORS: Final = table("visitors", column("id", _NUMBER), column("uid", Text))

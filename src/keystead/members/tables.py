"""The rows of the members room: people and the identities they prove, devices that visit, and what they clicked on."""

from sqlalchemy import (
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
    UniqueConstraint,
    false,
)

from keystead.store import METADATA

# SQLite counts up by itself only a key that is called INTEGER.
NUMBER = BigInteger().with_variant(Integer(), "sqlite")


def numbered() -> Column[int]:
    """The key of a row, which the database counts up."""
    return Column("id", NUMBER, Identity(), primary_key=True)


def of(column: str, target: str) -> Column[int]:
    """Whose row it is; it goes when they go."""
    return Column(column, NUMBER, ForeignKey(target, ondelete="CASCADE"), nullable=False)


# timezone: a name of the IANA database; NULL while the person has not said, which means the default zone.
USERS = Table(
    "users",
    METADATA,
    numbered(),
    Column("sub", Text, nullable=False, unique=True),
    Column("given_name", Text, nullable=False, server_default=""),
    Column("family_name", Text, nullable=False, server_default=""),
    Column("admin", Boolean, nullable=False, server_default=false()),
    Column("timezone", Text),
    Column("created_at", Double, nullable=False),
)

# provider and sub: who vouches for the person, and what that one calls them.
USER_IDENTITIES = Table(
    "user_identities",
    METADATA,
    numbered(),
    of("user_id", "users.id"),
    Column("provider", Text, nullable=False),
    Column("sub", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("provider", "sub", name="user_identities_provider_sub"),
    Index("user_identities_user", "user_id"),
)

# version: grows with each new click and each new link, in the transaction that writes it.
VISITORS = Table(
    "visitors",
    METADATA,
    numbered(),
    Column("uid", Text, nullable=False, unique=True),
    Column("version", Integer, nullable=False, server_default="0"),
    Column("source", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

VISITOR_USERS = Table(
    "visitor_users",
    METADATA,
    numbered(),
    of("user_id", "users.id"),
    of("visitor_id", "visitors.id"),
    Column("first_seen_at", Double, nullable=False),
    Column("last_seen_at", Double, nullable=False),
    UniqueConstraint("user_id", "visitor_id", name="visitor_users_pair"),
    Index("visitor_users_visitor", "visitor_id"),
)

# A campaign. verified: someone of ours has made it, as opposed to whatever a link on the web said.
UTMS = Table(
    "utms",
    METADATA,
    numbered(),
    Column("canonical_query_param", Text, nullable=False, unique=True),
    Column("verified", Boolean, nullable=False, server_default=false()),
    Column("utm_source", Text, nullable=False),
    Column("utm_medium", Text),
    Column("utm_campaign", Text),
    Column("utm_term", Text),
    Column("utm_content", Text),
    Column("created_at", Double, nullable=False),
)

# uid: made from what was queued, so that a click that is processed again finds itself.
VISITOR_UTMS = Table(
    "visitor_utms",
    METADATA,
    numbered(),
    Column("uid", Text, nullable=False, unique=True),
    of("visitor_id", "visitors.id"),
    of("utm_id", "utms.id"),
    Column("clicked_at", Double, nullable=False),
    Index("visitor_utms_visitor", "visitor_id", "clicked_at"),
    Index("visitor_utms_utm", "utm_id"),
)

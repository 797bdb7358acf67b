"""The rows of contacts: where people can be reached, where nobody must be written to, and how both came about."""

from sqlalchemy import JSON, Boolean, Column, Double, ForeignKey, Index, Table, Text, UniqueConstraint, false, true

from keystead.members.tables import NUMBER, numbered, of
from keystead.store import METADATA

# An address may belong to several people, so it identifies nobody. folded: what addresses are compared by.
USER_EMAIL_ADDRESSES = Table(
    "user_email_addresses",
    METADATA,
    numbered(),
    of("user_id", "users.id"),
    Column("email", Text, nullable=False),
    Column("folded", Text, nullable=False),
    Column("verified", Boolean, nullable=False, server_default=false()),
    Column("receives_notifications", Boolean, nullable=False, server_default=true()),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("user_id", "folded", name="user_email_addresses_pair"),
    Index("user_email_addresses_folded", "folded"),
)

# phone_number: in the E.164 form, such as +15555550123.
USER_PHONE_NUMBERS = Table(
    "user_phone_numbers",
    METADATA,
    numbered(),
    of("user_id", "users.id"),
    Column("phone_number", Text, nullable=False),
    Column("verified", Boolean, nullable=False, server_default=false()),
    Column("receives_notifications", Boolean, nullable=False, server_default=true()),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("user_id", "phone_number", name="user_phone_numbers_pair"),
    Index("user_phone_numbers_number", "phone_number"),
)

# A device belongs to whoever used it last. last_confirmed_at: when a message was last known to have arrived there.
USER_PUSH_TOKENS = Table(
    "user_push_tokens",
    METADATA,
    numbered(),
    Column("uid", Text, nullable=False, unique=True),
    of("user_id", "users.id"),
    Column("platform", Text, nullable=False),
    Column("token", Text, nullable=False, unique=True),
    Column("receives_notifications", Boolean, nullable=False, server_default=true()),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("last_seen_at", Double, nullable=False),
    Column("last_confirmed_at", Double),
    Index("user_push_tokens_user", "user_id", "last_seen_at"),
)

SUPPRESSED_EMAILS = Table(
    "suppressed_emails",
    METADATA,
    numbered(),
    Column("uid", Text, nullable=False, unique=True),
    Column("email_address", Text, nullable=False),
    Column("folded", Text, nullable=False, unique=True),
    Column("reason", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

SUPPRESSED_PHONE_NUMBERS = Table(
    "suppressed_phone_numbers",
    METADATA,
    numbered(),
    Column("uid", Text, nullable=False, unique=True),
    Column("phone_number", Text, nullable=False, unique=True),
    Column("reason", Text, nullable=False),
    Column("reason_details", JSON, nullable=False),
    Column("created_at", Double, nullable=False),
)

# uid: made from what failed, so that news of it that comes again is recorded once.
EMAIL_FAILURES = Table(
    "email_failures",
    METADATA,
    numbered(),
    Column("uid", Text, nullable=False, unique=True),
    Column("email_address", Text, nullable=False),
    Column("folded", Text, nullable=False),
    Column("failure_type", Text, nullable=False),
    Column("failure_extra", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("email_failures_folded", "folded", "created_at"),
)

# visitor_known: whether the device that was named exists; one that nobody named is not.
UNSUBSCRIBED_EMAILS_LOG = Table(
    "unsubscribed_emails_log",
    METADATA,
    numbered(),
    Column("uid", Text, nullable=False, unique=True),
    Column("link_code", Text, nullable=False),
    Column("visitor_id", NUMBER, ForeignKey("visitors.id", ondelete="SET NULL")),
    Column("visitor_known", Boolean, nullable=False),
    Column("email_address", Text, nullable=False),
    Column("suppressed", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("unsubscribed_emails_log_visitor", "visitor_id"),
)

# channel: email, phone or push. action: see Action. reason: who did it, and what led to it.
CONTACT_METHOD_LOG = Table(
    "contact_method_log",
    METADATA,
    numbered(),
    Column("uid", Text, nullable=False, unique=True),
    of("user_id", "users.id"),
    Column("channel", Text, nullable=False),
    Column("identifier", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("reason", JSON, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("contact_method_log_user", "user_id", "created_at"),
)

# technique: how the zone was learnt, such as browser or input.
USER_TIMEZONE_LOG = Table(
    "user_timezone_log",
    METADATA,
    numbered(),
    Column("uid", Text, nullable=False, unique=True),
    of("user_id", "users.id"),
    Column("timezone", Text, nullable=False),
    Column("technique", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("user_timezone_log_user", "user_id", "created_at"),
)

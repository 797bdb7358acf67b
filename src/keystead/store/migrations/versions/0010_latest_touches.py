"""The latest touches of a channel, and the latest that went wrong, are found without looking at the others."""

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    # The log says in JSON what a step was; SQLite and PostgreSQL read that in different words.
    wanted = "{} IN ('send_attempt', 'send_stale', 'send_event_improper', 'send_unreachable', 'send_abandon', " \
             "'send_unretryable')"
    fact = "json_extract(event, '$.{}')" if op.get_bind().dialect.name == "sqlite" else "(event ->> '{}')"
    kind, channel, reason = (fact.format(name) for name in ("type", "channel", "reason"))
    op.execute(f"CREATE INDEX user_touch_debug_log_listed ON user_touch_debug_log ({channel}, {reason}, id) "
               f"WHERE {wanted.format(kind)}")

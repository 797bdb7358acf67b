"""The latest touches of a channel, and the latest that went wrong, are found without looking at the others."""

from alembic import op
from sqlalchemy import text

revision = "0010"
down_revision = "0009"

# PostgreSQL takes no text out of JSON that has NUL anywhere in it.
_NUL = r"SELECT EXISTS (SELECT 1 FROM user_touch_debug_log WHERE strpos(CAST(event AS text), '\u0000') > 0)"


def upgrade() -> None:
    # The log says in JSON what a step was; SQLite and PostgreSQL read that in different words.
    wanted = "{} IN ('send_attempt', 'send_stale', 'send_event_improper', 'send_unreachable', 'send_abandon', " \
             "'send_unretryable')"
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    if not on_sqlite and op.get_bind().scalar(text(_NUL)):
        # Written anew, not updated: what an update leaves behind until its end would be indexed too, and refused.
        op.execute(r"ALTER TABLE user_touch_debug_log ALTER COLUMN event TYPE json USING "
                   r"CAST(replace(CAST(event AS text), '\u0000', '\ufffd') AS json)")
    fact = "json_extract(event, '$.{}')" if on_sqlite else "(event ->> '{}')"
    kind, channel, reason = (fact.format(name) for name in ("type", "channel", "reason"))
    op.execute(f"CREATE INDEX user_touch_debug_log_listed ON user_touch_debug_log ({channel}, {reason}, id) "
               f"WHERE {wanted.format(kind)}")

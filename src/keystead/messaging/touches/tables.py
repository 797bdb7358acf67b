"""The rows of touches: touch points, what each person was last told, what reached people, and the log of it all."""

from typing import Any, Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    literal_column,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from keystead.store import METADATA

# SQLite counts up by itself only a key that is called INTEGER.
_NUMBER = BigInteger().with_variant(Integer(), "sqlite")


def _id() -> Column[int]:
    return Column("id", _NUMBER, Identity(), primary_key=True)


def _of(column: str, target: str) -> Column[int]:
    return Column(column, _NUMBER, ForeignKey(target, ondelete="CASCADE"), nullable=False)


# The rows of people belong to the members; all that is needed here is who has which number.
PEOPLE = Table("users", MetaData(), Column("id", Integer), Column("sub", Text))

# messages: base85 of gzip of JSON, see points.
TOUCH_POINTS = Table(
    "touch_points",
    METADATA,
    _id(),
    Column("uid", Text, nullable=False, unique=True),
    Column("event_slug", Text, nullable=False, unique=True),
    Column("event_schema", JSON, nullable=False),
    Column("selection_strategy", Text, nullable=False),
    Column("messages", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

# state: what the strategy of the touch point needs to choose the next message. version: 1 at first, grows by one.
STATES = Table(
    "user_touch_point_states",
    METADATA,
    _id(),
    Column("uid", Text, nullable=False, unique=True),
    _of("user_id", "users.id"),
    _of("touch_point_id", "touch_points.id"),
    Column("channel", Text, nullable=False),
    Column("state", JSON, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    UniqueConstraint("user_id", "touch_point_id", "channel", name="user_touch_point_states_key"),
    Index("user_touch_point_states_touch_point", "touch_point_id"),
)

# A message that reached somebody. send_uid: the touch it belongs to; one touch may have several destinations.
USER_TOUCHES = Table(
    "user_touches",
    METADATA,
    _id(),
    Column("uid", Text, nullable=False, unique=True),
    Column("send_uid", Text, nullable=False),
    _of("user_id", "users.id"),
    Column("channel", Text, nullable=False),
    _of("touch_point_id", "touch_points.id"),
    Column("destination", Text, nullable=False),
    Column("message", JSON, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("user_touches_send_uid", "send_uid"),
    Index("user_touches_user", "user_id", "created_at"),
    Index("user_touches_touch_point_time", "touch_point_id", "created_at"),
)

# Steps of the log at which a touch, or one of its destinations, ended badly. They and the first step of each touch are
# what lists of the latest touches are made from.
ATTEMPT: Final = "send_attempt"
BAD_ENDS: Final = ("send_stale", "send_event_improper", "send_unreachable", "send_abandon", "send_unretryable")


class Fact(FunctionElement[str]):
    """A text in the event of a row of the log, by its name or by ``name.name``. Written out each time: with names that
    are bound as values no index would be used."""

    type = Text()
    inherit_cache = True

    def __init__(self, name: str) -> None:
        super().__init__(literal_column(name))


@compiles(Fact, "sqlite")
def _on_sqlite(fact: Fact, compiler: Any, **options: Any) -> str:
    return f"json_extract(event, '$.{compiler.process(fact.clauses)}')"


@compiles(Fact, "postgresql")
def _on_postgresql(fact: Fact, compiler: Any, **options: Any) -> str:
    *outer, name = compiler.process(fact.clauses).split(".")
    into = "".join(f"-> '{each}' " for each in outer)
    return f"(event {into}->> '{name}')"


# Only first steps have a channel, and only touches that somebody was spared have a reason: so the same few entries find
# the touches of a channel, and (channel and reason absent) what went wrong, newest first.
LISTED: Final = Fact("type").in_([literal_column(f"'{step}'") for step in (ATTEMPT, *BAD_ENDS)])

# event: one of the shapes of models.DebugEvent; its parent is the uid of a row of type send_attempt.
DEBUG_LOG = Table(
    "user_touch_debug_log",
    METADATA,
    _id(),
    Column("uid", Text, nullable=False, unique=True),
    _of("user_id", "users.id"),
    Column("send_uid", Text, nullable=False),
    Column("event", JSON, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("user_touch_debug_log_user", "user_id", "created_at"),
    Index("user_touch_debug_log_send_uid", "send_uid"),
    Index("user_touch_debug_log_listed", Fact("channel"), Fact("reason"), "id", sqlite_where=LISTED,
          postgresql_where=LISTED),
)

"""Something of every kind that is counted by day, for the tests of tables and rotation."""

from keystead.keys import Keyspace
from keystead.patterns import (
    Cohorts,
    Counter,
    DailyFamily,
    DayNumber,
    DaySet,
    DimensionViews,
    MonthlyCounter,
    RowsByDay,
)
from keystead.stats.catalogue import Catalogue

LA = "America/Los_Angeles"
ROOM = Keyspace("room", tag="room")

EVENTS = DailyFamily(
    ROOM, "events", counts=("tried", "found"), breakdowns={"failed": "status", "lost": "reason"}, held_days=2, zone=LA,
    table="event_stats", gauges=("queue_length",), identities=("found + failed + lost = tried",),
    purpose="what happened",
)
PLAIN = DailyFamily(
    ROOM, "plain", counts=("seen",), held_days=1, zone=LA, table="plain_stats", rotates_at="00:15",
    purpose="what was seen",
)
CHANGES = DailyFamily(
    ROOM, "changes", counts=("on:off", "off:on"), columns=("old", "new"), held_days=1, zone=LA, table="change_stats",
    purpose="what was changed",
)
HOOKS = DailyFamily(
    ROOM, "hooks", counts=("received",), breakdowns={"refused": "reason"}, held_days=2, zone=LA, kept_seconds=604800,
    purpose="what was received",
)
REMINDED = DailyFamily(
    ROOM, "reminded", counts=("sent",), held_days=3, zone=None, home=LA, table="reminded_stats",
    purpose="what was sent",
)
ACTIVE = DaySet(ROOM, "stats:active", zone=LA, table="active_stats", personal=True, purpose="who was there")
ACTIVE_MONTHS = DaySet(
    ROOM, "stats:active_months", zone=LA, monthly=True, table="active_month_stats", personal=True,
    purpose="who was there",
)
JOINED = DayNumber(ROOM, "stats:joined", zone=LA, table="joined_stats", purpose="how many joined")
RETENTION = Cohorts(
    ROOM, "stats:retention", periods=(0, 1, 7), window_days=10, zone=LA, table="retention_stats", personal=True,
    purpose="who came back",
)
VIEWS = DimensionViews(ROOM, "stats:sessions", zone=LA, table="view_stats", personal=True, purpose="what was viewed")
VISITS = RowsByDay(
    ROOM, rows="stats:visitors:daily:{unix_date}:utms", counts="stats:visitors:daily:{utm}:{unix_date}:counts",
    earliest="stats:visitors:daily:earliest", zone=LA, table="utm_stats", purpose="what visits led to",
    fields=(
        "visits", "holdover_preexisting", "holdover_last_click_signups", "holdover_any_click_signups", "preexisting",
        "last_click_signups", "any_click_signups",
    ),
)
PEOPLE = MonthlyCounter(ROOM, "stats:people", zone=LA, purpose="how many there are")
THINGS = Counter(ROOM, "stats:things", purpose="how many things there are")

ALL = (
    EVENTS, PLAIN, CHANGES, HOOKS, REMINDED, ACTIVE, ACTIVE_MONTHS, JOINED, RETENTION, VIEWS, VISITS, PEOPLE, THINGS,
)


def catalogue(*declared: object) -> Catalogue:
    """Of all that is declared here, or of some."""
    return Catalogue(declared or ALL)

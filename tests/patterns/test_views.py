"""Views by day and value."""

from keystead.engine import Valkey
from keystead.keys import Keyspace, Registry
from keystead.patterns.views import TOTALS_NAMES, AllTimeViews, DimensionViews, Viewed, Views

ZONE = "America/Los_Angeles"
CONTENT = Keyspace("content", tag="content")
VIEWS = DimensionViews(CONTENT, "stats:interactive_prompt_sessions", zone=ZONE, personal=True,
                       table="journey_subcategory_view_stats", purpose="sessions by subcategory")
OLD = DimensionViews(CONTENT, "stats:journey_sessions", names=TOTALS_NAMES, zone=ZONE, personal=True,
                     purpose="sessions by subcategory")
DAY = 19331
NOON = 1670270400.0  # 2022-12-05 12:00 in Los Angeles


def test_it_is_declared_under_the_documented_keys_of_both_spellings() -> None:
    patterns = {declaration.pattern for declaration in Registry([CONTENT])}
    new, old = "stats:interactive_prompt_sessions", "stats:journey_sessions"
    assert {f"{new}:{{subcategory}}:{{unix_date}}:subs", f"{new}:bysubcat:subcategories", f"{new}:bysubcat:earliest",
            f"{new}:bysubcat:total_views:{{unix_date}}", f"{new}:bysubcat:total_views",
            f"{new}:bysubcat:total_users"} <= patterns
    assert {f"{old}:{{subcategory}}:{{unix_date}}:subs", f"{old}:bysubcat:subcategories", f"{old}:bysubcat:earliest",
            f"{old}:bysubcat:totals:{{unix_date}}", f"{old}:bysubcat:totals",
            f"{old}:bysubcat:totals:earliest"} <= patterns
    assert f"{old}:bysubcat:total_users" not in patterns


async def test_views_and_viewers_are_counted_by_day_and_value(server: Valkey) -> None:
    assert await VIEWS.viewed(server, "sleep", "u1", at=NOON) == Viewed("sleep", new=True)
    assert await VIEWS.viewed(server, "sleep", "u1", at=NOON) == Viewed("sleep", new=False)
    await VIEWS.viewed(server, "a:b", "u1", day=DAY - 1)
    assert await VIEWS.read(server, DAY) == {"sleep": Views(2, 1)}
    assert await VIEWS.read_range(server, DAY - 1, DAY) == {DAY - 1: {"a:b": Views(1, 1)}, DAY: {"sleep": Views(2, 1)}}
    assert await VIEWS.earliest(server) == DAY - 1
    assert await VIEWS.all_time(server, before=DAY) == AllTimeViews({"a:b": 1}, {"a:b": 1})

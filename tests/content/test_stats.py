"""What content counts is declared as documented, in the spelling of each product."""

from keystead.content import stats
from tests.stats.documented import check_declared


def test_totals_and_views_are_the_documented_ones():
    catalogue = check_declared(stats, set())
    assert set(catalogue.totals) == {"journeys", "instructors", "interactive_prompt_sessions", "journey_sessions"}
    assert {name: one.table for name, one in catalogue.views.items()} == {
        "interactive_prompt_sessions": "journey_subcategory_view_stats",
        "journey_sessions": "journey_session_view_stats",
    }
    prompts, journeys = stats.PROMPT_VIEWS, stats.JOURNEY_VIEWS
    assert prompts.day_key.pattern == "stats:interactive_prompt_sessions:bysubcat:total_views:{unix_date}"
    assert journeys.day_key.pattern == "stats:journey_sessions:bysubcat:totals:{unix_date}"
    assert prompts.users_key is not None and journeys.users_key is None


def test_views_of_a_day_reach_all_processes_on_the_documented_channel():
    charts = stats.PROMPT_VIEWS.charts
    assert charts is not None and charts.channel is not None and stats.JOURNEY_VIEWS.charts is None
    assert charts.channel.pattern == "ps:journey_subcategory_view_stats"
    assert charts.template.spelling == "journey_subcategory_view_stats:{unix_date}"

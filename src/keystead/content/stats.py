"""What is counted of journeys, instructors and sessions, and of views by subcategory."""

from typing import Final

from keystead.content.keys import CONTENT
from keystead.dates import LOS_ANGELES
from keystead.patterns import DimensionViews, MonthlyCounter
from keystead.patterns.views import TOTALS_NAMES

_COUNTED: Final = ("content",)
_SHOWN: Final = ("stats.charts", "stats.rotation")

JOURNEYS = MonthlyCounter(
    CONTENT, "stats:journeys", zone=LOS_ANGELES, purpose="journeys ever made", writers=_COUNTED, readers=_SHOWN,
)
INSTRUCTORS = MonthlyCounter(
    CONTENT, "stats:instructors", zone=LOS_ANGELES, purpose="instructors ever added", writers=_COUNTED, readers=_SHOWN,
)
PROMPT_SESSIONS = MonthlyCounter(
    CONTENT, "stats:interactive_prompt_sessions", zone=LOS_ANGELES, purpose="prompts that people joined",
    writers=_COUNTED, readers=_SHOWN,
)
JOURNEY_SESSIONS = MonthlyCounter(
    CONTENT, "stats:journey_sessions", zone=LOS_ANGELES, purpose="journeys that people started", writers=_COUNTED,
    readers=_SHOWN,
)
PROMPT_VIEWS = DimensionViews(
    CONTENT, "stats:interactive_prompt_sessions", zone=LOS_ANGELES, table="journey_subcategory_view_stats",
    channel="ps:journey_subcategory_view_stats", chart="journey_subcategory_view_stats", personal=True,
    purpose="prompts that people joined, by subcategory", writers=_COUNTED, readers=_SHOWN,
)
JOURNEY_VIEWS = DimensionViews(
    CONTENT, "stats:journey_sessions", names=TOTALS_NAMES, zone=LOS_ANGELES, table="journey_session_view_stats",
    personal=True, purpose="journeys that people started, by subcategory", writers=_COUNTED, readers=_SHOWN,
)

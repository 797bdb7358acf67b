"""Daily reminders: who wants them when, a time for each, and the touch it becomes."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.reminders.counts import CountsCheck
    from keystead.reminders.plans import ByEngagement, FactsProvider, OneEvent, PersonFacts, Plan
    from keystead.reminders.rows import Rows
    from keystead.reminders.settings import ReminderSettings
    from keystead.reminders.why import Explaining, Why
else:
    __getattr__ = opened_when_used(__name__)

__all__ = [
    "ByEngagement",
    "CountsCheck",
    "Explaining",
    "FactsProvider",
    "OneEvent",
    "PersonFacts",
    "Plan",
    "ReminderSettings",
    "Rows",
    "Why",
]

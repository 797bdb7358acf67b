"""Looking at a live system: explanations and counts of a server's keys, and alerts that reach somebody."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.operations.admin_keys import KEY_PREFIX, KEY_SUBJECT, AdminKey, AdminKeys, NewKey, key_subject
    from keystead.operations.alerts import AlertRules, Alerts
    from keystead.operations.census import Census
    from keystead.operations.counts import PatternCount, PatternCounts
    from keystead.operations.delivery import MAIL_JOB, Delivery, Webhook
    from keystead.operations.explanation import Explanation, explain, explain_without_server, looks_like_pattern
    from keystead.operations.explanation_inventory import explain_by_inventory, explain_by_inventory_alone
    from keystead.operations.models import Alert, AlertEvent
    from keystead.operations.patrol import Patrol
    from keystead.operations.watchers import DeadPlace, ProviderStanding, Trouble, WaitingPlace, Watcher
else:
    __getattr__ = opened_when_used(__name__)

__all__ = [
    "AdminKey",
    "AdminKeys",
    "Alert",
    "AlertEvent",
    "AlertRules",
    "Alerts",
    "Census",
    "DeadPlace",
    "Delivery",
    "Explanation",
    "KEY_PREFIX",
    "KEY_SUBJECT",
    "MAIL_JOB",
    "NewKey",
    "Patrol",
    "PatternCount",
    "PatternCounts",
    "ProviderStanding",
    "Trouble",
    "WaitingPlace",
    "Watcher",
    "Webhook",
    "explain",
    "explain_by_inventory",
    "explain_by_inventory_alone",
    "explain_without_server",
    "key_subject",
    "looks_like_pattern",
]

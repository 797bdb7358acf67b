"""Looking at a live system: audits, explanations and counts of a server's keys."""

from keystead.operations.auditor import KEYS_PER_SECOND, audit
from keystead.operations.counts import PatternCount, PatternCounts, count_patterns
from keystead.operations.explanation import Explanation, explain, explain_without_server, looks_like_pattern
from keystead.operations.explanation_inventory import explain_by_inventory, explain_by_inventory_alone

__all__ = [
    "Explanation",
    "KEYS_PER_SECOND",
    "PatternCount",
    "PatternCounts",
    "audit",
    "count_patterns",
    "explain",
    "explain_by_inventory",
    "explain_by_inventory_alone",
    "explain_without_server",
    "looks_like_pattern",
]

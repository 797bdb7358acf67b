"""Looking at a live system: audits, explanations and counts of a server's keys."""

from keystead.operations.auditor import audit
from keystead.operations.counts import PatternCount, PatternCounts, count_patterns
from keystead.operations.explanation import Explanation, explain, explain_without_server, looks_like_pattern

__all__ = [
    "Explanation",
    "PatternCount",
    "PatternCounts",
    "audit",
    "count_patterns",
    "explain",
    "explain_without_server",
    "looks_like_pattern",
]

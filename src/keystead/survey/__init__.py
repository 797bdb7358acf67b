"""Looking at a live server that may be anybody's: walking, learning, comparing, reporting. Reads and never writes."""

from keystead.survey.audit import Audit
from keystead.survey.baseline import read_baseline, split, write_baseline
from keystead.survey.declared import VALUES_PER_SECOND, look_at_declared
from keystead.survey.drift import Live, compare
from keystead.survey.findings import Drift, Finding, Severity, in_order
from keystead.survey.learn import learn
from keystead.survey.looking import look_at
from keystead.survey.neighbours import neighbours
from keystead.survey.report_html import to_html
from keystead.survey.report_junit import to_junit
from keystead.survey.report_markdown import to_markdown
from keystead.survey.report_sarif import to_sarif
from keystead.survey.snapshots import (
    Difference,
    Growth,
    Snapshot,
    differences,
    growth,
    read_snapshot,
    take,
    write_snapshot,
)
from keystead.survey.sparing import Sparing
from keystead.survey.stride import KEYS_PER_SECOND, Stride
from keystead.survey.walk import UNKNOWN_TTL, Page, Walk
from keystead.survey.watching import Changes, Frame, watch

__all__ = [
    "Audit",
    "Changes",
    "Difference",
    "Drift",
    "Finding",
    "Frame",
    "Growth",
    "KEYS_PER_SECOND",
    "Live",
    "Page",
    "Severity",
    "Snapshot",
    "Sparing",
    "Stride",
    "UNKNOWN_TTL",
    "VALUES_PER_SECOND",
    "Walk",
    "compare",
    "differences",
    "growth",
    "in_order",
    "learn",
    "look_at",
    "look_at_declared",
    "neighbours",
    "read_baseline",
    "read_snapshot",
    "split",
    "take",
    "to_html",
    "to_junit",
    "to_markdown",
    "to_sarif",
    "watch",
    "write_baseline",
    "write_snapshot",
]

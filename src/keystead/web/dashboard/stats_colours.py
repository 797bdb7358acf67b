"""Colours of lines and bars, readable on a light ground and on a dark one: a canvas knows nothing of the page's."""

import re
from collections.abc import Iterable
from typing import Final

from keystead.stats.series import OTHERS

GOOD: Final = (
    "#14a08f", "#4c86d9", "#8f72d6", "#5aa845", "#3aa6c4", "#b06fc0", "#7f8ce6", "#2f8f6b", "#7a9a2e", "#5b7fa6",
    "#a58be8", "#4bb3a0",
)
BAD: Final = ("#dc4c3e", "#d18a14", "#c7567f", "#b4682f", "#e07a5f", "#a8506b", "#c9a227", "#d96c9d")
QUIET: Final = "#8592a3"
GRID: Final = "rgba(128, 140, 160, .16)"
LIVE: Final = "rgba(128, 140, 160, .10)"

# Words in the names of events that nobody hopes for.
_SAD = re.compile(
    r"(?:^|_|:)(?:fail\w*|error\w*|abandon\w*|unreachable|improper|bounced|complaint|lost|leaked|unknown|stale|invalid|"
    r"missing|exceeded|unprocessable|overdue|skipped|deleted|out|unsubscribed|disabled)(?:_|:|$)"
)


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name: warm ones for what went wrong, grey for the rest of many. Order decides, not size."""
    chosen: dict[str, str] = {}
    good = bad = 0
    for name in names:
        if name == OTHERS:
            chosen[name] = QUIET
        elif _SAD.search(name):
            chosen[name] = BAD[bad % len(BAD)]
            bad += 1
        else:
            chosen[name] = GOOD[good % len(GOOD)]
            good += 1
    return chosen

"""Sums that must agree, and the days on which they do not."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from nicegui import ui

from keystead.patterns import DailyFamily
from keystead.stats.series import Series
from keystead.web.dashboard.shown import chip
from keystead.web.dashboard.stats_shown import broken_up, exact

MOST_DAYS: Final = 60


@dataclass(frozen=True, slots=True)
class BrokenDay:
    """A day on which an identity does not hold; while it is ``live`` it may still come right."""

    text: str
    label: str
    left: int
    right: int
    live: bool


def broken_days(family: DailyFamily, series: Series) -> list[BrokenDay]:
    """Newest first."""
    found = []
    for at in reversed(range(len(series.labels))):
        counts = {event: days[at] for event, days in series.counts.items()}
        for identity in family.identities:
            if (broken := identity.check(counts)) is not None:
                found.append(BrokenDay(identity.text, series.labels[at], broken.left, broken.right,
                                       at >= series.live_from - series.start))
    return found


def identity_html(texts: Sequence[str], broken: Sequence[BrokenDay]) -> str:
    """Each identity, whether it holds, and both sides of each day on which it does not."""
    parts = []
    for text in texts:
        days = [day for day in broken if day.text == text]
        over = [day for day in days if not day.live]
        if over:
            state = chip(f"broken on {len(over)} day{'s' if len(over) != 1 else ''}", "bad")
        else:
            state = chip("not settled yet", "warn") if days else chip("holds", "good")
        shown = broken_up(text).replace(" = ", " <b>=</b> ")
        parts.append(f'<div class="ks-identity"><div class="mono">{shown}</div>{state}{_table(days)}</div>')
    return "".join(parts)


def _table(days: Sequence[BrokenDay]) -> str:
    if not days:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(day.label)}{" " + chip("still counting", "warn") if day.live else ""}</th>'
        f'<td class="num">{exact(day.left)}</td><td class="num">{exact(day.right)}</td>'
        f'<td class="num {"warn" if day.live else "bad"}">{day.left - day.right:+,}</td></tr>'
        for day in days[:MOST_DAYS]
    )
    more = f'<p class="quiet">and {len(days) - MOST_DAYS} more days</p>' if len(days) > MOST_DAYS else ""
    return ('<table class="ks-days"><thead><tr><th scope="col">Day</th><th scope="col" class="num">Left side</th>'
            '<th scope="col" class="num">Right side</th><th scope="col" class="num">Difference</th></tr></thead>'
            f"<tbody>{rows}</tbody></table>{more}")


class IdentityCard:
    """Shown for families that declare identities. What does not hold stands above everything else in colour."""

    def __init__(self, family: DailyFamily) -> None:
        self._family = family
        with ui.element("section").classes("ks-card").props('aria-label="Sums that must agree"'):
            with ui.element("div").classes("ks-card-head"), ui.element("div"):
                ui.html("Sums that must agree", sanitize=True, tag="h2")
                ui.html("Each day is checked. A day that is still counted may come right by itself.",
                        sanitize=True).classes("quiet")
            self._body = ui.html("", sanitize=False)

    def show(self, series: Series) -> None:
        texts = [identity.text for identity in self._family.identities]
        self._body.set_content(identity_html(texts, broken_days(self._family, series)))

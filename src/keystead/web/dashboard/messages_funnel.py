"""What became of messages, step by step: queued, taken by the provider, arrived, clicked on; as bars."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from keystead.messaging.links.clicked import ClickedMessages
from keystead.messaging.sms.statuses import Category, Status
from keystead.stats import Series
from keystead.web.dashboard.shown import shown_count

FAMILIES: Final = (
    "push_tickets", "push_receipts", "sms_send", "sms_events", "email_send", "email_events", "touch_send",
    "touch_drops", "touch_stale",
)
SHOWN_DAYS: Final = 7
_SUCCESS: Final = frozenset(status.value for status in Status if status.category is Category.SUCCEEDED)


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the way, and how many came so far: today, and over the last seven days."""

    name: str
    today: int
    week: int


Counted = Mapping[str, Series]


def funnel(channel: str, counted: Counted, clicks: Mapping[str, ClickedMessages]) -> list[Stage]:
    """The steps of one channel. Clicks are shown where a message had a link."""
    stages = [_stage(name, days) for name, days in zip(
        ("Queued", "Sent", "Arrived"), _steps(channel, counted), strict=True)]
    found = clicks.get(channel)
    if found is not None and found.with_link:
        stages.append(Stage("Clicked", found.clicked_lately, found.clicked))
    return stages


def _steps(channel: str, counted: Counted) -> tuple[Sequence[int], ...]:
    if channel == "push":
        tickets, receipts = counted["push_tickets"].counts, counted["push_receipts"].counts
        return tickets["queued"], tickets["succeeded"], receipts["succeeded"]
    if channel == "email":
        sends, events = counted["email_send"], counted["email_events"]
        found = events.breakdowns.get("succeeded", {}).get("found", [0] * len(events.labels))
        return sends.counts["queued"], sends.counts["accepted"], found
    sends, events = counted["sms_send"], counted["sms_events"]
    at_once = sends.counts["succeeded_immediate"]
    sent = added(sends.counts["succeeded_pending"], at_once)
    # News may come twice, or of another's text: what ended the wait for a text counts.
    ended = [days for change, days in events.breakdowns.get("removed", {}).items()
             if change.rpartition(":")[2] in _SUCCESS]
    good = [days for status, days in sends.breakdowns.get("succeeded_immediate", {}).items() if status in _SUCCESS]
    return sends.counts["queued"], sent, added([0] * len(events.labels), *ended, *good)


def added(*days: Sequence[int]) -> list[int]:
    return [sum(numbers) for numbers in zip(*days, strict=True)]


def _stage(name: str, days: Sequence[int]) -> Stage:
    return Stage(name, days[-1], sum(days))


def has_counted(counted: Counted) -> bool:
    """Whether anything happened in these days."""
    return any(any(days) for series in counted.values() for days in series.counts.values())


def share(part: int, whole: int) -> float | None:
    """From 0 to 1. What was queued before these days may arrive in them; more than all is all."""
    return min(1.0, part / whole) if whole else None


def funnel_html(stages: Iterable[Stage]) -> str:
    """Both spans of time below each other."""
    stages = list(stages)
    return "".join(
        f'<h3>{title}</h3><div class="ms-funnel" role="list" aria-label="{title}">{_bars(stages, lately)}</div>'
        for title, lately in (("Today", True), (f"Last {SHOWN_DAYS} days", False))
    )


def _bars(stages: Sequence[Stage], lately: bool) -> str:
    numbers = [stage.today if lately else stage.week for stage in stages]
    made = []
    for stage, number in zip(stages, numbers, strict=True):
        part = share(number, numbers[0])
        said = "" if part is None else f"{part * 100:.0f} %" if part in (0.0, 1.0) else f"{part * 100:.1f} %"
        made.append(
            f'<div class="ms-stage {stage.name.lower()}" role="listitem"><span>{escape(stage.name)}</span>'
            f'<span class="ms-bar"><i style="width:{(part or 0.0) * 100:.1f}%"></i></span>'
            f'<b>{shown_count(number)}</b><span class="quiet">{said}</span></div>'
        )
    return "".join(made)

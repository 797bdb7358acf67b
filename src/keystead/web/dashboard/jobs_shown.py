"""Jobs, queues and times as people read them on the pages about jobs."""

import json
from datetime import UTC, datetime
from html import escape
from urllib.parse import quote

from keystead.jobs.inspection_views import JobView
from keystead.web.dashboard.shown import NOTHING, chip, shown_count, shown_duration

LONGEST_JSON = 6000
LONGEST_LINE = 300
PATIENCE_SECONDS = 5.0

# The tone of each state and place, as chips show them.
TONES = {
    "running": "good", "succeeded": "good", "queued": "", "waiting": "", "delayed": "", "retrying": "warn",
    "cancelled": "warn", "failed": "bad", "dead": "bad",
}
WORDS = {"dead": "failed"}


def job_address(uid: str) -> str:
    return f"/jobs/{quote(uid, safe='')}"


def state_chip(state: str) -> str:
    """The state or place of a job, coloured."""
    return chip(WORDS.get(state, state), TONES.get(state, ""))


def job_cell(job: JobView) -> str:
    """A job's name, leading to its page, and its uid."""
    if job.record is None:
        return f'<span class="quiet">not a job: {escape(cut(job.problem))}</span>'
    return name_cell(job.name, job.uid)


def name_cell(name: str, uid: str) -> str:
    if not uid:
        return f'<span class="mono">{escape(cut(name))}</span> <span class="quiet uid">without a uid</span>'
    return (f'<a class="mono" href="{escape(job_address(uid))}">{escape(cut(name))}</a>'
            f' <span class="quiet uid">{escape(cut(uid, 60))}</span>')


def number(count: int, tone: str = "") -> str:
    """A count; nothing to see is faint."""
    return f'<span class="{tone if count else "zero"}">{shown_count(count)}</span>'


def ago(at: float | None, now: float) -> str:
    """``12 s``; a dash for what never was."""
    return NOTHING if not at else shown_duration(now - at)


def took(seconds: float) -> str:
    """How long something ran, as HTML: ``12 ms``, ``3.4 s``, ``2 min 5 s``."""
    if seconds < 0.001:
        return "&lt; 1 ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s" if seconds < 60 else \
        shown_duration(seconds)


def due(at: float | None, now: float, speed: float = 1.0) -> str:
    """``speed``: of the clock by which both are told. What is late by a few real seconds is only being handed over."""
    if at is None:
        return NOTHING
    return f"in {shown_duration(at - now)}" if at - now >= 1 else "now" if now - at < PATIENCE_SECONDS * speed else \
        f"{shown_duration(now - at)} overdue"


def moment(at: float | None) -> str:
    """A date and time for whoever compares with a log."""
    if not at:
        return ""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{at:g}"


def clock_time(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return f"{at:g}"


def cut(text: str, most: int = LONGEST_LINE) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def pretty(value: object) -> str:
    """JSON over several lines, cut where nobody reads on."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    if len(text) <= LONGEST_JSON:
        return text
    return f"{text[:LONGEST_JSON]}\n… {shown_count(len(text) - LONGEST_JSON)} more characters"


def plural(count: int, one: str, many: str = "") -> str:
    return f"{shown_count(count)} {one if count == 1 else many or one + 's'}"

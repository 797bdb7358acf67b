"""What is known of one job, as HTML."""

import json
from html import escape

from keystead.jobs import JobRecord
from keystead.jobs.handle import ENDED
from keystead.jobs.inspection_views import JobFound
from keystead.web.dashboard.jobs_shown import cut, due, job_address, moment, pretty, took
from keystead.web.dashboard.key_page import masked_value
from keystead.web.dashboard.shown import fact_rows, shown_ago, shown_duration

GONE = "ended"
ENDINGS: dict[str, str] = {
    "succeeded": "It ended well.", "failed": "It failed and will not be tried again.",
    "cancelled": "It was called off.",
}
NOT_KEPT = "It is one of the newest that ended; what it was given and what it gave is not kept."


def state_of(found: JobFound) -> str:
    """One word. Where it lies says more than a state that is about to change; what lies nowhere has ended."""
    state, view = found.state, found.view
    if state is not None and (view is None or view.place != "dead"):
        return state.status
    return view.place if view is not None else found.ended.status if found.ended is not None else GONE


def is_ended(found: JobFound) -> bool:
    return state_of(found) in (*ENDED, "dead", GONE)


def name_of(found: JobFound | None, record: JobRecord | None) -> str:
    known = record or (None if found is None else found.state or found.ended)
    return known.name if known is not None else ""


def error_of(found: JobFound) -> str:
    return next((one.error for one in (found.view, found.state, found.ended) if one is not None and one.error), "")


def facts_html(found: JobFound, record: JobRecord | None, now: float, speed: float = 1.0) -> str:
    """Times, tries, place and wishes; what is not known is left out. ``speed``: of the clock that told the times; how
    long it took is said in real time."""
    state, view, ended = found.state, found.view, found.ended
    known = record or state or ended
    tries = view.attempts if view is not None and view.attempts is not None else \
        state.attempts if state is not None and state.attempts else ended.attempts if ended is not None else \
        record.attempt if record is not None else 0
    worker = next((one.worker for one in (view, state, ended) if one is not None and one.worker), "")
    ended_at = (state.finished_at if state else None) or (view.dead_at if view else None) or \
        (ended.ended_at if ended else None)
    rows = [
        ("What now", says(found)),
        ("Queue", f'<span class="mono">{escape(found.queue)}</span>'),
        ("Worker", f'<span class="mono">{escape(worker)}</span>' if worker else ""),
        ("Queued", _moment(known.queued_at if known is not None else None, now)),
        ("Due", due(view.due_at, now) if view is not None and view.due_at is not None else ""),
        ("Begun", _moment(state.started_at if state else None, now)),
        ("Ended", _moment(ended_at, now)),
        ("Took", _took(found, speed)),
        ("Tries", str(tries) if tries else ""),
    ]
    return fact_rows([*rows, *_wishes(record)])


def says(found: JobFound) -> str:
    """What the state means, for whoever does not know the words."""
    if found.ended is not None:
        return f"{ENDINGS[found.ended.status]} {NOT_KEPT}"
    if not found.searched_all and found.view is None and found.state is None:
        return "It may lie deep in a queue that is too long to be searched."
    return {
        "queued": "It waits for a worker.", "running": "A worker runs it now.", "waiting": "It waits for other jobs.",
        "delayed": "It waits for its time.", "retrying": "A try failed; it will be tried again.",
        **ENDINGS,
        "dead": "It failed and was put aside. Retry queues it again; drop forgets it.",
        GONE: "It has ended, or was dropped; no state of it is kept.",
    }.get(state_of(found), "")


def _wishes(record: JobRecord | None) -> list[tuple[str, str]]:
    if record is None or record.options is None:
        return []
    wishes = record.options
    after = ", ".join(f'<a class="ks-link mono" href="{escape(job_address(uid))}">{escape(cut(uid, 60))}</a>'
                      for uid in wishes.after)
    return [
        ("Kept for", shown_duration(wishes.keep_seconds) if wishes.keep_seconds else ""),
        ("Time limit", shown_duration(wishes.timeout_seconds) if wishes.timeout_seconds else ""),
        ("Most tries", str(wishes.tries) if wishes.tries else ""),
        ("Batch", f'<span class="mono">{escape(wishes.batch)}</span>' if wishes.batch else ""),
        ("After", after),
        ("On success", escape(wishes.on_success.name) if wishes.on_success else ""),
        ("On failure", escape(wishes.on_failure.name) if wishes.on_failure else ""),
    ]


def kwargs_html(record: JobRecord | None, *, revealed: bool) -> str:
    if record is None:
        return '<div class="ks-empty">Not known: what a job was given lies only with the job itself.</div>'
    if not record.kwargs:
        return '<div class="ks-empty">It takes none.</div>'
    return _value(record.kwargs, revealed=revealed)


def result_html(found: JobFound, *, revealed: bool) -> str:
    """Empty while there is none."""
    if found.state is None or not found.state.result:
        return ""
    try:
        value = json.loads(found.state.result)
    except ValueError:
        value = found.state.result
    return _value(value, revealed=revealed or value is None)


def _value(value: object, *, revealed: bool) -> str:
    shown = pretty(value if revealed else masked_value(value))
    return f'<pre class="ks-value{"" if revealed else " ks-masked"}">{escape(shown)}</pre>'


def _moment(at: float | None, now: float) -> str:
    return f"{shown_ago(now - at)}<small>{moment(at)}</small>" if at else ""


def _took(found: JobFound, speed: float) -> str:
    state, ended = found.state, found.ended
    if ended is not None and ended.ran_seconds is not None:
        return took(ended.ran_seconds)
    if state is None or not state.started_at or not state.finished_at:
        return ""
    return took(max(0.0, state.finished_at - state.started_at) / speed)

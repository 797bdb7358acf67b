"""What changed in the keyspace in the last hour: patterns that grew, shrank, came or went, and keys nobody declares."""

from html import escape
from typing import Final

from nicegui import ui

from keystead.app import Running
from keystead.clock import real, real_seconds
from keystead.operations import Census
from keystead.web.dashboard.jobs_shown import clock_time, plural
from keystead.web.dashboard.live_table import Column, LiveTable, Row
from keystead.web.dashboard.operator_frame import operator_frame, operator_head, verdict
from keystead.web.dashboard.pattern_table import pattern_address
from keystead.web.dashboard.shown import NOTHING, chip, shown_ago, shown_bytes, shown_count, shown_duration
from keystead.web.dashboard.stats_frame import keep_looking
from keystead.web.dashboard.stats_spark import sparkline
from keystead.web.keyspace_changes import WINDOW_SECONDS, ChangeKeeper, KeyspaceChanges, PatternChange
from keystead.web.sampler import Sampler

SHOWN_PATTERNS: Final = 30
COLUMNS: Final = (
    Column("Pattern"), Column("In that time", "op-hour mid"), Column("Keys", "num"), Column("Memory", "num"),
)
STRAY_COLUMNS: Final = (Column("Looks like"), Column("Before", "num mid"), Column("Now", "num"))
MINUS: Final = "\N{MINUS SIGN}"
KINDS: Final = {"new": ("new", "good"), "gone": ("gone", "warn"), "passing": ("came and went", "")}


def show_changes(running: Running, sampler: Sampler, census: Census, keeper: ChangeKeeper) -> None:
    """Build the page for one viewer; it then moves with the census."""
    drawn: object = object()
    with operator_frame(running, sampler, "/changes"):
        state = operator_head("Changes", "What changed in the keyspace in the last hour, by declared pattern.")
        says = ui.html("", sanitize=False).props("role=status data-verdict")
        with ui.element("section").classes("ks-card").props('aria-label="Changed patterns"'):
            with ui.element("div").classes("ks-card-head"):
                ui.html(f"Changed most, {SHOWN_PATTERNS} at most", sanitize=True, tag="h2")
                with ui.element("div").classes("ks-side"):
                    counted = ui.html("", sanitize=True).classes("quiet")
                    again = ui.html("Count again", sanitize=True, tag="button").classes("ks-btn").props("type=button")
                    again.on("click", census.want)
            table = LiveTable(COLUMNS, classes="op-changes")
        with ui.element("section").classes("ks-card").props('aria-label="Not declared"'):
            with ui.element("div").classes("ks-card-head"):
                ui.html("Not declared", sanitize=True, tag="h2")
                ui.html("keys that no room declares, by what their names have in common", sanitize=True
                        ).classes("quiet")
            strays = LiveTable(STRAY_COLUMNS, classes="op-changes")

    def look() -> None:
        nonlocal drawn
        now = real(running.clock).now()
        counted.set_content(
            f"counted {shown_ago(real_seconds(running.clock, running.clock.now() - census.counted_at))}"
            if census.counted_at else "Counting for the first time…")
        if drawn is census.counts and keeper.samples:
            return
        found = keeper.changes()
        if found is None:
            state("Counting", "idle")
            says.set_content(verdict("The keys are being counted for the first time; what changes shows after that.",
                                     "quiet"))
            return
        drawn = census.counts
        state(*standing(found))
        says.set_content(verdict_html(found, now))
        changed = [each for each in found.patterns if each.kind != "same"]
        table.show([change_row(each) for each in changed[:SHOWN_PATTERNS]],
                   empty="No declared pattern has more or fewer keys than at the beginning, or another weight.")
        strays.show([stray_row(name, before, after) for name, (before, after) in sorted(
            found.strays.items(), key=lambda item: (-abs(item[1][1] - item[1][0]), -item[1][1]))[:SHOWN_PATTERNS]],
            empty="None: every key on the server is declared.")

    keep_looking(look)


def standing(found: KeyspaceChanges) -> tuple[str, str]:
    if found.undeclared[1][0] > found.undeclared[0][0]:
        return "Undeclared keys came", "warn"
    changed = sum(each.kind != "same" for each in found.patterns)
    return (f"{plural(changed, 'pattern')} changed", "") if changed else ("Nothing changed", "idle")


def verdict_html(found: KeyspaceChanges, now: float) -> str:
    """The hour in a sentence, and since when anything is known."""
    new = sum(each.kind == "new" for each in found.patterns)
    gone = sum(each.kind == "gone" for each in found.patterns)
    kinds = [f"{plural(new, 'pattern')} got their first keys" if new > 1 else "1 pattern got its first keys"] if new \
        else []
    kinds += [f"{plural(gone, 'pattern')} {'has' if gone == 1 else 'have'} none any more"] if gone else []
    undeclared = found.undeclared[1][0] - found.undeclared[0][0]
    if undeclared:
        kinds.append(f"{signed(undeclared)} keys that nobody declares")
    length = found.until - found.since
    short = "" if length > WINDOW_SECONDS - 120 else (
        f" This process looks since {clock_time(found.since)} UTC, so less than an hour is known.")
    return verdict(
        f"In the last <b>{shown_duration(length)}</b> the keyspace went from {shown_count(found.keys[0])} to "
        f"<b>{shown_count(found.keys[1])} keys</b> ({signed(found.keys[1] - found.keys[0])}) and from "
        f"{shown_bytes(found.memory_bytes[0])} to <b>{shown_bytes(found.memory_bytes[1])}</b>"
        f"{'; ' + ', '.join(kinds) if kinds else ''}."
        f"<small>Looked at once a minute, by this process, since {clock_time(found.since)} UTC.{short}</small>",
        "warn" if undeclared > 0 else "")


def signed(count: int) -> str:
    return f"+{shown_count(count)}" if count > 0 else f"{MINUS}{shown_count(-count)}" if count else "the same"


def change_row(each: PatternChange) -> Row:
    words, tone = KINDS.get(each.kind, ("", ""))
    made = f" {chip(words, tone)}" if words else ""
    return Row(each.pattern, (
        f'<a class="mono" href="{escape(pattern_address(each.pattern))}">{escape(each.pattern)}</a>{made}',
        sparkline(each.counts),
        f"{_difference(each.keys, signed(each.keys))} {shown_count(each.now[0])}",
        f"{_difference(each.memory_bytes, _signed_bytes(each.memory_bytes))} "
        f"{shown_bytes(each.now[1]) if each.now[0] else NOTHING}",
    ))


def stray_row(name: str, before: int, after: int) -> Row:
    made = chip("new", "warn") if not before else chip("gone") if not after else ""
    grown = _difference(after - before, signed(after - before))
    return Row(f"stray {name}", (
        f'<span class="mono">{escape(name)}</span> {made}', shown_count(before),
        f"{grown} {shown_count(after)}",
    ))


def _difference(amount: int, words: str) -> str:
    return f'<span class="{"op-up" if amount > 0 else "op-down" if amount < 0 else "zero"}">{words}</span>'


def _signed_bytes(count: int) -> str:
    return f"+{shown_bytes(count)}" if count > 0 else f"{MINUS}{shown_bytes(-count)}" if count else "the same"

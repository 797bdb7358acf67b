"""What went wrong, grouped by reason: letters that were given up, and can be tried again; and failures by count."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from nicegui import ui

from keystead.app import Running
from keystead.engine import Valkey
from keystead.jobs.dead_letters import group_of
from keystead.keys import Undecodable
from keystead.patterns import DeadLetter
from keystead.stats import Series
from keystead.web.dashboard.jobs_shown import cut, moment, number, plural
from keystead.web.dashboard.live_table import Action, Column, LiveTable, Row
from keystead.web.dashboard.shown import shown_ago, shown_count
from keystead.web.dashboard.stepping_in import SteppingIn
from keystead.web.dead_places import PLACES
from keystead.web.stats_watch import Shared

Look = Callable[[], None]

MOST_LETTERS: Final = 1000
STEP_LETTERS: Final = 100
SHOWN_GROUPS: Final = 50
SHOWN_VALUES: Final = 4
DEAD_COLUMNS: Final = (Column("Reason"), Column("Letters", "num"), Column("Last", "when mid"))
FAILURE_COLUMNS: Final = (Column("Reason"), Column("Today", "num"), Column("Yesterday", "num"))

# Families whose counts tell of failures, the channel they are about, and which of their events do.
FAILURES: Final[Mapping[str, tuple[str, str]]] = {
    "push_tickets": ("Push", "failed abandoned"), "push_receipts": ("Push receipt", "failed abandoned"),
    "sms_send": ("Text", "failed abandoned"), "sms_events": ("Text news", "failed"),
    "email_send": ("Email", "failed abandoned"), "email_events": ("Email news", "bounced complaint"),
    "touch_send": ("Touch", "improper unreachable stale"),
    "touch_drops": ("Touch spared", "daily_cap quiet_hours same_content erased"), "touch_stale": ("Touch", "stale"),
}
# Nothing went wrong with these: people were not to be bothered.
SPARED: Final = ("touch_drops",)


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """Dead letters of one queue with errors alike; ``newest`` is one of these errors in full."""

    queue: str
    error: str
    count: int
    newest: str
    last_at: float


@dataclass(frozen=True, slots=True)
class Failure:
    """One kind of failure of one family, by its most frequent details."""

    family: str
    about: str
    event: str
    today: int
    yesterday: int
    details: tuple[tuple[str, int], ...]


async def dead_groups(running: Running) -> list[DeadGroup]:
    """The newest thousand letters of each queue, most frequent first."""
    found: list[DeadGroup] = []
    for queue in PLACES:
        groups: dict[str, list[DeadLetter]] = {}
        for letter, _, _ in await _letters(running, queue):
            groups.setdefault(group_of(letter.error), []).append(letter)
        found += [DeadGroup(queue, error, len(letters), letters[-1].error, max(one.dead_at for one in letters))
                  for error, letters in groups.items()]
    return sorted(found, key=lambda group: (-group.count, group.queue, group.error))


async def replay(running: Running, group: DeadGroup) -> int:
    """Let the letters of a group, as they were seen, be tried again; says how many."""
    place, moved = PLACES[group.queue], 0
    by_lane: dict[Valkey, list[bytes]] = {}
    for letter, raw, lane in await _letters(running, group.queue):
        if group_of(letter.error) == group.error and letter.dead_at <= group.last_at:
            by_lane.setdefault(lane, []).append(raw)
    for lane, chosen in by_lane.items():
        for first in range(0, len(chosen), STEP_LETTERS):
            moved += await place.replay_chosen(lane, chosen[first : first + STEP_LETTERS], running.clock.now())
    return moved


async def _letters(running: Running, queue: str) -> list[tuple[DeadLetter, bytes, Valkey]]:
    """Letters with their bytes and the lane they lie in."""
    place, found = PLACES[queue], []
    dead = place.dead
    for lane in place.lanes(running.valkey):
        raws: list[bytes] = await lane.run(("LRANGE", dead.name(lane.layout), -MOST_LETTERS, -1), list, repeat=True)
        for raw in raws:
            try:
                found.append((dead.codec.decode(raw), raw, lane))
            except Undecodable:
                continue  # the page of the key shows it; it is no letter that could be tried again
    return found


def dead_card(running: Running, shared: Shared[list[DeadGroup]], step_in: SteppingIn) -> Look:
    """The most frequent reasons first."""

    async def act(key: str, _action: str) -> None:
        group = next((each for each in shared.value or () if _key(each) == key), None)
        if group is None:
            step_in.tell("These letters are not there any more.", bad=True)
        elif await step_in.confirmed(
            f"Try {plural(group.count, 'letter')} again?",
            f"They wait again in {group.queue}. Messages among them may be sent; to real people if the provider "
            f"is a real one. They were given up because: {cut(group.newest)}", f"Try {plural(group.count, 'letter')}",
        ):
            await step_in.tried(_replayed(running, group))
        await shared.read()
        look()

    with ui.element("section").classes("ks-card").props('aria-label="Given up"'):
        with ui.element("div").classes("ks-card-head"):
            ui.html("Given up, by reason", sanitize=True, tag="h2")
            says = ui.html("", sanitize=True).classes("quiet")
        table = LiveTable(DEAD_COLUMNS, act=act)

    def look() -> None:
        if shared.value is None:
            return
        groups, now = shared.value, running.clock.now()
        says.set_content(plural(sum(group.count for group in groups), "letter") if groups else "")
        table.show([dead_row(group, now) for group in groups[:SHOWN_GROUPS]], empty=(
            "Nothing was given up. What a worker dies with again and again, or cannot be read, is put aside here with "
            "the reason, and can be tried again."))

    return look


async def _replayed(running: Running, group: DeadGroup) -> str:
    moved = await replay(running, group)
    return f"{plural(moved, 'letter')} queued again." if moved else "They were not there any more."


def _key(group: DeadGroup) -> str:
    return f"{group.queue} {group.error}"


def dead_row(group: DeadGroup, now: float) -> Row:
    return Row(_key(group), (
        f'<div class="ks-error">{escape(cut(group.newest or "no reason was told"))}</div>'
        f'<div class="quiet mono">{escape(group.queue)}</div>', f'<span class="bad">{shown_count(group.count)}</span>',
        f'<span title="{moment(group.last_at)}">{shown_ago(now - group.last_at)}</span>',
    ), (Action("replay", "Try again", "accent", f"Try {shown_count(group.count)} of {group.queue} again"),))


def failures(counted: Mapping[str, Series]) -> list[Failure]:
    """What failed today and yesterday, most frequent first."""
    found = []
    for family, (about, wanted) in FAILURES.items():
        series = counted.get(family)
        if series is None:
            continue
        for event in (event for event in series.counts if event.startswith(tuple(wanted.split()))):
            yesterday, today = ([0, *series.counts[event]])[-2:]
            if today or yesterday:
                details = _details(series.breakdowns.get(event, {}).items())
                found.append(Failure(family, about, event, today, yesterday, details))
    return sorted(found, key=lambda one: (-(one.today + one.yesterday), one.family, one.event))


def _details(values: Iterable[tuple[str, Sequence[int]]]) -> tuple[tuple[str, int], ...]:
    lately = [(value, sum(days[-2:])) for value, days in values]
    return tuple(sorted((pair for pair in lately if pair[1]), key=lambda pair: (-pair[1], pair[0])))


def failures_card(counted: Shared[dict[str, Series]]) -> Look:
    """What was counted as a failure since yesterday began."""
    with ui.element("section").classes("ks-card").props('aria-label="Failures"'):
        with ui.element("div").classes("ks-card-head"):
            ui.html("Failures, by reason", sanitize=True, tag="h2")
            ui.html("counted today and yesterday", sanitize=True).classes("quiet")
        table = LiveTable(FAILURE_COLUMNS, classes="ms-failures")

    def look() -> None:
        if counted.value is not None:
            table.show([failure_row(one) for one in failures(counted.value)[:SHOWN_GROUPS]],
                       empty="Nothing failed today or yesterday.")

    return look


def failure_row(one: Failure) -> Row:
    shown = ", ".join(f"{escape(cut(value, 60))} ({shown_count(count)})" if len(one.details) > 1 else
                      escape(cut(value, 60)) for value, count in one.details[:SHOWN_VALUES])
    more = f" and {len(one.details) - SHOWN_VALUES} more" if len(one.details) > SHOWN_VALUES else ""
    words = one.event.removeprefix("failed_due_to_").replace("_", " ")
    link = f'<a class="ks-link" href="/stats/{one.family}">{escape(one.about)}: {escape(words)}</a>'
    below = f'<div class="quiet">{shown}{more}</div>' if shown else ""
    tone = "" if one.family in SPARED else "bad"
    return Row(f"{one.family} {one.event}", (link + below, number(one.today, tone), number(one.yesterday, tone)))

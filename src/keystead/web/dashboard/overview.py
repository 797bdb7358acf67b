"""The first page: how the server is, how busy it is, and what lies in it."""

from collections.abc import Callable

from nicegui import ui
from nicegui.events import GenericEventArguments

from keystead.app import Running
from keystead.web.census import Census
from keystead.web.dashboard.chart import moved, options
from keystead.web.dashboard.frame import LOOK_SECONDS, page_frame
from keystead.web.dashboard.pattern_table import pattern_table
from keystead.web.dashboard.shown import (
    NOTHING,
    shown_ago,
    shown_bytes,
    shown_count,
    shown_duration,
    shown_rate,
    shown_share,
)
from keystead.web.facts import ServerFacts
from keystead.web.sampler import Sampler

Look = Callable[[], None]


def show_overview(running: Running, sampler: Sampler, census: Census) -> None:
    """Build the page for one viewer; it then moves by itself, from what the shared sampler and census know."""
    with page_frame(sampler, running.clock, current="/"):
        looks = [_head(sampler), _tiles(sampler), _rate_card(running, sampler), _patterns_card(running, census)]

    def look() -> None:
        for each in looks:
            each()

    look()
    ui.timer(LOOK_SECONDS, look)


def _head(sampler: Sampler) -> Look:
    with ui.element("div").classes("ks-head"):
        with ui.element("div"):
            title = ui.html("", sanitize=True, tag="h1")
            below = ui.html("", sanitize=True, tag="p")
        state = ui.html("", sanitize=True, tag="span").classes("ks-state").props("role=status")

    def look() -> None:
        facts = sampler.facts
        title.set_content(f"{facts.product} {facts.version}" if facts else "Server")
        below.set_content(summary(facts) if facts else "Waiting for the first answer…")
        away = sampler.away_since is not None
        state.set_content("Away" if away else "Loading its data" if facts and facts.loading else "Running")
        state.classes(add="away") if away else state.classes(remove="away")

    return look


def summary(facts: ServerFacts) -> str:
    replicas = f" with {facts.replicas} replica{'s' if facts.replicas > 1 else ''}" if facts.replicas else ""
    if facts.mode == "cluster":
        what = f"Cluster of {facts.primaries} primar{'ies' if facts.primaries > 1 else 'y'}"
    else:
        what = {"master": "Primary", "slave": "Replica"}.get(facts.role, facts.role.capitalize())
    return f"{what}{replicas}, up {shown_duration(facts.uptime_seconds)}"


def tile_texts(facts: ServerFacts) -> list[tuple[str, str, str]]:
    """Name, value and the line below it, for each tile."""
    limit = f"limit {shown_bytes(facts.memory_limit_bytes)}" if facts.memory_limit_bytes else "no limit"
    lookups = facts.hits + facts.misses
    evicted = f", {shown_count(facts.evicted)} evicted" if facts.evicted else ""
    return [
        ("Memory", shown_bytes(facts.memory_bytes), f"peak {shown_bytes(facts.memory_peak_bytes)}, {limit}"),
        ("Keys", shown_count(facts.keys), f"{shown_count(facts.keys_with_ttl)} will expire"),
        ("Clients", shown_count(facts.clients), "connected now"),
        ("Hit rate", shown_share(facts.hit_rate), f"{shown_count(lookups)} lookups" if lookups else "no lookups yet"),
        ("Commands", shown_count(facts.commands), f"{shown_count(facts.expired)} keys expired{evicted}"),
        ("On disk", facts.persistence[0].upper() + facts.persistence[1:],
         "in order" if facts.persistence_ok else "needs attention"),
    ]


def _tiles(sampler: Sampler) -> Look:
    grid = ui.element("div").classes("ks-tiles")
    shown: list[tuple[ui.html, ui.html]] = []
    with grid:
        for name in ("Memory", "Keys", "Clients", "Hit rate", "Commands", "On disk"):
            with ui.element("section").classes("ks-tile").props(f'aria-label="{name}"'):
                ui.html(name, sanitize=True).classes("name")
                value = ui.html(NOTHING, sanitize=True).classes("value" + (" words" if name == "On disk" else ""))
                shown.append((value, ui.html("", sanitize=True).classes("more")))

    def look() -> None:
        if sampler.facts is not None:
            for (value, more), (_, value_text, more_text) in zip(shown, tile_texts(sampler.facts), strict=True):
                value.set_content(value_text)
                more.set_content(more_text)
        grid.classes(add="stale") if sampler.away_since is not None else grid.classes(remove="stale")

    return look


def _rate_card(running: Running, sampler: Sampler) -> Look:
    with ui.element("section").classes("ks-card"):
        with ui.element("div").classes("ks-card-head"):
            ui.html("Commands per second", sanitize=True, tag="h2")
            now = ui.html("", sanitize=True).classes("ks-now").props("data-rate")
        chart = ui.echart(options(sampler.samples, running.clock.now())).classes("ks-chart")
    drawn = False

    def look() -> None:
        nonlocal drawn
        last = sampler.samples[-1].commands_per_second if sampler.samples else None
        now.set_content(f"{shown_rate(last)}<small>now</small>")
        if drawn:
            chart.run_chart_method("setOption", moved(sampler.samples, running.clock.now()))
        drawn = True

    return look


def _patterns_card(running: Running, census: Census) -> Look:
    wanted, largest_first = "", False
    drawn: object = object()
    with ui.element("section").classes("ks-card"):
        with ui.element("div").classes("ks-card-head"):
            with ui.element("div"):
                ui.html("Declared patterns", sanitize=True, tag="h2")
                when = ui.html("", sanitize=True).classes("quiet")
            with ui.element("div").classes("ks-side"):
                box = ui.element("input").classes("ks-filter")
                box.props('type=search placeholder="Filter patterns…" aria-label="Filter patterns"')
                order = ui.html("Largest first", sanitize=True, tag="button").classes("ks-btn").props("type=button")
                again = ui.html("Count again", sanitize=True, tag="button").classes("ks-btn").props("type=button")
        table = ui.html("", sanitize=False)

    def draw() -> None:
        table.set_content(pattern_table(running.registry, census.counts, wanted, largest_first=largest_first))

    def look() -> None:
        nonlocal drawn
        when.set_content(_counted(running, census))
        if drawn is not census.counts:
            drawn = census.counts
            draw()

    def filter_by(event: GenericEventArguments) -> None:
        nonlocal wanted
        wanted = str(event.args)[:200]
        draw()

    def turn_order() -> None:
        nonlocal largest_first
        largest_first = not largest_first
        order.set_content("By room" if largest_first else "Largest first")
        draw()

    order.on("click", turn_order)
    box.on("input", filter_by, throttle=0.1, js_handler="(event) => emit(event.target.value)")
    again.on("click", census.want)
    return look


def _counted(running: Running, census: Census) -> str:
    if census.counts is None or census.counted_at is None:
        return "Counting for the first time…"
    ago = shown_ago(running.clock.now() - census.counted_at)
    walking = ", counting again…" if census.counting else ""
    return f"{shown_count(census.counts.keys)} keys, counted {ago}{walking}"

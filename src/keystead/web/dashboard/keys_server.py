"""The server that holds the keys: what it is, how it is, and how busy it is."""

from collections.abc import Callable

from nicegui import ui

from keystead.app import Running
from keystead.clock import real
from keystead.web.dashboard.chart import moved, options
from keystead.web.dashboard.shown import (
    NOTHING,
    shown_bytes,
    shown_count,
    shown_duration,
    shown_rate,
    shown_share,
)
from keystead.web.facts import ServerFacts
from keystead.web.sampler import Sampler

Look = Callable[[], None]


def summary(facts: ServerFacts) -> str:
    """What kind of server it is and since when it runs."""
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


def server_tiles(sampler: Sampler) -> Look:
    """What the server says about itself."""
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


def commands_card(running: Running, sampler: Sampler) -> Look:
    """Commands per second in the last minutes."""
    clock = real(running.clock)
    with ui.element("section").classes("ks-card").props('aria-label="Commands per second"'):
        with ui.element("div").classes("ks-card-head"):
            with ui.element("div"):
                ui.html("Commands per second", sanitize=True, tag="h2")
                ui.html("the last five minutes, in your local time", sanitize=True).classes("quiet")
            now = ui.html("", sanitize=True).classes("ks-now").props("data-rate")
        chart = ui.echart(options(sampler.samples, clock.now())).classes("ks-chart")
    drawn = False

    def look() -> None:
        nonlocal drawn
        last = sampler.samples[-1].commands_per_second if sampler.samples else None
        now.set_content(f"{shown_rate(last)}<small>now</small>")
        if drawn:
            chart.run_chart_method("setOption", moved(sampler.samples, clock.now()))
        drawn = True

    return look

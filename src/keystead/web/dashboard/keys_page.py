"""Every declared pattern: what it weighs, how many keys it has, whether it holds personal data."""

from collections.abc import Callable, Iterable
from html import escape
from typing import Final

from nicegui import ui
from nicegui.events import GenericEventArguments

from keystead.app import Running
from keystead.clock import speed_of
from keystead.keys import Declaration
from keystead.operations import Census, PatternCounts
from keystead.web.dashboard.frame import LOOK_SECONDS, page_frame
from keystead.web.dashboard.keys_server import commands_card, server_tiles, summary
from keystead.web.dashboard.live_table import button
from keystead.web.dashboard.pattern_table import ORDERS, Order, pattern_address, pattern_table
from keystead.web.dashboard.shown import chip, shown_ago, shown_bytes, shown_count, shown_share
from keystead.web.sampler import Sampler

Look = Callable[[], None]

SHOWN_BARS: Final = 10
FIRST_ROWS_SECONDS: Final = 0.05


def show_keys(
    running: Running, sampler: Sampler, census: Census, *, order: str = "", personal: bool = False
) -> None:
    """Build the page for one viewer; it then moves by itself, from what the shared census knows."""
    with page_frame(sampler, running.clock, current="/keys"):
        looks = [_head(running, sampler, census), server_tiles(sampler), _weights_card(running, census)]
        patterns = _patterns_card(running, census, order, personal)
        looks.append(commands_card(running, sampler))

    def look() -> None:
        for each in looks:
            each()

    look()
    looks.append(patterns)
    # Hundreds of rows come once the page is there: it shows at once, and they are sent only once.
    ui.timer(FIRST_ROWS_SECONDS, patterns, once=True)
    ui.timer(LOOK_SECONDS, look)


def _head(running: Running, sampler: Sampler, census: Census) -> Look:
    with ui.element("div").classes("ks-head"):
        with ui.element("div"):
            ui.html("Keys", sanitize=True, tag="h1")
            below = ui.html("", sanitize=True, tag="p")
        again = button("Count again")
        again.on("click", census.want)

    def look() -> None:
        facts = sampler.facts
        of = f"{facts.product} {facts.version}. {summary(facts)}. " if facts is not None else ""
        below.set_content(of + counted(running, census))

    return look


def counted(running: Running, census: Census) -> str:
    """What was counted and when, in a line."""
    if census.counts is None or census.counted_at is None:
        return "Counting for the first time…"
    ago = shown_ago((running.clock.now() - census.counted_at) / speed_of(running.clock))
    walking = ", counting again…" if census.counting else "."
    return f"{shown_count(census.counts.keys)} keys, counted {ago}{walking}"


def _weights_card(running: Running, census: Census) -> Look:
    drawn: object = object()
    with ui.element("section").classes("ks-card").props('aria-label="Memory by pattern"'):
        with ui.element("div").classes("ks-card-head"):
            ui.html("Memory by pattern", sanitize=True, tag="h2")
            says = ui.html("", sanitize=True).classes("quiet")
        bars = ui.html("", sanitize=False)

    def look() -> None:
        nonlocal drawn
        if drawn is census.counts:
            return
        drawn = census.counts
        found = heaviest(running.registry, census.counts)
        says.set_content(f"the {len(found)} largest" if len(found) == SHOWN_BARS else "")
        bars.set_content(weights_html(found, census.counts))

    return look


def heaviest(
    declarations: Iterable[Declaration], counts: PatternCounts | None, most: int = SHOWN_BARS
) -> list[tuple[Declaration, int]]:
    """Patterns with the memory of their keys, largest first; those without keys are left out."""
    if counts is None:
        return []
    weighed = [(each, counts.of(each).memory_bytes) for each in declarations if each.kind != "channel"]
    return sorted((pair for pair in weighed if pair[1]), key=lambda pair: (-pair[1], pair[0].pattern))[:most]


def weights_html(found: list[tuple[Declaration, int]], counts: PatternCounts | None) -> str:
    """A bar for each pattern, as long as its share of the heaviest."""
    if counts is None:
        return '<div class="ks-empty">The keys are being counted for the first time…</div>'
    if not found:
        return ('<div class="ks-empty">No declared key is on the server yet. As soon as something is stored, the '
                "patterns that weigh most stand here.</div>")
    most, whole = found[0][1], max(1, counts.memory_bytes)
    rows = "".join(
        f'<li><a class="mono" href="{pattern_address(each.pattern)}">{escape(each.pattern)}</a>'
        f'<span class="bar" aria-hidden="true"><i style="width:{max(0.5, 100 * weight / most):.1f}%"></i></span>'
        f'<b>{shown_bytes(weight)}</b><span class="quiet">{shown_share(weight / whole)}</span>'
        f'<span class="mark">{chip("personal", "warn") if each.personal else ""}</span></li>'
        for each, weight in found
    )
    return f'<ol class="ks-bars">{rows}</ol>'


def _patterns_card(running: Running, census: Census, order: str, personal: bool) -> Look:
    chosen: Order = next((name for name in ORDERS if name == order), "memory")
    wanted, used = "", False
    drawn: object = object()
    with ui.element("section").classes("ks-card").props('aria-label="Patterns"'):
        with ui.element("div").classes("ks-card-head"):
            ui.html("Declared patterns", sanitize=True, tag="h2")
            with ui.element("div").classes("ks-side ks-wrap"):
                box = ui.element("input").classes("ks-filter")
                box.props('type=search placeholder="Filter patterns…" aria-label="Filter patterns"')
                only_personal = button("Personal data").props(f"aria-pressed={str(personal).lower()}")
                only_used = button("With keys").props("aria-pressed=false")
                with ui.element("div").classes("ks-tabs").props('role=group aria-label="Order"'):
                    orders = {name: ui.html(says, sanitize=True, tag="button").props("type=button")
                              for name, says in ORDERS.items()}
        table = ui.html('<div class="ks-empty">The patterns come in a moment…</div>', sanitize=False)

    def draw() -> None:
        for name, each in orders.items():
            each.props(f"aria-pressed={str(name == chosen).lower()}")
        only_personal.props(f"aria-pressed={str(personal).lower()}")
        only_used.props(f"aria-pressed={str(used).lower()}")
        table.set_content(pattern_table(running.registry, census.counts, wanted, order=chosen, personal_only=personal,
                                        used_only=used))

    def look() -> None:
        nonlocal drawn
        if drawn is not census.counts:
            drawn = census.counts
            draw()

    def filter_by(event: GenericEventArguments) -> None:
        nonlocal wanted
        wanted = str(event.args)[:200]
        draw()

    def turn_personal() -> None:
        nonlocal personal
        personal = not personal
        draw()

    def turn_used() -> None:
        nonlocal used
        used = not used
        draw()

    def order_by(name: Order) -> None:
        nonlocal chosen
        chosen = name
        draw()

    for name, each in orders.items():
        each.on("click", lambda name=name: order_by(name))
    only_personal.on("click", turn_personal)
    only_used.on("click", turn_used)
    box.on("input", filter_by, throttle=0.1, js_handler="(event) => emit(event.target.value)")
    return look

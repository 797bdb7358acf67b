"""Statistics at a glance: headline numbers, a card for each family that counted something, and what did not."""

from html import escape
from typing import Final

from nicegui import ui

from keystead.app import Running
from keystead.stats.series import CANONICAL
from keystead.web.dashboard.stats_cards import StatsCards, StatsTiles
from keystead.web.dashboard.stats_frame import keep_looking, places, problem_banner, range_bar, stats_frame
from keystead.web.dashboard.stats_look import StatsLook, StatsReader
from keystead.web.dashboard.stats_range import StatsRange
from keystead.web.dashboard.stats_rotated import rotated_line
from keystead.web.dashboard.stats_shown import broken_up
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import StatsWatch

FIRST_STEPS: Final = """<div class="ks-first"><h2>Nothing has been counted yet</h2>
<p>A family is a handful of counts by day. Declare one in a module of your program, say
<span class="mono">shop/stats.py</span>:</p>
<pre class="ks-code">from keystead.keys import Keyspace
from keystead.patterns import DailyFamily

SHOP = Keyspace("shop", tag="shop")
ORDERS = DailyFamily(
    SHOP, "orders", counts=("placed", "paid"), breakdowns={"failed": "reason"},
    held_days=2, zone="Europe/Berlin", table="order_stats",
    identities=["paid + failed = placed"], purpose="orders, and what became of them",
)</pre>
<p>Name that module when you start the installation:</p>
<pre class="ks-code">keystead up --program shop.stats</pre>
<p>Count, from any program:</p>
<pre class="ks-code">await ORDERS.incr(valkey, "placed", at=time.time())
await ORDERS.incr(valkey, "failed", "card refused", at=time.time())</pre>
<p>Its chart, its table and its page come by themselves. So do those of all that is declared already, as soon as it
counts something.</p></div>"""


async def show_stats(running: Running, sampler: Sampler, watch: StatsWatch, shown: StatsRange) -> None:
    """Build the page for one viewer; it then moves by itself, from what is read once for all viewers."""
    shared = watch.share(("overview", shown), StatsReader(running.charts, running.valkey, running.clock, shown))
    await shared.first()
    with stats_frame(running, sampler):
        with ui.element("div").classes("ks-head"):
            with ui.element("div"):
                ui.html("Statistics", sanitize=True, tag="h1")
                below = ui.html("", sanitize=True, tag="p")
            places("/stats")
        problem = problem_banner(sampler, shared)
        with ui.element("section").classes("ks-card hidden") as first:
            ui.html(FIRST_STEPS, sanitize=False)
        with ui.element("div") as rest:
            rotated = rotated_line(running, watch)
            range_bar(running, "/stats", shown)
            tiles, cards = StatsTiles(shown), StatsCards(shown)
            idle = ui.html("", sanitize=False)
    drawn: StatsLook | None = None

    def look() -> None:
        nonlocal drawn
        problem()
        rotated()
        if shared.value is None:
            below.set_content("Waiting for the first answer…")
        if shared.value is None or shared.value is drawn:
            return
        drawn = shared.value
        below.set_content(escape(summary(drawn, shown)))
        first.classes(remove="hidden") if drawn.is_bare else first.classes(add="hidden")
        rest.classes(add="hidden") if drawn.is_bare else rest.classes(remove="hidden")
        tiles.show(drawn.tiles)
        cards.show(drawn.cards)
        idle.set_content(idle_html(drawn))

    keep_looking(look, shared)


def summary(look: StatsLook, shown: StatsRange) -> str:
    """How much there is, of which days, and whose days they are."""
    if look.is_bare:
        return f"{len(look.never)} families are declared, and none has counted anything."
    zones = [zone.replace("_", " ") for zone in look.zones if zone != CANONICAL]
    whose = f" Days are those of {' and '.join(zones)}" if zones else ""
    own = f"{', some' if whose else ' Days are'} of each person's own calendar" if CANONICAL in look.zones else ""
    many = len(look.cards)
    said = f"{many} of {many + len(look.silent) + len(look.never)} families counted something: {shown.said}."
    return f"{said}{whose}{own}." if whose or own else said


def idle_html(look: StatsLook) -> str:
    """Those without a card, shortly."""
    parts = [("Nothing on these days", look.silent), ("Declared, nothing counted yet", look.never)]
    rows = "".join(
        f"<dt>{said}</dt><dd>{', '.join(f'<span class=mono>{broken_up(name)}</span>' for name in names)}</dd>"
        for said, names in parts if names
    )
    return f'<section class="ks-card ks-idle"><dl class="ks-facts">{rows}</dl></section>' if rows else ""

"""Statistics at a glance: headline numbers, a card for each family that counted something, and what did not."""

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby
from typing import Final

from nicegui import ui

from keystead.app import Running
from keystead.stats.series import CANONICAL
from keystead.web.dashboard.shown import shown_count
from keystead.web.dashboard.stats_frame import Look, keep_looking, places, problem_banner, range_bar, stats_frame
from keystead.web.dashboard.stats_look import Card, StatsLook, StatsReader, Tile
from keystead.web.dashboard.stats_range import StatsRange
from keystead.web.dashboard.stats_shown import broken_up, stats_address, titled
from keystead.web.dashboard.stats_spark import sparkline
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import Shared, StatsWatch

MOST_BESIDE: Final = 3
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
            range_bar(running, "/stats", shown)
            looks = [_part(shared, lambda look: tiles_html(look.tiles, shown), "ks-tiles ks-heads"),
                     _part(shared, lambda look: cards_html(look.cards, shown), "ks-groups"),
                     _part(shared, idle_html)]

    def look() -> None:
        problem()
        if shared.value is None:
            below.set_content("Waiting for the first answer…")
            return
        below.set_content(escape(summary(shared.value, shown)))
        bare = shared.value.is_bare
        first.classes(remove="hidden") if bare else first.classes(add="hidden")
        rest.classes(add="hidden") if bare else rest.classes(remove="hidden")
        for each in looks:
            each()

    keep_looking(look, shared)


def _part(shared: Shared[StatsLook], html_of: Callable[[StatsLook], str], classes: str = "") -> Look:
    """A part of the page that is sent again only when its words change."""
    part = ui.html("", sanitize=False).classes(classes)

    def look() -> None:
        if shared.value is not None and (text := html_of(shared.value)) != part.content:
            part.set_content(text)

    return look


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


def tile_texts(tile: Tile, shown: StatsRange) -> tuple[str, str]:
    """The value and the line below it."""
    if tile.total is not None:
        return shown_count(tile.total), "ever" if tile.month is None else f"{shown_count(tile.month)} this month"
    now = f"{shown_count(tile.days[-1])} {'this month' if tile.monthly else 'today'} so far" if tile.live else ""
    if not tile.distinct:
        return shown_count(sum(tile.days)), ", ".join(part for part in (shown.said, now) if part)
    if tile.live >= len(tile.days):
        return shown_count(tile.days[-1]), f"{'this month' if tile.monthly else 'today'} so far"
    over = len(tile.days) - tile.live - 1
    return shown_count(tile.days[over]), ", ".join(part for part in (f"in {tile.labels[over]}" if tile.monthly else
                                                                     f"on {tile.labels[over]}", now) if part)


def tiles_html(tiles: Sequence[Tile], shown: StatsRange) -> str:
    parts = []
    for tile in tiles:
        value, more = tile_texts(tile, shown)
        title = escape(titled(tile.name))
        inside = (f'<span class="name">{title}</span><span class="value">{value}</span>'
                  f'<span class="more">{escape(more)}</span>')
        said = escape(tile.purpose)
        if tile.days:
            href = escape(stats_address(tile.name, shown))
            parts.append(f'<a class="ks-tile" href="{href}" title="{said}">{inside}</a>')
        else:
            parts.append(f'<section class="ks-tile" title="{said}">{inside}</section>')
    return "".join(parts)


def cards_html(cards: Sequence[Card], shown: StatsRange) -> str:
    """By room; a room with few cards leaves place for another beside it."""
    parts = []
    for room, some in groupby(cards, key=lambda card: card.room):
        made = [card_html(card, shown) for card in some]
        parts.append(f'<section class="n{min(len(made), MOST_BESIDE)}" aria-label="{escape(room)}">'
                     f'<h2 class="ks-group">{escape(room)}</h2><div class="ks-cards">{"".join(made)}</div></section>')
    return "".join(parts)


def card_html(card: Card, shown: StatsRange) -> str:
    parts = "".join(f"<li><span>{escape(name)}</span><b>{escape(said)}</b></li>" for name, said in card.parts)
    number = f"<b>{escape(card.number)} <small>{escape(card.unit)}</small></b>"
    return (
        f'<a class="ks-family" href="{escape(stats_address(card.name, shown))}"><span class="top">'
        f'<span class="mono">{broken_up(card.name)}</span>{number}'
        f'</span><span class="says">{escape(card.purpose)}</span>{sparkline(card.days, card.live)}<ul>{parts}</ul></a>'
    )


def idle_html(look: StatsLook) -> str:
    """Those without a card, shortly."""
    parts = [("Nothing on these days", look.silent), ("Declared, nothing counted yet", look.never)]
    rows = "".join(
        f"<dt>{said}</dt><dd>{', '.join(f'<span class=mono>{broken_up(name)}</span>' for name in names)}</dd>"
        for said, names in parts if names
    )
    return f'<section class="ks-card ks-idle"><dl class="ks-facts">{rows}</dl></section>' if rows else ""

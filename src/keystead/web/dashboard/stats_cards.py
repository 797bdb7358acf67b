"""Headline numbers and cards that change under the reader's eyes: what has the focus, or is clicked, stays there."""

from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import Final

from nicegui import ui

from keystead.web.dashboard.shown import shown_count
from keystead.web.dashboard.stats_look import Card, Tile
from keystead.web.dashboard.stats_range import StatsRange
from keystead.web.dashboard.stats_shown import broken_up, stats_address, titled
from keystead.web.dashboard.stats_spark import sparkline

MOST_BESIDE: Final = 3


def tile_texts(tile: Tile, shown: StatsRange) -> tuple[str, str]:
    """The value and the line below it."""
    if tile.total is not None:
        return shown_count(tile.total), "ever" if tile.month is None else f"{shown_count(tile.month)} this month"
    now = f"{shown_count(tile.days[-1])} {'this month' if tile.monthly else 'today'} so far" if tile.live else ""
    if not tile.distinct:
        return shown_count(sum(tile.days)), _listed(shown.said, now)
    if not any(tile.days[: len(tile.days) - tile.live]):  # the first day: what is over says nothing yet
        return shown_count(tile.days[-1]), f"{'this month' if tile.monthly else 'today'} so far"
    over = len(tile.days) - tile.live - 1
    return shown_count(tile.days[over]), _listed(f"{'in' if tile.monthly else 'on'} {tile.labels[over]}", now)


def _listed(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def card_texts(card: Card) -> tuple[str, str, str, str]:
    """The number, the words, the line and the biggest parts of a card, as HTML."""
    parts = "".join(f"<li><span>{escape(name)}</span><b>{escape(said)}</b></li>" for name, said in card.parts)
    return (f"{escape(card.number)} <small>{escape(card.unit)}</small>", escape(card.purpose),
            sparkline(card.days, card.live), f"<ul>{parts}</ul>")


class StatsTiles:
    """The headline numbers. Those that have a page lead to it."""

    def __init__(self, shown: StatsRange) -> None:
        self._shown = shown
        self._ground = ui.element("div").classes("ks-tiles ks-heads")
        self._tiles: dict[str, tuple[ui.html, ui.html]] = {}

    def show(self, tiles: Sequence[Tile]) -> None:
        keyed = {f"{tile.name} {tile.total is None}": tile for tile in tiles}
        if list(keyed) != list(self._tiles):
            self._ground.clear()
            with self._ground:
                self._tiles = {key: self._made(tile) for key, tile in keyed.items()}
        for key, tile in keyed.items():
            for part, text in zip(self._tiles[key], tile_texts(tile, self._shown), strict=True):
                part.set_content(escape(text))

    def _made(self, tile: Tile) -> tuple[ui.html, ui.html]:
        with ui.element("a" if tile.days else "section").classes("ks-tile") as made:
            if tile.days:
                made.props["href"] = stats_address(tile.name, self._shown)
            made.props["title"] = tile.purpose
            ui.html(escape(titled(tile.name)), sanitize=True).classes("name")
            return ui.html("", sanitize=True).classes("value"), ui.html("", sanitize=True).classes("more")


class StatsCards:
    """A card for each thing that counted something, by room; a room with few leaves place for another beside it."""

    def __init__(self, shown: StatsRange) -> None:
        self._shown = shown
        self._ground = ui.element("div").classes("ks-groups")
        self._cards: dict[str, tuple[ui.html, ...]] = {}

    def show(self, cards: Sequence[Card]) -> None:
        if [card.name for card in cards] != list(self._cards):
            self._ground.clear()
            self._cards = {}
            with self._ground:
                for room, some in groupby(cards, key=lambda card: card.room):
                    self._room(room, list(some))
        for card in cards:
            for part, text in zip(self._cards[card.name], card_texts(card), strict=True):
                part.set_content(text)

    def _room(self, room: str, cards: Sequence[Card]) -> None:
        with ui.element("section").classes(f"n{min(len(cards), MOST_BESIDE)}") as section:
            section.props["aria-label"] = room
            ui.html(escape(room), sanitize=True, tag="h2").classes("ks-group")
            with ui.element("div").classes("ks-cards"):
                for card in cards:
                    self._cards[card.name] = self._made(card)

    def _made(self, card: Card) -> tuple[ui.html, ...]:
        with ui.element("a").classes("ks-family") as made:
            made.props["href"] = stats_address(card.name, self._shown)
            with ui.element("span").classes("top"):
                ui.html(broken_up(card.name), sanitize=False, tag="span").classes("mono")
                number = ui.html("", sanitize=False, tag="b")
            says = ui.html("", sanitize=False, tag="span").classes("says")
            return number, says, ui.html("", sanitize=False).classes("line"), ui.html("", sanitize=False)

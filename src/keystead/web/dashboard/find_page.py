"""What a search found: straight to the one thing that was meant, or a list by kind."""

from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import Final

from nicegui import ui

from keystead.app import Running
from keystead.web.dashboard.frame import page_frame
from keystead.web.dashboard.jobs_shown import cut
from keystead.web.dashboard.menu import DESTINATIONS
from keystead.web.sampler import Sampler
from keystead.web.searching import MOST_OF_A_KIND, UNDERSTOOD, Hit

MOST_HINTS: Final = 8
PLURALS: Final = {
    "page": "Pages", "key": "Keys", "pattern": "Patterns", "message": "Messages", "job": "Jobs", "person": "People",
    "tenant": "Tenants", "statistic": "Statistics", "setting": "Settings", "admin key": "Admin keys",
}
_ORDER: Final = tuple(PLURALS)


def pages_named(text: str) -> list[tuple[str, str]]:
    """Name and path of the pages whose name begins so."""
    begins = text.strip().lower()
    return [(one.name, one.path) for one in DESTINATIONS if begins and one.name.lower().startswith(begins)]


def meant(hits: Sequence[Hit]) -> str | None:
    """Where to go without asking: the only sure hit, or the only hit at all."""
    sure = [hit for hit in hits if hit.sure]
    if len(sure) == 1:
        return sure[0].address
    return hits[0].address if len(hits) == 1 else None


def hints(text: str, hits: Sequence[Hit]) -> list[dict[str, str]]:
    """A few lines for under the search box: pages and sure hits first, then a few of each kind."""
    lines = [{"kind": "page", "title": name, "says": "", "address": path} for name, path in pages_named(text)][:2]
    chosen = [hit for hit in hits if hit.sure]
    rest = [hit for hit in hits if not hit.sure]
    for place in range(MOST_OF_A_KIND):
        for _, group in groupby(sorted(rest, key=_kind), key=lambda hit: hit.kind):
            chosen += list(group)[place : place + 1]
    lines += [{"kind": hit.kind, "title": cut(hit.title, 90), "says": cut(hit.says, 120), "address": hit.address}
              for hit in chosen[: MOST_HINTS - len(lines)]]
    return lines


def _kind(hit: Hit) -> int:
    return _ORDER.index(hit.kind)


def show_found(running: Running, sampler: Sampler, text: str, hits: Sequence[Hit]) -> None:
    """Build the page: everything by kind, or what can be searched for at all."""
    # What somebody typed may be the address of a person; it stands in the box only, where they typed it.
    with page_frame(sampler, running.clock, key=text):
        with ui.element("div").classes("ks-head"), ui.element("div"):
            ui.html("Search" if not text else "Several things match" if hits else "Nothing is found", sanitize=True,
                    tag="h1")
            if text:
                ui.html(escape(cut(text, 120)), sanitize=True, tag="p").classes("mono")
        ui.html(found_html(text, hits), sanitize=False)


def found_html(text: str, hits: Sequence[Hit]) -> str:
    """A card for each kind; without any, what the search understands."""
    pages = [_line(name, "", path) for name, path in pages_named(text)]
    cards = [_card("page", pages)] if pages else []
    for kind, group in groupby(sorted(hits, key=_kind), key=lambda hit: hit.kind):
        cards.append(_card(kind, [_line(hit.title, hit.says, hit.address, mono=kind != "person") for hit in group]))
    return "".join(cards) or understood_html()


def _card(kind: str, lines: Sequence[str]) -> str:
    more = f'<span class="quiet">the first {MOST_OF_A_KIND}</span>' if len(lines) == MOST_OF_A_KIND else ""
    return (f'<section class="ks-card" aria-label="{PLURALS[kind]}"><div class="ks-card-head"><h2>{PLURALS[kind]}</h2>'
            f'{more}</div><ul class="ks-hits">{"".join(lines)}</ul></section>')


def _line(title: str, says: str, address: str, *, mono: bool = False) -> str:
    return (f'<li><a href="{escape(address)}"><b{" class=mono" if mono else ""}>{escape(cut(title, 200))}</b>'
            f"<span>{escape(cut(says, 200))}</span></a></li>")


def understood_html() -> str:
    rows = "".join(f"<div><dt>{escape(what)}</dt><dd>{escape(how)}</dd></div>" for what, how in UNDERSTOOD)
    return ('<section class="ks-card" aria-label="What can be searched for"><div class="ks-card-head"><h2>The search '
            f'understands</h2></div><dl class="ks-understood">{rows}</dl></section>')

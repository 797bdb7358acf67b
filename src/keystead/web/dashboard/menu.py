"""Where one can go: the pages in the menu, in groups, each with the letter that leads there from the keyboard."""

from dataclasses import dataclass
from html import escape
from typing import Final

_ICON: Final = ('<svg width="17" height="17" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.9" '
                'stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">{}</svg>')


@dataclass(frozen=True, slots=True)
class Destination:
    """A page. ``letter``: pressed after ``g`` it leads there. ``icon``: the inside of an SVG of 24 by 24."""

    path: str
    name: str
    letter: str
    icon: str


GROUPS: Final[tuple[tuple[str, tuple[Destination, ...]], ...]] = (
    ("", (
        Destination("/", "Overview", "o", '<path d="M3 12h4l3-8 4 16 3-8h4"/>'),
    )),
    ("Work", (
        Destination("/jobs", "Jobs", "j", '<rect x="3" y="7" width="18" height="13" rx="2"/>'
                    '<path d="M9 7V5a2 2 0 0 1 2-2h2a2 2 0 0 1 2 2v2M3 13h18"/>'),
        Destination("/tenants", "Tenants", "t", '<path d="M4 20V6l6-3v17M10 20h10V10l-10-3M14 13h2M14 16.5h2"/>'),
        Destination("/log", "Log", "l", '<path d="M4 5h16M4 10h10M4 15h16M4 20h8"/>'),
    )),
    ("People", (
        Destination("/people", "People", "p", '<circle cx="9" cy="8" r="3.5"/><path d="M2.5 20a6.5 6.5 0 0 1 13 0'
                    'M16 4.8a3.5 3.5 0 0 1 0 6.4M18 14.5a6.5 6.5 0 0 1 3.5 5.5"/>'),
        Destination("/messages", "Messages", "m", '<path d="M21 12a8 8 0 0 1-8 8H4l2-3.2A8 8 0 1 1 21 12z"/>'),
        Destination("/reminders", "Reminders", "r", '<path d="M6 10a6 6 0 1 1 12 0c0 5 2 6 2 7H4c0-1 2-2 2-7M10 20.5a2 '
                    '2 0 0 0 4 0"/>'),
        Destination("/templates", "Templates", "e", '<rect x="3" y="4" width="18" height="16" rx="2"/>'
                    '<path d="m4 7 8 6 8-6"/>'),
        Destination("/providers", "Providers", "v", '<path d="M5 12.5a10 10 0 0 1 14 0M8 16a5.5 5.5 0 0 1 8 0M2 9a15 '
                    '15 0 0 1 20 0M12 19.5h.01"/>'),
        Destination("/sandbox", "Sandbox", "x", '<path d="M4 8l8-4 8 4v8l-8 4-8-4zM4 8l8 4 8-4M12 12v8"/>'),
    )),
    ("Data", (
        Destination("/keys", "Keys", "k", '<circle cx="8" cy="15" r="4"/><path d="m11 12 8-8M16 7l3 3"/>'),
        Destination("/changes", "Changes", "c", '<circle cx="12" cy="12" r="9"/><path d="M12 7v5l3.5 2"/>'),
        Destination("/stats", "Statistics", "s", '<path d="M4 20V11M10 20V4M16 20v-6M21 20H3"/>'),
        Destination("/settings", "Settings", "i", '<path d="M4 7h9M19 7h1M4 17h1M11 17h9"/>'
                    '<circle cx="16" cy="7" r="2.6"/><circle cx="8" cy="17" r="2.6"/>'),
        Destination("/docs", "API", "a", '<path d="m8 7-5 5 5 5M16 7l5 5-5 5M13.5 5l-3 14"/>'),
    )),
)
DESTINATIONS: Final = tuple(one for _, group in GROUPS for one in group)


def menu_html(current: str) -> str:
    """The menu as HTML; ``current`` is the path of the page it stands on, or of the one it belongs to."""
    return "".join(
        (f'<h2 id="ks-menu-{escape(name)}">{escape(name)}</h2>' if name else "")
        + f'<ul{f" aria-labelledby=ks-menu-{escape(name)}" if name else ""}>'
        + "".join(_link(one, current) for one in group) + "</ul>"
        for name, group in GROUPS
    )


def _link(one: Destination, current: str) -> str:
    here = ' aria-current="page"' if one.path == current else ""
    return (f'<li><a href="{one.path}" data-letter="{one.letter}" title="g {one.letter}"{here}>'
            f"{_ICON.format(one.icon)}{escape(one.name)}</a></li>")


def shortcuts_html() -> str:
    """What the keyboard does, as rows of a table."""
    rows = [("/", "Search"), ("?", "This help"), ("Esc", "Close what is open"), ("t", "Light or dark"),
            *((f"g {one.letter}", one.name) for one in DESTINATIONS)]
    return "".join(f"<div><dt>{_keys(keys)}</dt><dd>{escape(says)}</dd></div>" for keys, says in rows)


def _keys(keys: str) -> str:
    return " ".join(f"<kbd>{escape(key)}</kbd>" for key in keys.split())

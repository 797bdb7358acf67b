"""What every page has: the look, the bar with the search, the menu, help for the keyboard, and the banner while the
server is away."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

from nicegui import ui

from keystead.clock import Clock, SystemClock, real, speed_of
from keystead.web.dashboard.jobs_shown import moment
from keystead.web.dashboard.menu import menu_html, shortcuts_html
from keystead.web.dashboard.shown import shown_duration
from keystead.web.plain_pages import MARK
from keystead.web.sampler import Sampler

LOOK_SECONDS = 1.0

_ICON: Final = ('<svg width="18" height="18" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" '
                'stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">{}</svg>')
_HALF_MOON: Final = _ICON.format('<circle cx="12" cy="12" r="9"/><path d="M12 3a9 9 0 0 1 0 18z" fill="currentColor"/>')
_LEAVE: Final = _ICON.format('<path d="M9 21H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2h4"/><path d="m16 17 5-5-5-5M21 12H9"/>')
_LINES: Final = _ICON.format('<path d="M4 6h16M4 12h16M4 18h16"/>')
_GLASS: Final = _ICON.format('<circle cx="11" cy="11" r="7"/><path d="m20 20-4-4"/>').replace('"18"', '"16"')


@contextmanager
def page_frame(sampler: Sampler, clock: Clock, *, current: str = "", key: str = "") -> Iterator[None]:
    """Everything inside the block is the page. ``current``: the page of the menu it belongs to. ``key`` fills the
    search box."""
    ui.add_head_html(_head())
    around = ui.context.client.content.parent_slot
    if around is not None:
        around.parent.props("role=none")  # the framework calls all of it the main part, the menu too
    ui.html('<a class="ks-skip" href="#content">Skip to the page</a>', sanitize=False)
    with ui.element("header").classes("ks-bar"):
        ui.html(_bar(key), sanitize=False)
    with ui.element("div").classes("ks-body"):
        ui.html(menu_html(current), sanitize=False, tag="nav").classes("ks-menu").props('aria-label="Pages"')
        with ui.element("main").classes("ks-page"):
            ui.html('<span id="content" tabindex="-1"></span>', sanitize=False)
            _banner(sampler, clock)
            _demonstration(clock)
            yield
    ui.html(_help(), sanitize=False)


@cache
def asset(name: str) -> str:
    """The text of a style sheet or script of ours."""
    return files("keystead.web").joinpath("assets", name).read_text(encoding="utf-8")


def _head() -> str:
    return f"<script>{asset('frame.js')}</script><style>{asset('dashboard.css')}{asset('frame.css')}</style>"


def _bar(key: str) -> str:
    return (
        '<div class="ks-bar-in"><button class="ks-icon menu" type="button" data-does="menu" aria-label="Menu" '
        f'aria-expanded="false">{_LINES}</button><a class="ks-brand" href="/" aria-label="Keystead">{MARK}Keystead</a>'
        f'<form class="ks-find" action="/find" role="search">{_GLASS}<input name="q" type="search" '
        f'value="{escape(key)}" autocomplete="off" spellcheck="false" maxlength="300" required role="combobox" '
        'aria-expanded="false" aria-controls="ks-hints" aria-autocomplete="list" '
        'placeholder="Search a key, person, message, job…" aria-label="Search"><kbd aria-hidden="true">/</kbd>'
        '<div id="ks-hints" role="listbox" aria-label="Suggestions" hidden></div></form>'
        '<div class="ks-tools"><button class="ks-icon" type="button" data-does="help" title="Keys of the keyboard (?)" '
        'aria-label="Keys of the keyboard">?</button><button class="ks-icon" type="button" data-does="theme" '
        f'title="Light or dark (t)" aria-label="Light or dark">{_HALF_MOON}</button>'
        f'<form action="/logout" method="post"><button class="ks-icon" title="Log out" aria-label="Log out">{_LEAVE}'
        "</button></form></div></div>"
    )


def _help() -> str:
    return (
        '<dialog id="ks-help" class="ks-help" aria-labelledby="ks-help-title"><header><h2 id="ks-help-title">Keys of '
        'the keyboard</h2><button class="ks-btn" type="button" data-does="close">Close</button></header>'
        f"<dl>{shortcuts_html()}</dl><p>The search understands a key, a pattern, the uid of a message or job, a person "
        "by sub, name, email address or phone number, a tenant, and a setting.</p></dialog>"
    )


def _demonstration(clock: Clock) -> None:
    """Said once, on every page: ages and days are those of a clock that runs faster."""
    if speed_of(clock) == 1:
        return
    note = ui.html("", sanitize=False).classes("ks-demo").props("role=note")

    def look() -> None:
        note.set_content(demonstration_html(clock))

    look()
    ui.timer(LOOK_SECONDS, look)


def demonstration_html(clock: Clock) -> str:
    """How fast the clock runs, what it shows, and what goes by it; nothing for a real one."""
    if not isinstance(clock, SystemClock) or clock.pace.speed == 1:
        return ""
    return (f"<b>Demo</b><span>A real minute is {shown_duration(60 * clock.pace.speed)} of the town, where it is "
            f"<time>{moment(clock.now())[:16]} UTC</time>. Ages and dates are the town's; rates and durations real."
            "</span>")


def _banner(sampler: Sampler, clock: Clock) -> None:
    banner = ui.html("", sanitize=False).classes("ks-banner hidden").props("role=alert")

    def look() -> None:
        away = sampler.away_since is not None
        if away and sampler.away_since is not None:
            since = shown_duration(real(clock).now() - sampler.away_since)
            banner.set_content(
                f"<b>The server is away</b><div>No answer for {since}: {escape(sampler.problem or '')}</div>"
                "<div>This page goes on by itself as soon as the server is back; until then it shows what was last "
                "known.</div>"
            )
        banner.classes(remove="hidden") if away else banner.classes(add="hidden")

    look()
    ui.timer(LOOK_SECONDS, look)

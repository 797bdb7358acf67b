"""What every page has: the look, the bar on top, the banner while the server is away."""

from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from importlib.resources import files

from nicegui import ui

from keystead.clock import Clock
from keystead.web.dashboard.shown import shown_duration
from keystead.web.plain_pages import MARK
from keystead.web.sampler import Sampler

LOOK_SECONDS = 1.0

# Chosen before anything is painted, so that a dark page does not flash white.
_THEME_SCRIPT = """<script>
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => document.documentElement.dataset.theme =
    localStorage.getItem("keystead-theme") || (dark.matches ? "dark" : "light");
  dark.addEventListener("change", apply);
  window.turnTheme = () => {
    localStorage.setItem("keystead-theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    apply();
  };
  apply();
})();
</script>"""

_ICON = ('<svg width="18" height="18" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" '
         'stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">{}</svg>')
_HALF_MOON = _ICON.format('<circle cx="12" cy="12" r="9"/><path d="M12 3a9 9 0 0 1 0 18z" fill="currentColor"/>')
_LEAVE = _ICON.format('<path d="M9 21H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2h4"/><path d="m16 17 5-5-5-5M21 12H9"/>')


@contextmanager
def page_frame(sampler: Sampler, clock: Clock, *, current: str = "", key: str = "") -> Iterator[None]:
    """Everything inside the block is the page. ``key`` fills the box in the bar."""
    css = files("keystead.web").joinpath("assets", "dashboard.css").read_text(encoding="utf-8")
    ui.add_head_html(f"{_THEME_SCRIPT}<style>{css}</style>")
    with ui.element("header").classes("ks-bar"):
        ui.html(_bar(current, key), sanitize=False)
    with ui.element("main").classes("ks-page"):
        _banner(sampler, clock)
        yield


def _bar(current: str, key: str) -> str:
    links = "".join(
        f'<a href="{path}"{" aria-current=page" if path == current else ""}>{name}</a>'
        for path, name in (("/", "Overview"), ("/jobs", "Jobs"), ("/stats", "Statistics"), ("/messages", "Messages"),
                           ("/reminders", "Reminders"), ("/templates", "Templates"), ("/sandbox", "Sandbox"),
                           ("/docs", "API"))
    )
    return (
        f'<div class="ks-bar-in"><a class="ks-brand" href="/">{MARK}Keystead</a><nav class="ks-nav">{links}</nav>'
        f'<form class="ks-find" action="/key" role="search"><input name="key" value="{escape(key)}" autocomplete="off" '
        'spellcheck="false" placeholder="Explain a key…" aria-label="Explain a key" required></form>'
        '<div class="ks-tools"><button class="ks-icon" type="button" onclick="turnTheme()" title="Light or dark" '
        f'aria-label="Light or dark">{_HALF_MOON}</button><form action="/logout" method="post">'
        f'<button class="ks-icon" title="Log out" aria-label="Log out">{_LEAVE}</button></form></div></div>'
    )


def _banner(sampler: Sampler, clock: Clock) -> None:
    banner = ui.html("", sanitize=False).classes("ks-banner hidden").props("role=alert")

    def look() -> None:
        away = sampler.away_since is not None
        if away and sampler.away_since is not None:
            since = shown_duration(clock.now() - sampler.away_since)
            banner.set_content(
                f"<b>The server is away</b><div>No answer for {since}: {escape(sampler.problem or '')}</div>"
                "<div>This page goes on by itself as soon as the server is back; until then it shows what was last "
                "known.</div>"
            )
        banner.classes(remove="hidden") if away else banner.classes(add="hidden")

    look()
    ui.timer(LOOK_SECONDS, look)

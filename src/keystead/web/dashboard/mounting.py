"""Putting the dashboard onto the assembled server. The only place that registers pages."""

from fastapi import FastAPI
from nicegui import ui

from keystead.app import Running
from keystead.web.census import Census
from keystead.web.dashboard.key_page import show_key
from keystead.web.dashboard.overview import show_overview
from keystead.web.dashboard.pattern_page import show_pattern
from keystead.web.sampler import Sampler

TITLE = "Keystead"
FAVICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#0f9488" stroke-width="2.1" '
    'stroke-linecap="round" stroke-linejoin="round"><path d="M4 20V9.5L12 4l8 5.5V20"/>'
    '<circle cx="12" cy="12.2" r="2.1"/><path d="M12 14.3V20"/></svg>'
)


def mount(app: FastAPI, running: Running, sampler: Sampler, census: Census) -> None:
    """Serve the pages under ``/``. There is one dashboard per process: a second mount takes the pages over."""

    @ui.page("/", title=TITLE)
    def overview() -> None:
        show_overview(running, sampler, census)

    @ui.page("/pattern", title=f"Pattern · {TITLE}")
    async def pattern(name: str = "") -> None:
        await show_pattern(running, sampler, census, name)

    @ui.page("/key", title=f"Key · {TITLE}")
    async def key(key: str = "") -> None:
        await show_key(running, sampler, key)

    ui.run_with(
        app, title=TITLE, favicon=FAVICON, dark=False, tailwind=False, show_welcome_message=False,
        binding_refresh_interval=None, reconnect_timeout=10.0,
    )

"""What the pages for whoever runs the installation share: their look, a head with a state, and the banner for what
cannot be read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from importlib.resources import files
from typing import Any

from nicegui import ui

from keystead.app import Running
from keystead.web.dashboard.frame import page_frame
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import Shared

Look = Callable[[], None]
State = Callable[[str, str], None]


@contextmanager
def operator_frame(running: Running, sampler: Sampler, current: str) -> Iterator[None]:
    """Everything inside the block is the page."""
    with page_frame(sampler, running.clock, current=current):
        add_operator_css()  # after the sheet of all pages, which it goes on with
        yield


def add_operator_css() -> None:
    """For a part of ours on a page of somebody else."""
    css = files("keystead.web").joinpath("assets", "operator.css").read_text(encoding="utf-8")
    ui.add_head_html(f"<style>{css}</style>")


def operator_head(title: str, says: str) -> State:
    """The head of a page; what it gives sets the words and the tone (away, warn, idle or nothing) of the state."""
    with ui.element("div").classes("ks-head"):
        with ui.element("div"):
            ui.html(escape(title), sanitize=True, tag="h1")
            ui.html(escape(says), sanitize=True, tag="p")
        state = ui.html("", sanitize=True, tag="span").classes("ks-state hidden").props("role=status")

    def show(words: str, tone: str) -> None:
        state.set_content(escape(words))
        state.classes(remove="hidden away warn idle", add=tone)

    return show


def problem_banner(sampler: Sampler, what: str, *shared: Shared[Any]) -> Look:
    """Told unless the server is away: then the banner of every page tells already."""
    banner = ui.html("", sanitize=False).classes("ks-banner hidden").props("role=alert")

    def look() -> None:
        problem = next((one.problem for one in shared if one.problem is not None), None)
        if problem is not None:
            banner.set_content(f"<b>{escape(what)} cannot be read</b><div>{escape(problem)}</div>"
                               "<div>What is shown is what was last known.</div>")
        told = problem is not None and sampler.away_since is None
        banner.classes(remove="hidden") if told else banner.classes(add="hidden")

    return look


def bar(share: float, tone: str = "", label: str = "") -> str:
    """A bar as wide as a share of one, as HTML."""
    width = max(0.0, min(1.0, share)) * 100
    return (f'<span class="op-bar {tone}" role="img" aria-label="{escape(label or f"{width:.0f} %")}">'
            f'<i style="width:{width:.1f}%"></i></span>')


def verdict(words: str, tone: str = "") -> str:
    """The one line that answers what the page is asked; ``words`` are ready HTML."""
    return f'<div class="op-verdict {tone}">{words}</div>'

"""Email templates: each as a person would see it, with parameters that can be edited."""

from functools import partial
from html import escape
from importlib.resources import files
from typing import Final

from nicegui import ui

from keystead.app import Running
from keystead.messaging.email import Templates
from keystead.web.dashboard.frame import page_frame
from keystead.web.dashboard.jobs_shown import plural
from keystead.web.dashboard.templates_preview import preview, sample_text
from keystead.web.sampler import Sampler

MOST_TYPED: Final = 100_000
_STYLE: Final = """<style>
.tp-mail { display: block; width: 100%; height: 560px; border: 0; border-radius: 8px; background: #fff; }
.tp-json { width: 100%; min-height: 170px; resize: vertical; font: 13px/1.55 var(--mono); color: inherit;
  background: var(--sunk); border: 1px solid var(--line-soft); border-radius: 8px; padding: 10px 14px; }
.tp-part { padding: 0 20px 18px; }
.tp-part h3 { font-size: 13.5px; line-height: 1.4; font-weight: 560; margin: 0 0 8px; }
</style>"""


class _Page:
    """One viewer's page: which template is looked at, and with what."""

    def __init__(self, templates: Templates, slug: str) -> None:
        self._templates = templates
        self._slugs = templates.slugs()
        self.chosen = slug if slug in self._slugs else self._slugs[0] if self._slugs else ""
        self._rows: dict[str, ui.html] = {}

    def build(self) -> None:
        with ui.element("div").classes("ks-head"), ui.element("div"):
            ui.html("Templates", sanitize=True, tag="h1")
            ui.html(f"{plural(len(self._slugs), 'template')} of email. What you type here is not kept.", sanitize=True,
                    tag="p")
        with ui.element("div").classes("sb-two"):
            self._build_list()
            self._build_preview()

    def _build_list(self) -> None:
        card = ui.element("section").classes("ks-card sb-people").props('aria-label="Templates"')
        with card, ui.element("div").classes("sb-rows"):
            for slug in self._slugs:
                row = ui.html(f'<span class="sb-who"><b>{escape(slug)}</b></span>', sanitize=False, tag="button")
                row.classes("sb-row").props("type=button").on("click", partial(self.choose, slug))
                self._rows[slug] = row

    def _build_preview(self) -> None:
        with ui.element("section").classes("ks-card").props('aria-label="Preview"'):
            with ui.element("div").classes("ks-card-head"):
                self._title = ui.html("", sanitize=True, tag="h2")
                self._state = ui.html("", sanitize=True, tag="span").classes("ks-state").props("role=status")
            with ui.element("div").classes("tp-part"):
                ui.html("Parameters", sanitize=True, tag="h3")
                self._box = ui.element("div")
            with ui.element("div").classes("tp-part"):
                ui.html("HTML", sanitize=True, tag="h3")
                self._html = ui.html("", sanitize=False)
            with ui.element("div").classes("tp-part"):
                ui.html("Plain text", sanitize=True, tag="h3")
                self._text = ui.html("", sanitize=False)

    def choose(self, slug: str) -> None:
        """Begin with the parameters that the template comes with."""
        self.chosen = slug
        for each, row in self._rows.items():
            row.props(f"aria-pressed={'true' if each == slug else 'false'}")
        self._title.set_content(escape(slug))
        typed = sample_text(self._templates, slug)
        # Made anew for each template: a box whose value we set would be set back while somebody types.
        self._box.clear()
        with self._box:
            box = ui.element("textarea").classes("tp-json")
            box.props(f'aria-label="Parameters" spellcheck=false maxlength={MOST_TYPED}')
            box._text = typed
            box.on("input", lambda event: self.show(str(event.args)), throttle=0.3,
                   js_handler="(e) => emit(e.target.value)")
        self.show(typed)

    def show(self, typed: str) -> None:
        """Render with what was typed. While that is no JSON object, the last look stays."""
        found = preview(self._templates, self.chosen, typed[:MOST_TYPED])
        if found is None:
            self._say("Not a JSON object", "warn")
            return
        self._html.set_content(found.html)
        self._text.set_content(found.text)
        self._say(found.problem or "Renders", "away" if found.problem else "")

    def _say(self, words: str, tone: str) -> None:
        self._state.set_content(escape(words))
        self._state.classes(remove="warn away", add=tone)


async def show_templates(running: Running, sampler: Sampler, slug: str = "") -> None:
    """Build the page for one viewer; ``slug`` names the template to begin with."""
    css = files("keystead.web").joinpath("assets", "sandbox.css").read_text(encoding="utf-8")
    page = _Page(Templates(running.settings.email.templates), slug)
    with page_frame(sampler, running.clock, current="/templates"):
        ui.add_head_html(f"<style>{css}</style>{_STYLE}")
        page.build()
    if page.chosen:
        page.choose(page.chosen)

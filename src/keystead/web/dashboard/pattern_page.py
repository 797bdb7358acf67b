"""One declared pattern: everything its declaration says, and a few of its live keys."""

from html import escape

from nicegui import ui

from keystead.app import Running
from keystead.errors import Unavailable
from keystead.keys import Declaration, Personal, spell_key
from keystead.operations import Census
from keystead.web.dashboard.frame import page_frame
from keystead.web.dashboard.key_page import key_address
from keystead.web.dashboard.pattern_table import lives
from keystead.web.dashboard.shown import chip, fact_rows, masked_key, shown_bytes, shown_count, shown_duration
from keystead.web.live_keys import LiveKey, some_keys
from keystead.web.sampler import Sampler

MOST_KEYS = 50


async def show_pattern(running: Running, sampler: Sampler, census: Census, pattern: str) -> None:
    """Build the page. The keys are looked for once, when it opens, within a bounded time."""
    declaration = running.registry.find(pattern)
    if declaration is None:
        with page_frame(sampler, running.clock, current="/keys"):
            ui.html('<nav class="ks-crumb"><a href="/keys">Keys</a></nav><div class="ks-card"><div class="ks-empty">'
                    f'Nothing declares the pattern <span class="mono">{escape(pattern)}</span>.</div></div>',
                    sanitize=False)
        return
    with page_frame(sampler, running.clock, current="/keys"):
        ui.html('<nav class="ks-crumb"><a href="/keys">Keys</a></nav>', sanitize=False)
        with ui.element("div").classes("ks-head"), ui.element("div"):
            ui.html(escape(declaration.pattern), sanitize=True, tag="h1").classes("mono")
            ui.html(escape(declaration.purpose), sanitize=True, tag="p")
        with ui.element("div").classes("ks-two"):
            with ui.element("section").classes("ks-card"):
                ui.html(f'<div class="ks-card-head"><h2>Declaration</h2>{personal_chip(declaration)}</div>'
                        f"{declaration_html(declaration, census)}", sanitize=False)
            if declaration.kind != "channel":
                with ui.element("section").classes("ks-card"):
                    await _live_keys(running, declaration)


async def _live_keys(running: Running, declaration: Declaration) -> None:
    try:
        found, complete = await some_keys(running.valkey, running.registry, declaration, most=MOST_KEYS)
    except Unavailable:
        found, complete = [], False
    personal = bool(declaration.personal)
    revealed = not personal
    with ui.element("div").classes("ks-card-head"):
        ui.html(keys_heading(found, complete), sanitize=False)
        if personal and found:
            button = ui.html("Reveal personal data", sanitize=True, tag="button").classes("ks-btn").props("type=button")
            button.on("click", lambda: turn())
    table = ui.html(keys_html(declaration, found, revealed=revealed), sanitize=False)

    def turn() -> None:
        nonlocal revealed
        revealed = not revealed
        button.set_content("Hide personal data" if revealed else "Reveal personal data")
        table.set_content(keys_html(declaration, found, revealed=revealed))


def personal_chip(declaration: Declaration) -> str:
    return chip("personal data", "warn") if declaration.personal else ""


def declaration_html(declaration: Declaration, census: Census) -> str:
    """Every fact of the declaration, and what the last count found."""
    counted = ""
    if census.counts is not None and declaration.kind != "channel":
        count = census.counts.of(declaration)
        about = "about " if count.estimated else ""
        counted = f"{shown_count(count.keys)}<small>{about}{shown_bytes(count.memory_bytes)}</small>"
    variables = "".join(
        f'<div><span class="mono">{escape(variable.name)}</span> <span class="quiet">{escape(variable.kind.says)}'
        "</span></div>"
        for variable in declaration.template.variables
    )
    return fact_rows([
        ("Room", escape(declaration.room)),
        ("Type", escape(declaration.type)),
        ("Holds", escape(declaration.payload if declaration.payload != declaration.type else "")),
        ("Lives", escape(lives(declaration))),
        ("Variables", variables),
        ("Keys", counted),
        ("Personal", escape(_personal(declaration))),
        ("Written by", escape(", ".join(declaration.writers))),
        ("Read by", escape(", ".join(declaration.readers))),
        ("Scripts", escape(", ".join(declaration.scripts))),
        ("Cluster tag", f'<span class="mono">{escape(declaration.tag.describe())}</span>'),
    ])


def _personal(declaration: Declaration) -> str:
    if not isinstance(declaration.personal, Personal):
        return "yes" if declaration.personal else "no"
    named = [*declaration.personal.variables, *(f"{field} of the payload" for field in declaration.personal.fields)]
    return f"{' and '.join(named)} name{'s' if len(named) == 1 else ''} the person"


def keys_heading(found: list[LiveKey], complete: bool) -> str:
    if not found:
        return "<h2>Live keys</h2>"
    which = f"{len(found)} of them" if not complete else "the only one" if len(found) == 1 else f"all {len(found)}"
    return f'<div><h2>Live keys</h2><span class="quiet">{which}</span></div>'


def keys_html(declaration: Declaration, found: list[LiveKey], *, revealed: bool) -> str:
    if not found:
        return '<div class="ks-empty">No key of this pattern was found on the server.</div>'
    rows = "".join(
        f'<tr class="link"><td><a class="mono" href="{escape(key_address(key.raw_key))}">'
        f"{escape(shown_key(declaration, key, revealed=revealed))}</a></td>"
        f'<td class="num mid">{shown_bytes(key.memory_bytes)}</td>'
        f'<td class="num quiet">{"never" if key.ttl_seconds is None else shown_duration(key.ttl_seconds)}</td></tr>'
        for key in found
    )
    return ('<table class="ks-table ks-live"><thead><tr><th>Key</th><th class="num mid">Size</th>'
            f'<th class="num">Expires in</th></tr></thead><tbody>{rows}</tbody></table>')


def shown_key(declaration: Declaration, key: LiveKey, *, revealed: bool) -> str:
    spelled = spell_key(key.raw_key)
    if revealed or not declaration.personal:
        return spelled
    names = declaration.personal.variables if isinstance(declaration.personal, Personal) else tuple(key.arguments)
    return masked_key(spelled, [key.arguments[name] for name in names if name in key.arguments])

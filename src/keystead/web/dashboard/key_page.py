"""One concrete key: what it is, whether it is as declared, and what it holds."""

import json
import re
from html import escape
from typing import Final
from urllib.parse import quote

from nicegui import ui

from keystead.app import Running
from keystead.dates import UnixDate, unix_date_to_date
from keystead.errors import Unavailable
from keystead.keys import Personal, Registry, read_key, spell_key
from keystead.operations import Explanation, explain
from keystead.web.dashboard.frame import page_frame
from keystead.web.dashboard.jobs_shown import moment
from keystead.web.dashboard.pattern_table import pattern_address
from keystead.web.dashboard.shown import (
    MASK,
    chip,
    fact_rows,
    masked,
    masked_key,
    shown_bytes,
    shown_count,
    shown_duration,
)
from keystead.web.sampler import Sampler

# Unix seconds of this century alone on a line or behind a name; days since 1970 behind a name that says so.
TIME: Final = re.compile(r"(?:^\s*|: )(1[0-9]{9}(?:\.[0-9]+)?),?$")
DAY: Final = re.compile(r'_date": ([12][0-9]{4}),?$')


def key_address(raw_key: bytes) -> str:
    return f"/key?key={quote(spell_key(raw_key), safe='')}"


async def show_key(running: Running, sampler: Sampler, spelled: str) -> None:
    """Build the page for one key. Personal data is masked until someone asks to see it."""
    found, says = None, "Type a key into the box above to see what it is."
    if spelled:
        try:
            found = await explain(running.valkey, running.registry, read_key(spelled))
        except Unavailable:
            says = "The server is away, so the key cannot be looked at now. Reload this page when it is back."
    with page_frame(sampler, running.clock, current="/keys",
                    key="" if found and found.personal else spelled):
        ui.html('<nav class="ks-crumb"><a href="/keys">Keys</a></nav>', sanitize=False)
        if found is None:
            ui.html(f'<div class="ks-card"><div class="ks-empty">{says}</div></div>', sanitize=False)
        else:
            _KeyView(found, personal_arguments(running.registry, found)).build()


def personal_arguments(registry: Registry, found: Explanation) -> frozenset[str]:
    """The variables whose values name a person; all of them where the declaration does not say which."""
    declaration = registry.find(found.pattern) if found.pattern else None
    if declaration is None or not declaration.personal:
        return frozenset()
    if isinstance(declaration.personal, Personal):
        return frozenset(declaration.personal.variables)
    return frozenset(found.arguments)


class _KeyView:
    """The page, and what changes on it when personal data is revealed."""

    def __init__(self, found: Explanation, personal: frozenset[str]) -> None:
        self._found = found
        self._personal = personal
        self._revealed = not found.personal

    def build(self) -> None:
        found = self._found
        with ui.element("div").classes("ks-head"):
            with ui.element("div"):
                self._title = ui.html("", sanitize=True, tag="h1").classes("mono")
                ui.html(purpose_html(found), sanitize=False, tag="p")
            if found.personal:
                self._button = ui.html("Reveal personal data", sanitize=True, tag="button").classes("ks-btn")
                self._button.props("type=button").on("click", self._turn)
        with ui.element("div").classes("ks-two"):
            with ui.element("section").classes("ks-card"):
                ui.html(f'<div class="ks-card-head"><h2>Facts</h2>{state_chip(found)}</div>', sanitize=False)
                self._facts = ui.html("", sanitize=False)
            with ui.element("section").classes("ks-card"):
                ui.html(f'<div class="ks-card-head"><h2>Value</h2>{size_html(found)}</div>', sanitize=False)
                self._value = ui.html("", sanitize=False)
        self._draw()

    def _turn(self) -> None:
        self._revealed = not self._revealed
        self._button.set_content("Hide personal data" if self._revealed else "Reveal personal data")
        self._draw()

    def _draw(self) -> None:
        hidden = frozenset() if self._revealed else self._personal
        values = [value for name, value in self._found.arguments.items() if name in hidden]
        self._title.set_content(escape(masked_key(self._found.key, values)))
        self._facts.set_content(facts_html(self._found, hidden))
        self._value.set_content(value_html(self._found, revealed=self._revealed))


def purpose_html(found: Explanation) -> str:
    if found.pattern is None:
        return "No room declares this key: it comes from another program, from a hand, or from code that forgot to say."
    return escape(found.purpose or "")


def state_chip(found: Explanation) -> str:
    if found.kind == "channel":
        return chip("channel")
    if not found.exists:
        return chip("not on the server now")
    if found.pattern is None:
        return chip("not declared", "warn")
    return chip("not as declared", "bad") if found.findings else chip("as declared", "good")


def facts_html(found: Explanation, hidden: frozenset[str]) -> str:
    """What is known, with the values of ``hidden`` variables masked."""
    row = found.declaration or {}
    arguments = "".join(
        f'<div>{escape(name)} <span class="mono">{escape(masked(value) if name in hidden else value)}</span></div>'
        for name, value in found.arguments.items()
    )
    pattern = (f'<a class="mono" style="color:var(--accent-ink)" href="{pattern_address(found.pattern)}">'
               f"{escape(found.pattern)}</a>" if found.pattern else "")
    return fact_rows([
        ("Findings", "".join(f"<div>{chip(finding, 'bad' if found.pattern else 'warn')}</div>"
                             for finding in found.findings)),
        ("Pattern", pattern),
        ("Variables", arguments),
        ("Room", escape(found.room or "")),
        ("Type", escape(str(row.get("type") or found.type or ""))),
        ("Expires", expiry_html(found, str(row.get("ttl") or ""))),
        ("Memory", shown_bytes(found.memory_bytes) if found.memory_bytes is not None else ""),
        ("Written by", escape(", ".join(found.writers))),
        ("Read by", escape(", ".join(found.readers))),
        ("Scripts", escape(", ".join(found.scripts))),
        ("Slot", str(found.slot) if found.kind == "key" else ""),
    ])


def expiry_html(found: Explanation, rule: str) -> str:
    """What is left, against what the declaration says."""
    if found.kind != "key":
        return ""
    rule = "never" if rule == "none" else rule
    declared = f"<small>declared: {escape(rule)}</small>" if rule else ""
    if not found.exists:
        return declared
    left = "never" if found.ttl_seconds is None else f"in {shown_duration(found.ttl_seconds)}"
    return f"{left}{declared}"


def size_html(found: Explanation) -> str:
    if found.length is None:
        return ""
    unit = {"string": "byte", "hash": "field", "stream": "entr"}.get(found.type or "", "element")
    unit += ("y" if unit == "entr" else "") if found.length == 1 else "ies" if unit == "entr" else "s"
    more = ", the beginning is shown" if found.truncated else ""
    return f'<span class="quiet">{shown_count(found.length)} {unit}{more}</span>'


def value_html(found: Explanation, *, revealed: bool) -> str:
    if found.kind == "channel":
        return '<div class="ks-empty">A channel carries messages and holds nothing.</div>'
    if not found.exists:
        return '<div class="ks-empty">There is no such key on the server now.</div>'
    if found.note:
        return f'<div class="ks-empty">{escape(found.note[0].upper() + found.note[1:])}.</div>'
    problem = f'<div class="ks-empty">{chip("does not decode", "bad")} {escape(found.problem)}</div>' \
        if found.problem else ""
    shown = found.value if revealed else masked_value(found.value)
    text = shown if isinstance(shown, str) else json.dumps(shown, indent=2, ensure_ascii=False)
    return f'{problem}<pre class="ks-value{"" if revealed else " ks-masked"}">{dated_html(text)}</pre>'


def dated_html(text: str) -> str:
    """Text in which a number that must be a time, or a day, is followed by its date."""
    return "\n".join(f'{escape(line)}<i class="ks-when">{when}</i>' if (when := _when(line)) else escape(line)
                     for line in text.split("\n"))


def _when(line: str) -> str:
    if found := TIME.search(line):
        return moment(float(found[1]))
    found = DAY.search(line)
    return unix_date_to_date(UnixDate(int(found[1]))).isoformat() if found else ""


def masked_value(value: object) -> object:
    """The shape of a value, without what it says."""
    if isinstance(value, dict):
        return {name: masked_value(held) for name, held in value.items()}
    if isinstance(value, list):
        return [masked_value(held) for held in value]
    return MASK

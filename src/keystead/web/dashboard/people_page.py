"""Everybody: newest first, found by sub, name, address or number; names are masked until someone asks to see them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Final
from urllib.parse import quote

from nicegui import ui

from keystead.app import Running
from keystead.errors import Unavailable
from keystead.members import zone_of
from keystead.members.searching import Listed, count_people, find_people, listed_people, newest_people, people_named
from keystead.web.dashboard.frame import page_frame
from keystead.web.dashboard.jobs_shown import moment
from keystead.web.dashboard.live_table import button
from keystead.web.dashboard.shown import shown_ago, shown_count
from keystead.web.sampler import Sampler
from keystead.web.searching import masked_word

PAGE_PEOPLE: Final = 50


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """Some people, how many there are in all (None when some were asked for), and whether older ones follow."""

    people: list[Listed]
    total: int | None
    more: bool = False


def person_address(sub: str) -> str:
    return f"/people/{quote(sub, safe='')}"


async def show_people(running: Running, sampler: Sampler, wanted: str = "", before: int | None = None) -> None:
    """Build the page. It is read once: a list that moves under the reader cannot be read."""
    problem = ""
    try:
        found = await read_people(running, wanted, before)
    except Unavailable as error:
        found, problem = PeoplePage([], None), str(error)
    revealed, now = False, running.clock.now()
    with page_frame(sampler, running.clock, current="/people"):
        with ui.element("div").classes("ks-head"):
            with ui.element("div"):
                ui.html("People", sanitize=True, tag="h1")
                ui.html(escape(heading(found, wanted)), sanitize=True, tag="p")
            with ui.element("div").classes("ks-side ks-wrap"):
                ui.html(_box(wanted), sanitize=False)
                reveal = button("Reveal names") if found.people else None
        if problem:
            ui.html(f"<b>People cannot be read</b><div>{escape(problem)}</div>", sanitize=False).classes(
                "ks-banner").props("role=alert")
        with ui.element("section").classes("ks-card").props('aria-label="People"'):
            table = ui.html(people_html(found, wanted, now, revealed=False), sanitize=False)
        ui.html(_older(found), sanitize=False)

    def turn() -> None:
        nonlocal revealed
        assert reveal is not None
        revealed = not revealed
        reveal.set_content("Hide names" if revealed else "Reveal names")
        table.set_content(people_html(found, wanted, now, revealed=revealed))

    if reveal is not None:
        reveal.on("click", turn)


async def read_people(running: Running, wanted: str, before: int | None) -> PeoplePage:
    """Those who match, or a page of everybody."""
    database = running.database
    if wanted.strip():
        exact = await find_people(database, wanted)
        people = await listed_people(database, exact) if exact else await people_named(database, wanted,
                                                                                      most=PAGE_PEOPLE)
        return PeoplePage(people, None)
    people = await newest_people(database, most=PAGE_PEOPLE + 1, before=before)
    return PeoplePage(people[:PAGE_PEOPLE], await count_people(database), len(people) > PAGE_PEOPLE)


def heading(found: PeoplePage, wanted: str) -> str:
    """How many, in a line."""
    if found.total is None:
        return f"{shown_count(len(found.people))} found." if wanted else ""
    return f"{shown_count(found.total)} in all, those who joined last come first."


def _box(wanted: str) -> str:
    return ('<form class="ks-ask" action="/people" role="search"><input class="ks-filter" name="q" '
            f'value="{escape(wanted)}" autocomplete="off" spellcheck="false" maxlength="300" '
            'placeholder="Name, sub, email or phone…" '
            'aria-label="Find a person"><button class="ks-btn accent">Find</button></form>')


def people_html(found: PeoplePage, wanted: str, now: float, *, revealed: bool) -> str:
    """The table, or what would be in it."""
    if not found.people:
        return f'<div class="ks-empty">{_nobody(wanted)}</div>'
    rows = "".join(_row(one, now, revealed=revealed) for one in found.people)
    return ('<table class="ks-table ks-people"><thead><tr><th>Person</th><th class="mid">Sub</th><th class="zone">'
            f'Time zone, now</th><th class="when">Joined</th></tr></thead><tbody>{rows}</tbody></table>')


def _nobody(wanted: str) -> str:
    if wanted:
        return ("Nobody is found. People are found by the beginning of a name, and by a sub, an email address or a "
                "phone number that is written out in full.")
    return ("Nobody has joined yet. Whoever logs in for the first time appears here, and whoever is made over the "
            'HTTP interface:<pre class="ks-code">curl -X POST $URL/api/1/users -H "Authorization: Bearer $KEY" \\\n'
            '  -H "Content-Type: application/json" -d \'{"provider": "example", "provider_sub": "ada"}\'</pre>'
            'A whole town of people comes with <span class="mono">keystead up --demo</span>.')


def _row(one: Listed, now: float, *, revealed: bool) -> str:
    names = [name if revealed else masked_word(name) for name in (one.given_name, one.family_name) if name]
    return (f'<tr class="link"><td><a class="ks-link" href="{escape(person_address(one.sub))}">'
            f'{escape(" ".join(names) or "no name")}</a></td><td class="mid mono uid quiet">{escape(one.sub)}</td>'
            f'<td class="zone">{escape(one.timezone or "not said").replace("/", "/<wbr>")} <span class="quiet">'
            f'{local_time(one.timezone, now)}</span></td>'
            f'<td class="when" title="{moment(one.created_at)}">{shown_ago(now - one.created_at)}</td></tr>')


def local_time(timezone: str | None, now: float) -> str:
    """What their clock shows now; who has not said lives by the zone of the statistics."""
    return datetime.fromtimestamp(now, UTC).astimezone(zone_of(timezone)).strftime("%a %H:%M")


def _older(found: PeoplePage) -> str:
    if not found.more:
        return ""
    return (f'<nav class="ks-pages" aria-label="Pages of the list"><a class="ks-btn" href="/people?before='
            f'{found.people[-1].number}">Those who joined before</a></nav>')


"""Which keys hold personal data of somebody, and erasing them: a card for the page of a person."""

import json
from collections.abc import Sequence
from html import escape
from typing import Final

from nicegui import ui

from keystead.app import Running
from keystead.custody import Erasure
from keystead.engine.failures import ErrorReply
from keystead.errors import KeysteadError, Unavailable
from keystead.ids import UserSub
from keystead.web.dashboard.jobs_shown import cut, plural
from keystead.web.dashboard.live_table import Column, LiveTable, Row, button
from keystead.web.dashboard.operator_frame import add_operator_css
from keystead.web.dashboard.pattern_table import pattern_address
from keystead.web.dashboard.shown import NOTHING, chip, shown_bytes, shown_count
from keystead.web.dashboard.stepping_in import SteppingIn
from keystead.web.facts import read_facts
from keystead.web.person_erasure import PatternHeld, by_pattern, erase_person, find_keys

# In a keyspace up to this size their keys are looked for when the page opens; in a larger one when somebody asks.
MOST_KEYS_AT_ONCE: Final = 20_000
SHOWN_PATTERNS: Final = 50
MOST_NAMED: Final = 8
COLUMNS: Final = (Column("Pattern"), Column("Keys", "num"), Column("Parts", "num mid"), Column("Size", "num"))
SAYS: Final = "by sub, addresses, numbers and devices; every key of the server is searched, values too"


async def person_keys(running: Running, sub: UserSub) -> None:
    """Build the card where the caller stands: what is found, by pattern, and a button that erases the person.

    Whoever may see the page has the scope ``users``, with which a person is erased over HTTP too. The search walks the
    whole keyspace at a bounded pace, so in a large one it waits for a click.
    """
    add_operator_css()
    step_in = SteppingIn()
    found: Erasure | None = None
    with ui.element("section").classes("ks-card").props('aria-label="Personal data"'):
        with ui.element("div").classes("ks-card-head"):
            with ui.element("div"):
                ui.html("Keys with their personal data", sanitize=True, tag="h2")
                says = ui.html(SAYS, sanitize=True).classes("quiet").props("role=status")
            with ui.element("div").classes("ks-side"):
                search = button("Search again", says="Search their keys again")
                erase = button("Erase this person…", tone="danger hidden", says="Erase this person")
        table = LiveTable(COLUMNS, classes="op-keys")
        notes = ui.html("", sanitize=False)

    async def look() -> None:
        nonlocal found
        says.set_content("Searching every key…")
        try:
            found = await find_keys(running, sub)
        except (KeysteadError, ErrorReply) as error:
            says.set_content(escape(f"The search did not end: {error}"))
            return
        says.set_content(escape(found_said(found)))
        table.show([held_row(each) for each in by_pattern(found)[:SHOWN_PATTERNS]],
                   empty="No key that may hold personal data holds anything of theirs.")
        notes.set_content(notes_html(found))
        erase.classes(remove="hidden")

    async def act() -> None:
        if found is None or not await step_in.confirmed(
            "Erase this person for good?", what_goes(by_pattern(found)), "Erase for good"
        ):
            return
        says.set_content("Erasing…")
        try:
            done = await erase_person(running, sub)
        except (KeysteadError, ErrorReply) as error:
            step_in.tell(str(error), bad=True)
            says.set_content(escape(str(error)))
            return
        table.show([], empty="Nothing is left that bears one of their names." if done.erasure.clean else
                   "What could be erased is gone; what is left is told below.")
        erase.classes(add="hidden")
        says.set_content(escape(erased_said(done.erasure)))
        notes.set_content(notes_html(done.erasure) + receipt_html(done.receipt, str(done.file.name)))
        step_in.tell(erased_said(done.erasure))

    search.on("click", look)
    erase.on("click", act)
    if await _keys(running) <= MOST_KEYS_AT_ONCE:
        ui.timer(0.05, look, once=True)  # the page shows before the search ends
    else:
        says.set_content(escape(f"The keyspace is large, so it is searched when you ask: {SAYS}"))
        search.set_content("Search their keys")


async def _keys(running: Running) -> int:
    try:
        return (await read_facts(running.valkey)).keys
    except Unavailable:
        return 0  # the search says so


def found_said(found: Erasure) -> str:
    patterns = by_pattern(found)
    if not patterns:
        return f"Nothing, in {shown_count(found.searched_keys)} keys"
    return (f"{plural(len(found.acts), 'key')} of {plural(len(patterns), 'pattern')}, "
            f"{shown_bytes(sum(each.bytes for each in patterns))}; {shown_count(found.searched_keys)} keys searched")


def held_row(each: PatternHeld) -> Row:
    return Row(each.pattern, (
        f'<a class="mono" href="{escape(pattern_address(each.pattern))}">{escape(each.pattern)}</a>',
        shown_count(each.keys), shown_count(each.parts) if each.parts else "whole",
        shown_bytes(each.bytes) if each.bytes else NOTHING,
    ))


def what_goes(patterns: Sequence[PatternHeld]) -> str:
    """What somebody has to read before they say yes."""
    keys = sum(each.keys for each in patterns)
    named = ", ".join(each.pattern for each in patterns[:MOST_NAMED])
    more = f" and {plural(len(patterns) - MOST_NAMED, 'more pattern')}" if len(patterns) > MOST_NAMED else ""
    kept = f"{plural(keys, 'key')} of {named}{more}" if keys else "no key that is known now"
    return ("Gone afterwards: their account, names, addresses, numbers, devices and reminders; the history of what "
            f"they were sent, and what waits to be sent to them.\n\nAnd {kept}. Of keys that others share only their "
            "part goes.\n\nAddresses that must not be written to stay on their list, as a hash; counts stay. It cannot "
            "be undone. A receipt without their data is kept.")


def erased_said(done: Erasure) -> str:
    failed = sum(act.failed for act in done.acts)
    if done.partial:
        return f"Not finished: {done.partial}"
    left = f"; {plural(len(done.leftovers), 'key')} left to judge" if done.leftovers else "; nothing is left"
    not_done = f"; {failed} failed" if failed else ""
    return f"Erased: rows, and {plural(len(done.acts) - failed, 'key')}{left}{not_done}"


def notes_html(found: Erasure) -> str:
    """What the search cannot promise: keys to judge, what could not be read, and why it ended early."""
    lines = [escape(note) for note in found.notes]
    if found.leftovers:
        names = sorted({holding.pattern for holding in found.leftovers})
        lines.append(f"{chip('to judge', 'warn')} {plural(len(found.leftovers), 'key')} bear one of their names and "
                     f"are not marked personal: {escape(cut(', '.join(names), 300))}")
    lines += [f"{chip('not read', 'warn')} {plural(count, 'key')}: {escape(why)}"
              for why, count in found.unreadable.items()]
    lines += [f"{chip('not finished', 'bad')} {escape(found.partial)}"] if found.partial else []
    return "".join(f'<div class="ks-empty">{line}</div>' for line in lines)


def receipt_html(receipt: dict[str, object], name: str) -> str:
    text = json.dumps(receipt, indent=2)
    return (f'<div class="ks-card-head"><h2>Receipt</h2><span class="quiet mono">{escape(name)} in the folder receipts '
            f'of the data directory</span></div><pre class="op-receipt" data-receipt>{escape(cut(text, 4000))}</pre>')


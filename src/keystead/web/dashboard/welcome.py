"""For whoever is here for the first time: what this is, and where to begin. On the overview until it is closed."""

from html import escape
from typing import Final

from nicegui import ui

TOWN: Final = (
    "Keystead is the backend of a product in one program: people, messages, reminders, jobs and statistics on Valkey "
    "and SQL. Here a town of simulated people uses it through the public HTTP API, and nothing leaves this machine."
)
EMPTY: Final = (
    "Keystead is the backend of a product in one program: people, messages, reminders, jobs and statistics on Valkey "
    "and SQL. Nobody uses this one yet; each page says how to begin. To see one full of life, run "
    '<code class="mono">keystead up --demo</code>.'
)
TOWN_STEPS: Final = (
    ("/people", "Meet the people", "what each was sent, and why a reminder comes or not"),
    ("/sandbox", "Read what they got", "push, texts and mail as they would have arrived"),
    ("/jobs", "Watch jobs fail", "why they did, by error; one click tries them again"),
    ("/keys", "Look into the keys", "what each is for, how long it lives, what it holds"),
)
EMPTY_STEPS: Final = (
    ("/people", "Make a person", "one request; names stay masked until you ask"),
    ("/jobs", "Queue a job", "a function, a worker, three lines"),
    ("/sandbox", "Send a message", "the sandbox shows it, nobody receives it"),
    ("/docs", "Try the API", "every route, with examples"),
)


def show_welcome(*, town: bool) -> ui.element:
    """Build it where the caller stands. ``town``: a demonstration lives here; otherwise nothing does yet."""
    with ui.element("section").classes("ks-card ks-welcome").props('aria-label="Welcome"') as card:
        ui.html(welcome_html(town=town), sanitize=False)
    return card


def welcome_html(*, town: bool) -> str:
    steps = "".join(f'<li><a href="{path}"><b>{escape(does)}</b><span>{escape(says)}</span></a></li>'
                    for path, does, says in (TOWN_STEPS if town else EMPTY_STEPS))
    return ('<button class="ks-icon" type="button" data-does="welcomed" aria-label="Close the welcome" title="Close">'
            f"&times;</button><h2>What you are looking at</h2><p>{TOWN if town else EMPTY}</p><ul>{steps}</ul>")

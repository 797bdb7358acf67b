"""What a template makes of parameters, as a person would see it."""

import json
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from keystead.messaging.email import Templates
from keystead.messaging.email.templates import Outcome, Variant
from keystead.web.dashboard.sandbox_shown import framed

_NAMES: Final = {Variant.HTML: "HTML", Variant.PLAIN: "plain text"}
_FRAME: Final = ('<iframe sandbox="" referrerpolicy="no-referrer" title="The email" class="tp-mail" '
                 'srcdoc="{}"></iframe>')


@dataclass(frozen=True, slots=True)
class Preview:
    """Both variants as safe HTML for the page, and what is wrong, if anything is."""

    html: str
    text: str
    problem: str = ""


def sample_text(templates: Templates, slug: str) -> str:
    """Parameters to begin with, as JSON that is pleasant to edit."""
    return json.dumps(templates.sample(slug), indent=2, ensure_ascii=False)


def preview(templates: Templates, slug: str, typed: str) -> Preview | None:
    """How the template looks with what was typed; None while that is no JSON object, so that the last look can stay."""
    parameters = read_parameters(typed)
    if parameters is None:
        return None
    html, text = (templates.variant(slug, variant, parameters) for variant in (Variant.HTML, Variant.PLAIN))
    problems = [f"{_NAMES[variant]}: {found.reason}" for variant, found in ((Variant.HTML, html), (Variant.PLAIN, text))
                if found.status not in (200, 404)]
    if html.status == text.status == 404:
        problems = [html.reason]
    # The frame has no scripts, no forms and an origin of its own, whatever a template or a parameter says.
    return Preview(_shown(html, _FRAME.format(escape(framed(html.text)))),
                   _shown(text, f'<pre class="ks-code">{escape(text.text)}</pre>'), "; ".join(problems))


def read_parameters(typed: str) -> dict[str, Any] | None:
    """What was typed, if it is a JSON object."""
    try:
        found = json.loads(typed or "{}")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _shown(outcome: Outcome, good: str) -> str:
    if outcome.status == 200:
        return good
    return '<div class="ks-empty">{}</div>'.format(
        "This variant is not offered." if outcome.status == 404 else "It cannot be shown.")

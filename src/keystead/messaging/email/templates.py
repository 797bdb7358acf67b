"""Email templates: Jinja2 to HTML and plain text.

``{slug}.html`` and ``{slug}.txt`` are the two variants of a template; either may be missing. Yours come before the
built-in ones. Values are escaped in HTML, a name that is not given is an error, and templates run in Jinja2's sandbox.
``{slug}.json`` may hold parameters to preview it with.
"""

import json
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from jinja2 import BaseLoader, ChoiceLoader, FileSystemLoader, StrictUndefined, TemplateNotFound, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from keystead.errors import Invalid

BUILT_IN: Final = Path(__file__).with_name("templates_builtin")
SLUG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
MOST_CHARACTERS: Final = 1_000_000


class Variant(Enum):
    """Which form of an email; the value is the ending of its file."""

    HTML = "html"
    PLAIN = "txt"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One variant: its text with status 200, otherwise why there is none. Statuses are those of the HTTP door."""

    status: int
    text: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rendered:
    """Both variants of an email; one of them may be None, not both."""

    html: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class NotRendered:
    """Why an email cannot be rendered: the identifier told to its failure job, the breakdown counted, and words."""

    identifier: str
    breakdown: str
    reason: str


class _NotALink(ValueError):
    """What was given for a link would do something else when clicked."""


def link(value: object) -> str:
    """An address that is safe behind a link: http, https or mailto. Escaping alone would let ``javascript:`` pass."""
    text = str(value).strip()
    if re.match(r"(?i)(https?://|mailto:)[^\s]", text) is None or re.search(r"[\x00-\x20]", text):
        raise _NotALink("a link must begin with http://, https:// or mailto: and hold no spaces")
    return text


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja2's sandbox. Its globals never change, so that they need not be looked up in two places for each email."""

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        return {**self.globals, **(d or {})}


class Templates:
    """Renders by slug. Files of ``directory`` may change while we run."""

    def __init__(self, directory: str | Path = "") -> None:
        self._places = [Path(directory)] if directory else []
        if self._places and not self._places[0].is_dir():
            raise Invalid(f"email.templates: {directory} is not a directory")
        self._places.append(BUILT_IN)
        loaders: list[BaseLoader] = [FileSystemLoader(place) for place in self._places]
        self._environment = _Environment(
            loader=ChoiceLoader(loaders), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
            autoescape=lambda name: name is None or not name.endswith(".txt"),
        )
        self._environment.filters["link"] = link

    def render(self, slug: str, parameters: Mapping[str, Any]) -> Rendered | NotRendered:
        """Both variants. One that is missing is not offered; otherwise the worse of two failures decides."""
        html, plain = (self.variant(slug, variant, parameters) for variant in (Variant.HTML, Variant.PLAIN))
        failures = [each for each in (html, plain) if each.status not in (200, 404)]
        if failures:
            worst = max(failures, key=lambda each: each.status)
            if worst.status == 422:
                return NotRendered("TemplateUnprocessable", "template:422", worst.reason)
            return NotRendered("TemplateInternalError", "template:InternalError", worst.reason)
        if html.status == plain.status == 404:
            return NotRendered("TemplateNotFound", "template:404", html.reason)
        return Rendered(html.text if html.status == 200 else None, plain.text if plain.status == 200 else None)

    def variant(self, slug: str, variant: Variant, parameters: Mapping[str, Any]) -> Outcome:
        """One variant: 200, 404 if there is none, 422 if the parameters do not suit it, 500 if the template fails."""
        if SLUG.fullmatch(slug) is None:
            return Outcome(404, reason="a template is named by letters, digits, _ and -")
        name = f"{slug}.{variant.value}"
        try:
            template = self._environment.get_template(name)
            text = template.render(dict(parameters))
        except TemplateNotFound as error:
            if error.name == name:
                return Outcome(404, reason=f"there is no template {name}")
            return Outcome(500, reason=f"{name} needs {error.name}, which is not there")
        except (UndefinedError, _NotALink) as error:
            return Outcome(422, reason=f"{name}: {error}")
        except Exception as error:  # a template may raise anything, and must not stop the email behind it
            return Outcome(500, reason=f"{name}: {type(error).__name__}")
        if len(text) > MOST_CHARACTERS:
            return Outcome(500, reason=f"{name}: more than {MOST_CHARACTERS:,} characters")
        return Outcome(200, text)

    def slugs(self) -> list[str]:
        """Every template that can be rendered, by name."""
        endings = [f"*.{variant.value}" for variant in Variant]
        found = {path.stem for place in self._places for ending in endings for path in place.glob(ending)}
        return sorted(slug for slug in found if SLUG.fullmatch(slug))

    def sample(self, slug: str) -> dict[str, Any]:
        """Parameters to preview a template with; none if it comes without."""
        if SLUG.fullmatch(slug) is None:
            return {}
        for place in self._places:
            try:
                found = json.loads((place / f"{slug}.json").read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            return found if isinstance(found, dict) else {}
        return {}

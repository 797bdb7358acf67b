"""The registry as documents: rows for programs, Markdown and HTML for people."""

from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

from keystead.keys.declarations import LockKey
from keystead.keys.keyspace import Declaration, OnCorrupt, Personal
from keystead.keys.registry import Registry


def describe(declaration: Declaration) -> dict[str, Any]:
    """Everything a declaration says, as values that JSON can hold."""
    return {
        "pattern": declaration.pattern,
        "kind": declaration.kind,
        "type": declaration.type,
        "server_type": declaration.server_type,
        "ttl": declaration.ttl.describe() if declaration.kind == "key" else "",
        "room": declaration.room,
        "purpose": declaration.purpose,
        "payload": declaration.payload,
        "lock": declaration.lock.name.lower() if isinstance(declaration, LockKey) else None,
        "personal": personal_marks(declaration),
        "tag": declaration.tag.describe(),
        "variables": {variable.name: variable.kind.says for variable in declaration.template.variables},
        "writers": list(declaration.writers),
        "readers": list(declaration.readers),
        "scripts": list(declaration.scripts),
        "dead_letter": _dead_letter(declaration),
        "pairs_with": declaration.pairs_with.record.pattern if declaration.pairs_with else None,
    }


def personal_marks(declaration: Declaration) -> list[str]:
    """Where personal data is: ``variable ip``, ``field email``, or ``value``; empty if there is none."""
    if isinstance(declaration.personal, Personal):
        marks = [f"variable {name}" for name in declaration.personal.variables]
        return marks + [f"field {name}" for name in declaration.personal.fields]
    return ["value"] if declaration.personal else []


def inventory_rows(registry: Registry) -> list[dict[str, Any]]:
    """Every declaration, in the order of rooms and declarations."""
    return [describe(declaration) for declaration in registry]


def to_markdown(registry: Registry) -> str:
    """The inventory as one Markdown page, grouped by room."""
    lines = [
        "# Keys and channels",
        "",
        "Every key and channel that may exist, by room. A name in braces is a variable; its kind is listed with it.",
    ]
    for room, rows in _by_room(registry):
        lines += ["", f"## {room}", "", "| pattern | type | expires | purpose |", "|---|---|---|---|"]
        for row in rows:
            cells = (f"`{row['pattern']}`", row["type"], row["ttl"], row["purpose"])
            lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
        for row in rows:
            lines += ["", f"### `{row['pattern']}`", "", _sentence(row["purpose"]), ""]
            for fact in _facts(row):
                shown = ", ".join(f"`{text}`" if fact.code else _inline(text) for text in fact.texts)
                lines.append(f"- {fact.name}: {shown}")
    return "\n".join(lines) + "\n"


def to_html(registry: Registry) -> str:
    """The inventory as one page that needs nothing beside it."""
    body: list[str] = []
    for room, rows in _by_room(registry):
        body.append(f'<section><h2 id="{escape(room)}">{escape(room)}</h2>')
        for row in rows:
            facts = "".join(f"<dt>{escape(fact.name)}</dt><dd>{fact.html()}</dd>" for fact in _facts(row))
            body.append(
                f"<article><h3><code>{escape(row['pattern'])}</code></h3>"
                f"<p>{escape(_sentence(row['purpose']))}</p><dl>{facts}</dl></article>"
            )
        body.append("</section>")
    links = "".join(
        f'<li><a href="#{escape(room)}">{escape(room)}</a> <small>{len(rows)}</small></li>'
        for room, rows in _by_room(registry)
    )
    return _PAGE.replace("@links@", links).replace("@body@", "\n".join(body))


@dataclass(frozen=True, slots=True)
class _Fact:
    """One line about a declaration; ``code`` marks names out of the program, shown as they are."""

    name: str
    texts: list[str]
    code: bool = False

    def html(self) -> str:
        texts = (f"<code>{escape(text)}</code>" if self.code else escape(text) for text in self.texts)
        return ", ".join(texts)


def _by_room(registry: Registry) -> list[tuple[str, list[dict[str, Any]]]]:
    rows = sorted(inventory_rows(registry), key=lambda row: str(row["room"]))
    return [(room, list(group)) for room, group in groupby(rows, key=lambda row: str(row["room"]))]


def _facts(row: dict[str, Any]) -> list[_Fact]:
    variables = [f"{name} is {says}" for name, says in row["variables"].items()]
    holds = [row["payload"]] if row["payload"] != row["type"] else []
    undecodable = [row["dead_letter"]] if row["dead_letter"] != OnCorrupt.ERROR.value else []
    facts = (
        _Fact("type", [row["type"]]),
        _Fact("holds", holds),
        _Fact("expires", [row["ttl"]]),
        _Fact("variables", variables),
        _Fact("tag", [row["tag"]], code=True),
        _Fact("written by", row["writers"], code=True),
        _Fact("read by", row["readers"], code=True),
        _Fact("scripts", row["scripts"], code=True),
        _Fact("personal data", row["personal"]),
        _Fact("every member has", [row["pairs_with"] or ""], code=True),
        _Fact("values that do not decode", undecodable),
    )
    return [fact for fact in facts if any(fact.texts)]


def _dead_letter(declaration: Declaration) -> str:
    rule = declaration.dead_letter
    return rule.value if isinstance(rule, OnCorrupt) else f"go to {rule.pattern}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _inline(text: str) -> str:
    """Text in a Markdown line; what could be taken for markup is shown as it is."""
    text = text.replace("\n", " ")
    for character in ("\\", "*", "_", "<", "`"):
        text = text.replace(character, "\\" + character)
    return text


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Keys and channels</title>
<style>
:root { color-scheme: light dark; --edge: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { border-bottom: 1px solid var(--edge); padding-bottom: .3rem; margin-top: 3rem; }
h3 { margin: 0 0 .3rem; font-size: 1rem; overflow-wrap: anywhere; }
article { border: 1px solid var(--edge); border-radius: .5rem; padding: .8rem 1rem; margin: .8rem 0; }
p { margin: 0 0 .5rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; font-size: .9rem; }
dt { opacity: .7; }
dd { margin: 0; overflow-wrap: anywhere; }
</style></head>
<body><h1>Keys and channels</h1>
<p>Every key and channel that may exist, by room. A name in braces is a variable.</p>
<ul>@links@</ul>
@body@
</body></html>
"""

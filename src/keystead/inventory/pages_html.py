"""An inventory as one HTML page that needs nothing beside it."""

from html import escape

from keystead.inventory.models import Certainty, Entry, Inventory
from keystead.inventory.pages import CERTAINTIES, NAMES, facts_of, plain

_HIDDEN = {"implied", "guessed", "look at the pattern"}


def to_html(inventory: Inventory) -> str:
    """The page, in the order and the sections of the inventory; a guess has a question mark behind it."""
    body: list[str] = []
    links: list[str] = []
    introductions = dict(inventory.sections)
    here: tuple[str, ...] | None = None
    for entry in inventory.entries:
        if entry.section != here:
            body += _section(here or (), entry.section, introductions, links)
            here = entry.section
        body.append(_article(entry))
    count = f"{len(inventory.entries)} patterns"
    return (_PAGE.replace("@title@", escape(inventory.name)).replace("@count@", count)
            .replace("@links@", "".join(links)).replace("@body@", "\n".join(body)))


def _section(
    here: tuple[str, ...], path: tuple[str, ...], introductions: dict[tuple[str, ...], str], links: list[str]
) -> list[str]:
    """The headings on the way to a section that do not stand there yet."""
    lines: list[str] = []
    same = 0
    while same < min(len(here), len(path) - 1) and here[same] == path[same]:
        same += 1
    for depth in range(same, len(path)):
        level, number = min(depth + 2, 6), len(links) + 1
        lines.append(f'<h{level} id="s{number}">{escape(path[depth])}</h{level}>')
        links.append(f'<li class="d{min(depth, 4)}"><a href="#s{number}">{escape(path[depth])}</a></li>')
        text = introductions.pop(path[: depth + 1], "")
        lines += [f'<p class="text">{escape(text)}</p>'] if text else []
    return lines


def _article(entry: Entry) -> str:
    guesses = {name for name, value in facts_of(entry) if name == "guessed" for name in value.split(", ")}
    facts: list[str] = []
    for name, value in facts_of(entry):
        if name in _HIDDEN:
            continue
        guess = name in guesses or name.startswith(CERTAINTIES[Certainty.GUESSED])
        mark = ' <b title="a guess">?</b>' if guess else ""
        facts.append(f"<dt>{escape(plain(name))}</dt><dd>{_value(value)}{mark}</dd>")
    if entry.sources:
        facts.append(f"<dt>stands in</dt><dd>{escape(', '.join(map(str, entry.sources)))}</dd>")
    doubt = f' <b title="{escape(entry.uncertain)}">?</b>' if entry.uncertain else ""
    purpose = f'<p class="text">{escape(entry.purpose.value)}</p>' if entry.purpose else ""
    personal = " personal" if entry.personal and entry.personal.value else ""
    head = f"<h6>{NAMES[entry.kind]}<code>{escape(entry.pattern)}</code>{doubt}</h6>"
    return f'<article class="{entry.kind}{personal}">{head}{purpose}<dl>{"".join(facts)}</dl></article>'


def _value(value: str) -> str:
    if "\n" in value:
        return f"<pre>{escape(value)}</pre>"
    pieces = escape(plain(value)).split("`")
    # Between an odd and the next backtick stands a name out of a program.
    return "".join(f"<code>{piece}</code>" if index % 2 else piece for index, piece in enumerate(pieces))


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>@title@</title>
<style>
:root { color-scheme: light dark; --edge: #8884; --mark: #c60; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
  display: grid; grid-template-columns: minmax(10rem, 16rem) 1fr; gap: 0 2rem; }
header { grid-column: 1 / -1; }
nav { font-size: .9rem; position: sticky; top: 1rem; align-self: start; max-height: 95vh; overflow: auto; }
nav ul { list-style: none; padding: 0; }
nav .d1 { padding-left: .8rem; } nav .d2, nav .d3, nav .d4 { padding-left: 1.6rem; }
main { min-width: 0; }
h2, h3 { border-bottom: 1px solid var(--edge); padding-bottom: .3rem; margin: 2rem 0 .8rem; }
article { border: 1px solid var(--edge); border-radius: .5rem; padding: .8rem 1rem; margin: .8rem 0; }
article h6 { margin: 0 0 .3rem; font-size: 1rem; overflow-wrap: anywhere; }
article.personal { border-left: .25rem solid var(--mark); }
.text { margin: 0 0 .5rem; white-space: pre-line; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; font-size: .9rem; }
dt { opacity: .7; } dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
pre { margin: 0; overflow: auto; } b { color: var(--mark); cursor: help; }
input { font: inherit; width: 100%; padding: .3rem .5rem; box-sizing: border-box; }
@media (max-width: 50rem) { body { display: block; } nav { position: static; max-height: none; } }
</style></head>
<body><header><h1>@title@</h1><p>@count@. A name in braces is a variable; what has a ? is a guess.</p></header>
<nav><input type="search" placeholder="find" aria-label="find a pattern"><ul>@links@</ul></nav>
<main>
@body@
</main>
<script>
document.querySelector("input").addEventListener("input", event => {
  const wanted = event.target.value.toLowerCase();
  for (const article of document.querySelectorAll("article"))
    article.hidden = !article.textContent.toLowerCase().includes(wanted);
});
</script>
</body></html>
"""

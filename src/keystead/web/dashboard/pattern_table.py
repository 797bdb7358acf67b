"""The declared patterns by room, with how many keys they have and what those weigh."""

from collections.abc import Iterable
from html import escape
from itertools import groupby
from typing import Final, Literal
from urllib.parse import quote

from keystead.keys import Declaration
from keystead.operations import PatternCount, PatternCounts
from keystead.web.dashboard.shown import NOTHING, chip, shown_bytes, shown_count

Order = Literal["room", "memory", "keys", "name"]
ORDERS: Final[dict[Order, str]] = {"room": "By room", "memory": "Largest first", "keys": "Most keys", "name": "By name"}

_HEAD = (
    '<table class="ks-table"><thead><tr><th>Pattern</th><th class="mid">Type</th><th class="wide">Lives</th>'
    '<th class="num">Keys</th><th class="num">Memory</th></tr></thead></table>'
)


def pattern_address(pattern: str) -> str:
    return f"/pattern?name={quote(pattern, safe='')}"


def pattern_table(
    declarations: Iterable[Declaration], counts: PatternCounts | None, wanted: str, *, order: Order = "room",
    personal_only: bool = False, used_only: bool = False,
) -> str:
    """The table as HTML. ``wanted`` keeps the patterns that hold all of its words somewhere.

    ``personal_only`` keeps those that hold personal data, ``used_only`` those that have keys now. Only the order by
    room has headings.
    """
    words = wanted.lower().split()
    shown = [each for each in declarations if all(word in _searched(each) for word in words)
             and (each.personal or not personal_only) and (not used_only or _count(each, counts).keys)]
    if not shown:
        return f'<div class="ks-empty">{_nothing(wanted, personal_only, used_only)}</div>'
    tables = [_HEAD]
    if order == "room":
        # A table for each room, with columns of fixed width: a heading row across all columns would fix their number.
        by_room = sorted(shown, key=lambda each: (each.room, each.pattern))
        for room, members in groupby(by_room, key=lambda each: each.room):
            tables.append(f'<h3 class="ks-room">{escape(room)}</h3>{_rows(members, counts)}')
    else:
        tables.append(_rows(sorted(shown, key=lambda each: _weight(each, counts, order)), counts))
    if counts is not None and counts.undeclared_keys and not (words or personal_only):
        tables.append(f'<table class="ks-table stray"><tbody>{_stray_row(counts)}</tbody></table>')
    return "".join(tables)


def _nothing(wanted: str, personal_only: bool, used_only: bool) -> str:
    kind = " with personal data" if personal_only else ""
    kind += " that has keys now" if used_only else ""
    return f"No declared pattern{kind} matches “{escape(wanted)}”." if wanted else f"There is no pattern{kind}."


def _rows(declarations: Iterable[Declaration], counts: PatternCounts | None) -> str:
    rows = "".join(_row(each, counts) for each in declarations)
    return f'<table class="ks-table"><tbody>{rows}</tbody></table>'


def _count(declaration: Declaration, counts: PatternCounts | None) -> PatternCount:
    return counts.of(declaration) if counts is not None else PatternCount()


def _weight(declaration: Declaration, counts: PatternCounts | None, order: Order) -> tuple[int, int, str]:
    count = _count(declaration, counts)
    if order == "name":
        return 0, 0, declaration.pattern
    first, second = (count.memory_bytes, count.keys) if order == "memory" else (count.keys, count.memory_bytes)
    return -first, -second, declaration.pattern


def _row(declaration: Declaration, counts: PatternCounts | None) -> str:
    personal = f" {chip('personal', 'warn')}" if declaration.personal else ""
    return (
        f'<tr class="link"><td><a class="mono" href="{pattern_address(declaration.pattern)}">'
        f'{escape(declaration.pattern)}</a>{personal}<div class="quiet">{escape(declaration.purpose)}</div></td>'
        f'<td class="mid">{escape(declaration.type)}</td><td class="wide quiet">{escape(lives(declaration))}</td>'
        f"{_numbers(declaration, counts)}</tr>"
    )


def _numbers(declaration: Declaration, counts: PatternCounts | None) -> str:
    if declaration.kind == "channel" or counts is None:
        return f'<td class="num zero">{NOTHING}</td><td class="num zero">{NOTHING}</td>'
    count = counts.of(declaration)
    if not count.keys:
        return f'<td class="num zero">0</td><td class="num zero">{NOTHING}</td>'
    about = "≈ " if count.estimated else ""
    return (f'<td class="num">{shown_count(count.keys)}</td>'
            f'<td class="num">{about}{shown_bytes(count.memory_bytes)}</td>')


def _stray_row(counts: PatternCounts) -> str:
    return (
        '<tr><td>Not declared<div class="quiet">Keys that no room declares. '
        "<span class=mono>keystead keys audit</span> groups them.</div></td>"
        '<td class="mid"></td><td class="wide"></td>'
        f'<td class="num">{shown_count(counts.undeclared_keys)}</td>'
        f'<td class="num">{shown_bytes(counts.undeclared_memory_bytes)}</td></tr>'
    )


def lives(declaration: Declaration) -> str:
    """The expiry rule in a few words; a channel has none."""
    if declaration.kind != "key":
        return ""
    says = declaration.ttl.describe()
    return "until deleted" if says == "none" else says


def _searched(declaration: Declaration) -> str:
    return f"{declaration.pattern} {declaration.room} {declaration.type} {declaration.purpose}".lower()



"""Numbers, times and keys as people read them."""

from collections.abc import Iterable
from html import escape

from keystead.lengths import in_two_units

MASK = "•••"
NOTHING = "\N{EN DASH}"


def shown_bytes(count: float) -> str:
    """``1.4 MB``; decimal units, as disks and networks count."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def shown_count(count: int) -> str:
    """``12,345``, and ``1.23 M`` where digits no longer help."""
    if count < 1_000_000:
        return f"{count:,}"
    return f"{count / 1e6:.2f} M" if count < 1_000_000_000 else f"{count / 1e9:.2f} G"


def shown_rate(per_second: float | None) -> str:
    if per_second is None:
        return NOTHING
    return f"{per_second:.1f}" if 0 < per_second < 9.95 else shown_count(round(per_second))


def shown_duration(seconds: float) -> str:
    """The two largest units: ``3 d 4 h``, ``12 min 5 s``."""
    return in_two_units(int(seconds))


def shown_ago(seconds: float) -> str:
    return "just now" if seconds < 2 else f"{shown_duration(seconds)} ago"


def shown_share(share: float | None) -> str:
    return NOTHING if share is None else f"{share * 100:.1f} %" if share < 0.9995 else "100 %"


def masked(text: str) -> str:
    """Enough to tell two values apart at a glance, too little to know either."""
    return MASK if len(text) < 6 else f"{text[:2]}{MASK}"


def masked_address(text: str) -> str:
    """An email address with its host, the ends of a number, the beginning of anything else."""
    name, at, host = text.rpartition("@")
    if at:
        return f"{name[:2] if len(name) > 2 else name[:1]}{MASK}@{host}"
    return f"{text[:3]}{MASK}{text[-2:]}" if text.startswith("+") and len(text) > 7 else masked(text)


def masked_key(spelled: str, personal_values: Iterable[str]) -> str:
    """A key with the values that name a person masked."""
    for value in sorted(personal_values, key=len, reverse=True):
        if value:
            spelled = spelled.replace(value, masked(value))
    return spelled


def chip(text: str, tone: str = "") -> str:
    """A small label as HTML; ``tone`` is good, warn, bad or nothing."""
    return f'<span class="ks-chip {tone}">{escape(text)}</span>'


def fact_rows(rows: Iterable[tuple[str, str]]) -> str:
    """Names with ready HTML as a list of facts; what is empty is left out."""
    inside = "".join(f"<dt>{escape(name)}</dt><dd>{content}</dd>" for name, content in rows if content)
    return f'<dl class="ks-facts">{inside}</dl>'

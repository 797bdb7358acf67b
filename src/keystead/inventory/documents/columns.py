"""What a column of a table, or a label before a colon, is about."""

import re
from functools import cache
from typing import Final

from .blocks import Text
from .vocabulary import COLUMNS

_EXACT: Final = {phrase: role for role, phrases in reversed(COLUMNS.items()) for phrase in phrases}
_LOOSE: Final = ("key", "type", "ttl", "purpose", "personal", "example", "writers", "readers")
_LABEL: Final = re.compile(
    r"^[\s>*•\-\d.)]*\x05?\s*(?P<label>[^\x01-\x06:：=\n]{1,40}?)\s*(?:\x06?\s*[:：=]\s*\x06?|\x06\s*[-–—→]\s*|"
    r"\x06\s+)(?P<value>\S.*)$",
    re.DOTALL,
)
_UNMARKED: Final = re.compile(
    r"^(?P<label>TTL|Type|Expiry|Expires|Expiration|类型|过期时间|타입|"
    r"만료)\s+(?P<value>\S.{0,80})$",
    re.IGNORECASE | re.DOTALL,
)


@cache
def role_of(label: str) -> str | None:
    """The role of a column or label called ``label``: key, type, ttl, purpose ... or ``None`` if it has none."""
    text = " ".join(label.lower().replace("_", " ").split()).strip(" *?:：.#\"'`") or label.strip()
    if not text or len(text) > 60:
        return None
    for candidate in (
        text,
        re.sub(r"\s*[(（\[].*?[)）\]]\s*", " ", text).strip(),
        *(part.strip() for part in re.split(r"[/(（|,、&]", text) if part.strip()),
    ):
        if candidate in _EXACT:
            return _EXACT[candidate]
    best: tuple[int, str] | None = None
    for role in _LOOSE:
        for phrase in COLUMNS[role]:
            if (
                (len(phrase) < 3 and phrase.isascii())
                or phrase not in text
                or (phrase in {"use", "what", "read", "write", "set by"} and len(text) > 14)
            ):
                continue
            whole = re.search(rf"(?<![a-zà-ɏ]){re.escape(phrase)}(?![a-zà-ɏ])", text)
            if whole and len(text.split()) <= 4 and (best is None or len(phrase) > best[0]):
                best = (len(phrase), role)
    return best[1] if best else None


def unit_of(label: str) -> float:
    """The seconds in the unit that a heading such as ``TTL (ms)`` gives to bare numbers; 1 if it gives none."""
    found = re.search(
        r"[(（\[,]\s*(?:in )?(ms|millis\w*|毫秒|밀리초|ミリ秒|s|secs?|seconds?|秒|초|m|mins?|minutes?|"
        r"分钟?|분|minuten|h|hrs?|hours?|小时|시간|時間|stunden|"
        r"d|days?|天|일|日|tage)\s*[)）\]]?|\b(?:in|en) (seconds|minutes|hours|days|milliseconds|"
        r"sekunden|minuten|segundos|minutos|horas)",
        label.lower(),
    )
    if not found:
        return 1
    word = found[1] or found[2]
    for seconds, beginning in (
        (0.001, ("ms", "milli", "毫", "밀리", "ミリ")),
        (60, ("m", "分", "분")),
        (3600, ("h", "小时", "시간", "時", "stund", "hora")),
        (86400, ("d", "天", "일", "日", "tag")),
    ):
        if word.startswith(beginning):
            return seconds
    return 1


def label_of(text: Text) -> tuple[str, str, Text] | None:
    """The role, label and value of a line such as ``**TTL**: 1 h``; ``None`` if the line is no such thing."""
    found = _LABEL.match(text.raw) or _UNMARKED.match(text.raw)
    if not found:
        return None
    role = role_of(found["label"].strip())
    if role is None or role in {"number", "command"}:
        return None
    return role, found["label"].strip(), Text(found["value"].strip(" \x05\x06"), text.line_at(found.start("value")))

# ruff: noqa: RUF001 - the words of several languages
"""When keys end, in words: read generously from what people write, written in one way, and judged.

Written: ``none``, ``30 min``, ``at most 1 h``, ``15 min sliding``, ``until the token ends, at most 1 h``,
``none, or at most 10 min``, ``some``. What more is known stands in parentheses.
"""

import re

from keystead.inventory.durations import find_durations
from keystead.inventory.models import Expiry, Rule
from keystead.lengths import in_one_unit, in_whole_units

# The server rounds, and clocks differ a little.
SLACK_SECONDS = 1.5

_OURS = re.compile(
    r"(?:(?P<none>none)(?:, or at most (?P<or>[^,()]+))?|(?P<some>some)|at most (?P<most>[^,()]+)"
    r"|(?P<sliding>[^,()]+) sliding|(?P<exactly>[^,()]+))(?: \((?P<words>.*)\))?", re.DOTALL)
_OUR_UNTIL = re.compile(r"until (?P<words>.*?)(?:, at most (?P<most>[^,()]+))?", re.DOTALL)
_OUR_LENGTH = re.compile(r"([\d.]+(?:e[+-]?\d+)?) (ms|s|min|h|d)")
_OUR_UNITS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400}

_LABEL = re.compile(
    r"^\s*(?:with\s+)?(?:an?\s+)?(?:ttl|expiry|expires?|expiration|timeout|过期时间|有效期|만료)?\s*(?:of|is|in|after|[:=：])?\s*",
    re.IGNORECASE)
_NONE = re.compile(
    r"""^\W*(?:none|no|never|nil|null|nope|-1|∞)\W*$
    |\b(?:no|without(?:\s+an?y?)?|never\s+has\s+an?y?|has\s+no|zero)\s+(?:ttl|expir\w*|timeout|time\s+limit)
    |(?:\bnever|\bnot|n['’]t|\bcannot)\s+(?:\w+\s+)?expir\w*|\bnon-?expiring\b|\bttl\s*[:=]?\s*(?:none|no|never|-1|0)\b
    |\bpersist(?:ent|s|ed)\b(?!\s+for)|\bpermanent(?:ly)?\b|\bforever\b|\binfinit\w+|\bindefinit\w+|\beternal\b|\bunlimited\b|∞
    |\bkeine?\b|\bnie\b|\baucun\w*\b|\bjamais\b|\bningun\w*\b|\bnunca\b|\bsin\s+(?:ttl|expir\w*|caducidad)|\bnessun\w*\b
    |\bнет\b|бессрочн|без\s+(?:ttl|срока)
    |永久|永不|不过期|不過期|无过期|無過期|无限期|無限期|长期有效|^无$|^無$|没有过期|なし|無し|期限なし|없음|영구|무제한|만료\s*(?:없|되지\s*않|안)""",
    re.IGNORECASE | re.VERBOSE)
_SLIDING = re.compile(
    r"""\bslid\w+|\brolling\b|\brefresh\w*|\brenew\w*|\bextend\w*|\bbump\w*|\btouch(?:ed|es)?\b|\breset\w*\s+(?:on|with|at|by|every|each)
    |\b(?:since|after|from)\s+(?:the\s+)?last\b|\bidle\b|\binactiv\w+|\bkeep-?alive|\bprolong\w*|\bon\s+(?:each|every)\s+(?:access|read|use|request|write)
    |滑动|滑動|续期|續期|续约|刷新|갱신|연장|更新のたび""", re.IGNORECASE | re.VERBOSE)
_MOST = re.compile(
    r"""\bat\s+most\b|\bup\s+to\b|\bmax(?:imum|\.)?\b|\bno\s+(?:more|longer)\s+than\b|\bnot\s+more\s+than\b|\bcapped\b|\bwithin\b
    |\bless\s+than\b|\bjitter\w*|±|≤|<=?|最多|最长|最長|不超过|不超過|以内|以內|최대|이내|이하|最大|\bhöchstens\b|\bmáximo\b|\bне\s+более\b""",
    re.IGNORECASE | re.VERBOSE)
_LEAST = re.compile(r"\bat\s+least\b|\bminimum\b|≥|>=|至少|최소", re.IGNORECASE)
_UNTIL = re.compile(
    r"""(?:\b(?:until|till|up\s+until)\s+|\bexpire?s?(?:at)?\s+at\s+|\bexpireat\s*|\bbis\s+|\bhasta\s+|\bjusqu['’]\w*\s+)(?P<after>.+)
    |(?P<alone>\b(?:at\s+)?midnight\b.*|\bend\s+of\s+(?:the\s+)?(?:day|hour|week|month|year|session)\b.*
    |\b(?:same\s+as|together\s+with|along\s+with|expires?\s+with|matches)\s+.+|(?:直到|截至|到).+|当天.*|當天.*|.+까지.*|.+まで.*)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL)
_COMMAND = re.compile(
    r"\b(?P<ms>px|pexpire|psetex)\b[\s(:=,]*(?P<milliseconds>\d+)\b"
    r"|\b(?:ex|expire|setex|ttl|expires?\s+in|expiry|timeout)\b[\s(:=,]*(?P<seconds>\d+)\b(?!\s*[\w*])", re.IGNORECASE)
_SOME = re.compile(
    r"""^\W*(?:yes|y|some|set|varies|variable|dynamic|custom|short|long|configur\w+|depends?\b.*|是|有|可配置|있음|설정.*|はい|да|ja|oui|sí)\W*$
    |\bconfigur\w+|\bsetting\b|\bvaries\b|\bvariable\b|\bdepend\w*|\bexpir(?:es|y|ing|ation)\b|\bttl\b|\bshort-?lived\b
    |\$\{?\w+|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\b\w+(?:\.\w+)*[._](?:ttl|expiry|expiration|timeout)\w*|过期|過期|만료|期限""",
    re.IGNORECASE | re.VERBOSE)
_RANGE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?\s*(?:-|–|—|to|~|至|到)\s*(?=\d)", re.IGNORECASE)
_SAME_SECONDS = 0.02


def parse_expiry(text: str) -> Expiry | None:
    """What a text says of when a key ends, or None if it says nothing of it.

    Reads what ``spell_expiry`` writes exactly, and beyond that the many ways of a table's cell or a half-sentence. A
    bare number counts seconds. Of several lengths the longest is a bound.
    """
    ours = _parse_ours(text)
    if ours is not None:
        return ours
    text = " ".join(text.replace("`", " ").replace("**", " ").split())
    if not text or not re.search(r"[\w∞±≤-]", text):
        return None
    lengths = _lengths(text)
    longest = max(lengths, default=None)
    none = _NONE.search(text)
    if none is not None:
        # "no TTL, deleted after a day by a job" has none; "1 h for guests, none for members" has either.
        before = longest is not None and _first(text) < none.start()
        return Expiry(Rule.NONE, longest if before else None)
    until = _UNTIL.search(text)
    if until is not None:
        words = (until["after"] or until["alone"]).strip(" .;,")
        if words and not (lengths and find_durations(words) and find_durations(words)[0].start == 0):
            return Expiry(Rule.UNTIL, longest, words)
    if longest is None:
        return Expiry(Rule.SOME, None, text) if _SOME.search(text) else None
    if longest == 0:
        return Expiry(Rule.NONE)
    if _SLIDING.search(text):
        return Expiry(Rule.SLIDING, longest)
    if _LEAST.search(text):
        return Expiry(Rule.SOME, None, text)
    several = longest - min(lengths) > longest * _SAME_SECONDS
    if several or _MOST.search(text) or _RANGE.search(text):
        return Expiry(Rule.AT_MOST, longest)
    return Expiry(Rule.EXACTLY, longest)


def spell_expiry(expiry: Expiry) -> str:
    """The expiry in words; ``parse_expiry`` gives the same again, except for words that look like these words."""
    length = "" if expiry.seconds is None else in_whole_units(expiry.seconds)
    if expiry.rule is Rule.UNTIL:
        return f"until {expiry.words or 'some instant'}" + (f", at most {length}" if length else "")
    said = {
        Rule.NONE: f"none, or at most {length}" if length else "none", Rule.EXACTLY: length or "some",
        Rule.AT_MOST: f"at most {length}" if length else "some",
        Rule.SLIDING: f"{length} sliding" if length else "some",
        Rule.SOME: f"at most {length}" if length else "some",
    }[expiry.rule]
    return f"{said} ({expiry.words})" if expiry.words else said


def judge_expiry(expiry: Expiry, seconds: float | None) -> str | None:
    """Why a remaining time (None: the key never expires) breaks the rule; None if it does not.

    The answer begins with ``no expiry``, ``expires`` (and must not) or ``too long``.
    """
    if expiry.rule is Rule.NONE:
        if seconds is None or (expiry.seconds is not None and seconds <= expiry.seconds + SLACK_SECONDS):
            return None
        if expiry.seconds is None:
            return f"expires in {in_one_unit(seconds)}, but must not expire"
    elif seconds is None:
        return f"no expiry, but it should be: {spell_expiry(expiry)}"
    if expiry.seconds is None or seconds is None or seconds <= expiry.seconds + SLACK_SECONDS:
        return None
    return f"too long: expires in {in_one_unit(seconds)}, but it should be: {spell_expiry(expiry)}"


def _parse_ours(text: str) -> Expiry | None:
    until = _OUR_UNTIL.fullmatch(text)
    if until is not None:
        length = _length(until["most"])
        if until["most"] is None or length is not None:
            return Expiry(Rule.UNTIL, length, until["words"])
        return Expiry(Rule.UNTIL, None, text.removeprefix("until "))
    found = _OURS.fullmatch(text)
    if found is None:
        return None
    words = found["words"] or ""
    if found["none"]:
        length = _length(found["or"])
        return Expiry(Rule.NONE, length, words) if found["or"] is None or length is not None else None
    if found["some"]:
        return Expiry(Rule.SOME, None, words)
    rule, spelled = next((rule, spelled) for rule, spelled in (
        (Rule.AT_MOST, found["most"]), (Rule.SLIDING, found["sliding"]), (Rule.EXACTLY, found["exactly"])) if spelled)
    length = _length(spelled)
    # Another length in parentheses says more than words do: 1 h (24 h for members).
    if length is None or any(duration.seconds != length for duration in find_durations(words)):
        return None
    return Expiry(rule, length, words)


def _length(spelled: str | None) -> float | None:
    found = None if spelled is None else _OUR_LENGTH.fullmatch(spelled)
    if found is None:
        return None
    try:
        seconds = float(found[1]) * _OUR_UNITS[found[2]]
    except ValueError:
        return None
    return round(seconds, 6) if found[2] == "ms" else seconds


def _lengths(text: str) -> list[float]:
    found = [duration.seconds for duration in find_durations(text)]
    for command in _COMMAND.finditer(text):
        found.append(int(command["milliseconds"]) / 1000 if command["ms"] else int(command["seconds"]))
    if not found:
        bare = re.fullmatch(r"(\d[\d_,]*)(?:\.0)?", _LABEL.sub("", text, count=1).strip(" ."))
        if bare is not None:
            found.append(float(bare[1].replace("_", "").replace(",", "")))
    return found


def _first(text: str) -> int:
    return min((duration.start for duration in find_durations(text)), default=len(text))

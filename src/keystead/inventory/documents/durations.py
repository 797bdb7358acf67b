"""Lengths of time and expiries as people write them: ``30 days``, ``PT15M``, ``60 * 60``, ``15 min sliding``."""

import re
from typing import Final

from keystead.inventory.models import Certainty, Expiry, Rule

from .vocabulary import AT_MOST, DITTO, NEVER, SLIDING, UNKNOWN, UNTIL

_UNITS: Final = (
    (
        0.001,
        r"ms|msecs?|millis(?:econds?)?|milliseconds?|毫秒|밀리초|ミリ秒|millisekunden?|milisegundos?|"
        r"millisecondes?|миллисекунд\w*",
    ),
    (1, r"s|secs?|seconds?|秒钟|秒|초|sekunden?|segundos?|secondes?|secondi|сек\w*|saniye|giây|detik"),
    (60, r"m|mins?|minutes?|分钟|分間|分|분|minuten?|minutos?|minuti|мин\w*|dakika|phút|menit"),
    (3600, r"h|hrs?|hours?|小时|時間|시간|时|stunden?|std|horas?|heures?|ore|час\w*|saat|giờ|jam"),
    (86400, r"d|days?|天|日間|日|일|tage?n?|días?|dias?|jours?|giorni|дн\w*|день|сут\w*|gün|ngày|hari"),
    (604800, r"w|weeks?|wks?|周|星期|週間|週|주일?|wochen?|semanas?|semaines?|settimane|недел\w*"),
    (2592000, r"mo|mos|months?|个月|ヶ月|か月|カ月|개월|月|monate?n?|mes(?:es)?|mois|mês|мес\w*"),
    (31536000, r"y|yrs?|years?|年間|年|년|jahre?n?|años?|anos?|ans?|год\w*|лет"),
)
_UNIT: Final = re.compile(
    "|".join(f"(?P<u{number}>(?:{words}))" for number, (_, words) in enumerate(_UNITS)), re.IGNORECASE
)
_NUMBER: Final = r"\d{1,3}(?:,\d{3})+|\d+(?:[.,]\d+)?"
_WORDS: Final = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "ten": 10,
    "twelve": 12,
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "sixty": 60,
    "ninety": 90,
    "half an": 0.5,
    "half a": 0.5,
    "eine": 1,
    "einer": 1,
    "einem": 1,
    "einen": 1,
    "ein": 1,
    "zwei": 2,
    "drei": 3,
    "fünf": 5,
    "sieben": 7,
    "zehn": 10,
    "una": 1,
    "un": 1,
    "dos": 2,
    "tres": 3,
    "cinco": 5,
    "siete": 7,
    "diez": 10,
    "une": 1,
    "deux": 2,
    "trois": 3,
    "cinq": 5,
    "um": 1,
    "uma": 1,
    "一": 1,
    "两": 2,
    "三": 3,
    "五": 5,
    "七": 7,
    "十": 10,
    "半": 0.5,
    "한": 1,
    "один": 1,
    "одна": 1,
}
_WORD: Final = "|".join(sorted(map(re.escape, _WORDS), key=len, reverse=True))
_ONE: Final = re.compile(
    rf"(?:(?<![\w.$%])|(?<=\d[hdmHDM]))(?P<number>{_NUMBER}|(?:{_WORD})(?=\W|[小分天日秒周个年月시]))\s*[-_.]?\s*"
    rf"(?P<unit>{_UNIT.pattern.replace('(?P<u', '(?P<x')})(?![A-Za-zÀ-ɏЀ-ӿ_(])",
    re.IGNORECASE,
)
_ISO: Final = re.compile(r"\bP(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?\b")
_PRODUCT: Final = re.compile(r"\d+(?:\s*[*x×]\s*\d+)+(?:\s*[*x×]\s*1000)?")
_GO: Final = re.compile(r"(?:(\d+)\s*\*\s*)?time\.(Millisecond|Second|Minute|Hour)(?:\s*\*\s*(\d+))?")
_CALL: Final = re.compile(
    r"(?:of|from|Duration\.|timedelta\(|ofs?)?(Millis|Seconds|Minutes|Hours|Days|"
    r"Weeks)\w*[(=]\s*(\d+)",
    re.IGNORECASE,
)
_TIME_UNIT: Final = re.compile(r"(\d+)\s*,?\s*TimeUnit\.(MILLISECONDS|SECONDS|MINUTES|HOURS|DAYS)")
_NAMED: Final = {"mill": 0.001, "seco": 1, "minu": 60, "hour": 3600, "days": 86400, "week": 604800}
_LONGEST: Final = 400


def durations(text: str) -> list[tuple[float, int, int]]:
    """Every length of time in the text: seconds, and where it begins and ends. ``1h 30m`` is one."""
    text = text[:_LONGEST]
    found: list[tuple[float, int, int]] = []
    for match in _GO.finditer(text):
        found.append((float(match[1] or match[3] or 1) * _NAMED[match[2][:4].lower()], match.start(), match.end()))
    for match in _TIME_UNIT.finditer(text):
        found.append((float(match[1]) * _NAMED[match[2][:4].lower()], match.start(), match.end()))
    for match in _CALL.finditer(text):
        found.append((float(match[2]) * _NAMED[match[1][:4].lower()], match.start(), match.end()))
    for match in _ISO.finditer(text):
        days, hours, minutes, seconds = (float(group or 0) for group in match.groups())
        if total := days * 86400 + hours * 3600 + minutes * 60 + seconds:
            found.append((total, match.start(), match.end()))
    taken = [(start, end) for _, start, end in found]
    for match in _ONE.finditer(text):
        if any(start < match.end() and match.start() < end for start, end in taken):
            continue
        seconds = _number(match["number"]) * _unit(match["unit"])
        before = found[-1] if found else None
        if (
            before
            and match.start() - before[2] <= 5
            and re.fullmatch(r"[\s,]*(?:and|und|y|et)?\s*", text[before[2] : match.start()])
            and _unit(match["unit"]) < before[0]
            and before[1] >= 0
            and seconds < before[0]
        ):
            found[-1] = (before[0] + seconds, before[1], match.end())
        else:
            found.append((seconds, match.start(), match.end()))
    return sorted(found, key=lambda each: each[1])


def duration(text: str) -> float | None:
    """The length of time that the text begins with or is about, in seconds; a bare product such as ``60*60`` counts."""
    every = durations(text)
    if every:
        return every[0][0]
    product = _PRODUCT.search(text)
    if product:
        total = 1.0
        for number in re.findall(r"\d+", product.group()):
            total *= int(number)
        return total / 1000 if re.search(r"\bms\b|milli", text) else total
    return None


def expiry(text: str, unit_seconds: float | None = 1) -> tuple[Expiry, Certainty] | None:
    """When a key ends, as the whole of a cell or of what follows ``TTL:`` says it; ``None`` if it says nothing.

    ``unit_seconds`` is what a bare number is counted in; ``None`` if a bare number says nothing.
    """
    words = " ".join(text.split()).strip(" .;,*_`")
    lowered = words.lower().strip("()[]*_` ")
    if not words or lowered in UNKNOWN or lowered in DITTO:
        return None
    if lowered in {"-", "—", "–", "--", "/", "0", "x"}:
        return Expiry(Rule.NONE, None, words), Certainty.GUESSED
    if lowered in NEVER:
        return Expiry(Rule.NONE), Certainty.STATED
    bare = re.fullmatch(rf"[~≈]?\s*({_NUMBER})", lowered)
    if bare and unit_seconds is not None:
        certainty = Certainty.STATED if unit_seconds != 1 else Certainty.IMPLIED
        return Expiry(Rule.EXACTLY, _number(bare[1]) * unit_seconds), certainty
    every = durations(words)
    if not every and (product := duration(words)):
        every = [(product, 0, len(words))]
    if not every:
        if any(
            lowered.startswith(
                (never + " ", never + "(", never + ",", never + "；", never + "（", never + ";", never + " -")
            )
            for never in NEVER
            if len(never) > 1
        ) and not re.match(r"(?:no|sans|sin|nie|mai)\s", lowered):
            return Expiry(Rule.NONE, None, words), Certainty.STATED
        if re.match(
            r"no (?:explicit |fixed |set )?(?:ttl|expir)|(?:does|do) not expire|never expire|"
            r"without (?:an? )?(?:ttl|expir)|kein|sin |sans ",
            lowered,
        ):
            return Expiry(Rule.NONE, None, words), Certainty.STATED
        if says(lowered, UNTIL):
            return Expiry(Rule.UNTIL, None, words), Certainty.STATED
        return Expiry(Rule.SOME, None, words), Certainty.STATED
    seconds, start, end = every[0]
    whole = re.fullmatch(r"[\s()~.]*", words[:start] + words[end:]) is not None
    if re.search(r"\w\s*\+\s*$", words[:start]) and not re.search(r"\d\s*\w{0,3}\s*\+\s*$", words[:start]):
        return Expiry(Rule.SOME, None, words), Certainty.STATED  # a setting, and so long more
    inside = _inside_parentheses(words, start)
    others = [each[0] for each in every[1:] if inside or not _inside_parentheses(words, each[1])]
    if says(lowered, SLIDING):
        rule = Rule.SLIDING
    elif re.search(r"\bafter (?:the|its|their|corresponding)\b.*\bexpire|\bafter expiry of\b", lowered):
        return Expiry(Rule.UNTIL, None, words), Certainty.STATED
    elif others and any(other != seconds for other in others):
        rule, seconds = Rule.AT_MOST, max([seconds, *others])
    elif (
        re.search(r"\d\s*[-–—~]\s*\d", words[:end])
        or says(lowered, AT_MOST)
        or lowered.startswith(("<", "≤", "~", "≈"))
    ):
        rule = Rule.AT_MOST
    elif says(lowered, ("until", "till", "直到", "까지", "まで", "bis zum", "hasta", "jusqu")) and not re.search(
        r"bis zu\b", lowered
    ):
        rule = Rule.UNTIL
    else:
        rule = Rule.EXACTLY
    return Expiry(rule, seconds, "" if whole else words), Certainty.STATED


def is_length(text: str) -> bool:
    """Whether the text is a length of time, or the word for none, and nothing more."""
    every = durations(text)
    rest = text[: every[0][1]] + text[every[0][2] :] if every else text
    return not rest.strip(" ()~.") if every else text.strip().lower() in NEVER


def says(text: str, phrases: tuple[str, ...]) -> bool:
    """Whether one of the phrases stands in the text (in lower case): Latin ones as whole words, others anywhere."""
    for phrase in phrases:
        at = text.find(phrase)
        while at >= 0:
            end = at + len(phrase)
            if (
                not phrase[0].isascii()
                or not phrase[0].isalnum()
                or (
                    (at == 0 or not text[at - 1].isalnum())
                    and (end == len(text) or not text[end].isalnum() or phrase[-1] in "-")
                )
            ):
                return True
            at = text.find(phrase, at + 1)
    return False


def _number(text: str) -> float:
    if text.lower() in _WORDS:
        return float(_WORDS[text.lower()])
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+", text):
        return float(text.replace(",", ""))
    return float(text.replace(",", "."))


def _unit(text: str) -> float:
    for seconds, words in _UNITS:
        if re.fullmatch(words, text, re.IGNORECASE):
            return seconds
    return 1


def _inside_parentheses(text: str, place: int) -> bool:
    before = text[:place]
    return before.count("(") + before.count("（") > before.count(")") + before.count("）")

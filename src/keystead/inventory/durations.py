# ruff: noqa: RUF001 - the words of several languages
"""Lengths of time as people and programs write them: ``30 min``, ``1h30m``, ``60 * 60``, ``PT15M``, ``24 小时``."""

import re
from dataclasses import dataclass

_UNITS: dict[float, str] = {
    0.001: "ms|msec|msecs|millis|millisecond|milliseconds|毫秒|밀리초|ミリ秒|миллисекунд",
    1: "s|sec|secs|second|seconds|秒|秒钟|秒鐘|초|"
       "sekunde|sekunden|seconde|secondes|segundo|segundos|секунд|секунды|секунда",
    60: "m|min|mins|minute|minutes|分|分钟|分鐘|分間|분|minuten|minuto|minutos|мин|минут|минуты|минута",
    3600: "h|hr|hrs|hour|hours|小时|小時|个小时|個小時|时|時間|"
          "시간|std|stunde|stunden|heure|heures|hora|horas|час|часа|часов",
    86400: "d|day|days|天|日|日間|일|tag|tage|tagen|jour|jours|día|días|dia|dias|день|дня|дней|сутки",
    7 * 86400: "w|wk|wks|week|weeks|周|週|週間|星期|주|"
               "주일|woche|wochen|semaine|semaines|semana|semanas|неделя|недели|недель",
    30 * 86400: "mo|month|months|个月|個月|月|ヶ月|か月|개월|"
                "달|monat|monate|mois|mes|meses|месяц|месяца|месяцев",
    365 * 86400: "y|yr|yrs|year|years|年|년|jahr|jahre|an|ans|año|años|год|года|лет",
}
_SECONDS = {name: seconds for seconds, names in _UNITS.items() for name in names.split("|")}
_WORDS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty-five": 45, "sixty": 60, "ninety": 90,
    "half an": 0.5, "half a": 0.5,
    "一": 1, "两": 2, "兩": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8,
    "九": 9, "十": 10, "十五": 15, "三十": 30, "半": 0.5, "한": 1, "두": 2, "세": 3,
}
_NUMBER = r"\d+(?:[_,]\d{3})+(?!\d)|\d+(?:\.\d+)?"
_NAMES = "|".join(re.escape(name) for name in sorted(_SECONDS, key=len, reverse=True))
_NUMBER_WORDS = "|".join(re.escape(word) for word in sorted(_WORDS, key=len, reverse=True))
# A unit of letters ends where its word ends; one of ideographs may be followed by anything.
_UNIT = rf"(?:{_NAMES})(?:(?<=[^\x00-\x7f])|(?![a-z_]))"
_PRODUCT = rf"(?:{_NUMBER})(?:\s*[*×x]\s*(?:{_NUMBER}))+"
_AMOUNT = re.compile(
    rf"(?P<iso>(?<![a-z0-9])P(?=[\dT])(?:\d+Y)?(?:\d+M)?(?:\d+W)?(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+S)?)?(?![a-z0-9]))"
    rf"|(?:(?P<factor>{_PRODUCT}|{_NUMBER})\s*\*\s*)?(?:time\.|Duration\.of|TimeUnit\.)"
    rf"(?P<code>millisecond|second|minute|hour|day)s?\b(?:\((?P<inside>\d+)\)|\s*\*\s*(?P<times>{_NUMBER}))?"
    rf"|(?P<delta>(?:days|hours|minutes|seconds|weeks)\s*=\s*(?:{_NUMBER}))"
    rf"|(?:(?<![\w.])|(?<=\d[wdhms]))(?P<number>{_PRODUCT}|{_NUMBER})[\s-]*(?P<unit>{_UNIT})"
    rf"|(?<![\w.])(?P<bare>{_PRODUCT})(?!\s*[\w*])"
    rf"|(?<![a-z])(?P<word>{_NUMBER_WORDS})(?:[\s-]+|(?<=[^\x00-\x7f]))(?P<word_unit>{_UNIT})"
    rf"|(?<![a-z])(?P<daily>daily|weekly|hourly)(?![a-z])|(?P<whole>하루|일주일|한달|半天)",
    re.IGNORECASE,
)
_ISO = re.compile(r"(\d+)([YMWDHS])", re.IGNORECASE)
_ALONE = {"daily": 86400, "weekly": 7 * 86400, "hourly": 3600, "하루": 86400, "일주일": 7 * 86400, "한달": 30 * 86400,
          "半天": 43200}
_TOGETHER = re.compile(r"\s*(?:,|and|und|et|y|e)?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time, and where in a text it stands."""

    seconds: float
    start: int
    end: int


def find_durations(text: str) -> list[Duration]:
    """Every length of time in a text that has a unit or is a product such as ``60 * 60``.

    What follows at once in smaller units belongs to the same one: ``1 h 30 min``. A number alone is none.
    """
    found: list[Duration] = []
    smallest = 0.0
    for amount in _AMOUNT.finditer(text):
        seconds, unit = _seconds(amount)
        if seconds <= 0:
            continue
        together = found and unit < smallest and _TOGETHER.fullmatch(text[found[-1].end : amount.start()])
        if together:
            found[-1] = Duration(_exact(found[-1].seconds + seconds), found[-1].start, amount.end())
        else:
            found.append(Duration(_exact(seconds), amount.start(), amount.end()))
        smallest = unit
    return found


def _seconds(amount: "re.Match[str]") -> tuple[float, float]:
    """The length of one find, and of its unit."""
    if amount["iso"]:
        return _iso(amount["iso"]), 1
    if amount["code"]:
        unit = _SECONDS[amount["code"].lower()]
        return _product(amount["factor"] or amount["inside"] or amount["times"] or "1") * unit, unit
    if amount["delta"]:
        name, _, number = amount["delta"].partition("=")
        unit = _SECONDS[name.strip().lower()]
        return _product(number) * unit, unit
    if amount["number"]:
        unit = _SECONDS[amount["unit"].lower()]
        return _product(amount["number"]) * unit, unit
    if amount["bare"]:
        return _product(amount["bare"]), 1
    if amount["word"]:
        unit = _SECONDS[amount["word_unit"].lower()]
        return _WORDS[amount["word"].lower()] * unit, unit
    return _ALONE[(amount["daily"] or amount["whole"]).lower()], 0


def _iso(text: str) -> float:
    days, _, clock = text.upper()[1:].partition("T")
    long = {"Y": 365 * 86400, "M": 30 * 86400, "W": 7 * 86400, "D": 86400}
    short = {"H": 3600, "M": 60, "S": 1}
    return float(sum(int(number) * long.get(unit, 0) for number, unit in _ISO.findall(days))
                 + sum(int(number) * short.get(unit, 0) for number, unit in _ISO.findall(clock)))


def _product(text: str) -> float:
    result = 1.0
    for factor in re.findall(_NUMBER, text):
        result *= float(factor.replace("_", "").replace(",", ""))
    return result


def _exact(seconds: float) -> float:
    return int(seconds) if seconds == seconds // 1 else seconds

"""The keys that a text begins with: those in front of what is said about them."""

import re
from dataclasses import dataclass
from typing import Final

from .blocks import Text
from .tokens import Likeness, is_setting, likeness

_DECORATION: Final = (
    r"[\s>•·▪◦✓✔☐☑\-]*(?:\[[ x]\]\s*)?(?:\d{1,2}[.)]\s+)?(?:(?:K|C|Key|Channel|Redis key|键|키|"
    r"キー)\s*[:：]?\s+)?"
)
_CODED: Final = re.compile(_DECORATION + r"\x05?\x01(?P<token>[^\x02]+)\x02\x06?")
_STRONG: Final = re.compile(_DECORATION + r"\x05(?P<token>[^\x06]+)\x06")
_NEXT: Final = re.compile(
    r"\s*(?:,|/|\||、|，|;|&|\+|~|(?:,\s*)?\b(?:and|or|und|oder|y|o|et|ou|e)\b|和|及|或|と|및|"
    r"또는|<br>|\n)?\s*\x05?\x01(?P<token>[^\x02]+)\x02\x06?"
)
_BARE: Final = re.compile(_DECORATION + r"(?P<token>(?:<[^<>\n]{1,60}>|\$?\{[^{}\n]*\}|[^\s<{,;（(\x01-\x06])+)")
_LABELLED: Final = re.compile(
    r"(?P<label>[^\x01\n.]{1,60}?)\s*(?:[:：=→|]|->|=>|\s[-–—]|[(（]|\bin\b|\bat\b|"
    r"\bunder\b)\s*\x06?\s*\x01(?P<token>[^\x02]+)\x02"
)
_TYPED: Final = re.compile(
    r"\W*(?:an? |the )?(?P<type>sorted set|zset|hash|list|set|string|stream|hyperloglog|bitmap|counter|"
    r"channel)s?:?\s+\x01(?P<token>[^\x02]+)\x02",
    re.IGNORECASE,
)
_RELATIVE: Final = re.compile(r"(?:…|\.{2,3})?[:|][\w{<*$]\S*|(?:…|\.{2,3}):?[\w{<]\S*")
_AFTER: Final = re.compile(r"[\s:：,.)\]】*]*(?:[-–—→=]+>?|⇒)?\s*")
_EXAMPLE: Final = re.compile(
    r"(?:\be\.?g\.?|\bexample|\bfor instance|\bsuch as|\bex[:.]|例|예|z\. ?B|\bp\. ?ej|"
    r"\blike)[\s:,.：]*(?:\x05|\x06)?\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Head:
    """Keys in front of a text. ``likeness`` is that of the first; ``rest`` what follows them."""

    spellings: tuple[str, ...]
    likeness: Likeness
    rest: Text
    label: str = ""
    coded: bool = True


def head_of(text: Text) -> Head | None:
    """The keys that the text begins with, or ``None``. Words that may be anything are heads too: see ``likeness``."""
    raw = text.raw
    found = _CODED.match(raw)
    if found:
        token = _clean(found["token"])
        much = Likeness.WORD if is_relative(token) else likeness(token)
        if much is Likeness.NOT or (much is Likeness.WORD and is_setting(token)):
            return _labelled(text)
        spellings, end = _more(raw, found.end(), [token])
        return Head(tuple(spellings), much, _rest(text, end))
    found = _STRONG.match(raw)
    if found:
        token = _clean(found["token"].rstrip(":： "))
        much = likeness(token)
        if much >= Likeness.LIKELY:
            return Head((token,), much, _rest(text, found.end()))
        return _labelled(text)
    labelled = _labelled(text)
    if labelled is not None:
        return labelled
    typed = _TYPED.match(raw)
    if typed and likeness(_clean(typed["token"])) >= Likeness.WORD:
        rest = Text(f"{typed['type']}, {raw[typed.end() :].lstrip(' :,-')}", text.line)
        return Head((_clean(typed["token"]),), Likeness.LIKELY, rest)
    found = _BARE.match(raw)
    if not found:
        return None
    token = _clean(found["token"])
    after = raw[found.end() :]
    if token.endswith(":") and re.match(r"\s|$", after):
        token = token[:-1]
    token = token.rstrip(".")
    much = likeness(token)
    if (
        much < Likeness.LIKELY
        or not re.match(r"\s*$|\s*[-–—:：→=|(（\[,#]|\s{2,}|\t|\s+\w", after)
        or is_setting(token)
    ):
        return None
    if much is Likeness.LIKELY and not re.match(
        r"\s*$|\s*(?:[-–—→=|(（\[#]|->|:)|\s{2,}|\s+(?:is|goes|holds|stores|"
        r"a|an|used)\b",
        after,
    ):
        return None
    return Head((token,), much, _rest(text, found.end()), coded=False)


def is_relative(token: str) -> bool:
    """Whether a spelling only goes on from another one: ``:earliest``, ``…:extra:{event}``."""
    return _RELATIVE.fullmatch(token) is not None and not re.fullmatch(
        r":\w+:|\.{3}|\.\w+|\.\./.*|\./.*|\.\w*/.*", token
    )


def is_example(raw: str, start: int) -> bool:
    """Whether what begins at ``start`` is announced as an example."""
    return (
        _EXAMPLE.search(raw[:start]) is not None
        or re.search(r"[(（]\s*(?:e\.?g|ex|例|예)[^)）]*$", raw[:start], re.IGNORECASE) is not None
    )


def _labelled(text: Text) -> Head | None:
    """A short label and then the key: ``Session cache: `session:{id}` ``."""
    found = _LABELLED.match(text.raw)
    if not found or is_example(text.raw, found.start("token") - 1):
        return None
    token = _clean(found["token"])
    much = likeness(token)
    label = re.sub(r"[\x01-\x06]", "", found["label"]).strip(" -*•")
    if much < Likeness.LIKELY or len(label.split()) > 7 or re.search(r"[({]\s*$", label):
        return None
    if re.search(r"[(（]\s*$", text.raw[: found.start("token") - 1]) and not re.match(
        r"[)）]", text.raw[found.end() :]
    ):
        return None
    spellings, end = _more(text.raw, found.end(), [token])
    return Head(tuple(spellings), much, _rest(text, end), label)


def _more(raw: str, end: int, spellings: list[str]) -> tuple[list[str], int]:
    """Further keys right after the first, with nothing but a comma or an "and" between them."""
    while found := _NEXT.match(raw, end):
        token = _clean(found["token"])
        between = raw[end : found.start("token") - 1].strip(" \x05\x06")
        much = likeness(token)
        relative = is_relative(token)
        if not relative and (much < Likeness.LIKELY or (not between and much < Likeness.PLAIN)):
            break
        spellings.append(token)
        end = found.end()
    return spellings, end


def _rest(text: Text, end: int) -> Text:
    skipped = _AFTER.match(text.raw, end)
    return text.after(skipped.end() if skipped else end)


def _clean(token: str) -> str:
    return token.strip().strip("`'\"").strip()

"""Who writes and reads a key, and whether it holds data of persons, from cells and sentences."""

import re
from typing import Final

from keystead.inventory.models import Certainty

from .blocks import CODE_OFF, CODE_ON, LINK_OFF, LINK_ON, Text
from .vocabulary import NO, UNKNOWN, YES

_STOP: Final = (
    r"(?=[.;)\n]|,? (?:(?:and|und|y|et) )?(?:then )?(?:is |are )?(?:read|written|set|consumed|deleted|used|"
    r"expire|gelesen)|$)"
)
_WHO: Final = rf"(?P<who>[^.;)\n]{{2,80}}?(?:\.(?:py|go|js|ts|java|rb|php|rs|ex|kt|cs)\b[^.;)\n]{{0,30}}?)?){_STOP}"
_WRITTEN: Final = re.compile(
    r"\b(?:set|written|created|updated|populated|published|pushed|filled|emitted|incremented|maintained|added|"
    r"produced) (?:only |exclusively )?by\s+(?:the\s+)?" + _WHO,
    re.IGNORECASE,
)
_READ: Final = re.compile(
    r"\b(?:read|consumed|popped|subscribed|polled|drained|scanned regularly|scanned) (?:only |"
    r"exclusively )?by\s+(?:the\s+)?" + _WHO,
    re.IGNORECASE,
)
_FOREIGN: Final = (
    ("w", re.compile(r"(?:由|被)\s*(?P<who>[\w./:-]{2,40})\s*(?:写入|设置|更新|发布)")),
    ("r", re.compile(r"(?:由|被)\s*(?P<who>[\w./:-]{2,40})\s*(?:读取|消费|订阅)")),
    ("w", re.compile(r"(?P<who>[\w./:-]{2,40})\s*(?:가|이|에서)\s*(?:쓰고|기록|발행|저장)")),
    ("r", re.compile(r"(?P<who>[\w./:-]{2,40})\s*(?:가|이|에서)\s*(?:읽|구독|조회|소비)")),
    ("w", re.compile(r"(?P<who>[\w./:-]{2,40})\s*が\s*(?:書き込|更新|発行)")),
    ("r", re.compile(r"(?P<who>[\w./:-]{2,40})\s*が\s*(?:読み|参照|購読)")),
    (
        "w",
        re.compile(
            r"(?:geschrieben|gesetzt|aktualisiert) von (?:der |dem |"
            r"den )?(?P<who>[\w./: -]{2,40}?)(?=[.,;)]|$)",
            re.IGNORECASE,
        ),
    ),
    ("r", re.compile(r"gelesen von (?:der |dem |den )?(?P<who>[\w./: -]{2,40}?)(?=[.,;)]|$)", re.IGNORECASE)),
    (
        "w",
        re.compile(
            r"(?:escrit[oa]|publicad[oa]|actualizad[oa]) por (?:el |"
            r"la )?(?P<who>[\w./: -]{2,40}?)(?=[.,;)]|$)",
            re.IGNORECASE,
        ),
    ),
    (
        "r",
        re.compile(r"(?:leíd[oa]|consumid[oa]) por (?:el |la )?(?P<who>[\w./: -]{2,40}?)(?=[.,;)]|$)", re.IGNORECASE),
    ),
)
_PERSONAL: Final = re.compile(
    r"\bpii\b|\bpersonal(?:ly identifiable)? (?:data|information)\b|\bgdpr\b|个人信息|个人数据|敏感信息|개인\s?정보|"
    r"個人情報|personenbezogen|\bdsgvo\b|datos personales|"
    r"données personnelles|\brgpd\b|dados pessoais|персональные данные",
    re.IGNORECASE,
)
_DENIED: Final = re.compile(
    r"\b(?:no|not|never|without|kein\w*|sin|sans|sem|без|nicht)\b[^.]{0,30}$|(?:不含|无|"
    r"没有|なし|없)\S{0,6}$|\b(?:free of)\s*$",
    re.IGNORECASE,
)
_DENIED_AFTER: Final = re.compile(
    r"^[^.]{0,12}(?:\bno\b|\bnone\b|: ?-|なし|含まない|없음|不含|не содержит)", re.IGNORECASE
)
PERSONAL_VARIABLES: Final = re.compile(
    r"(?:^|_)(?:email|mail|phone|mobile|msisdn|ip|ip_address|ssn|phone_number|"
    r"client_ip|remote_ip|username)$"
)


def people_of_cell(text: Text) -> tuple[str, ...]:
    """The names that a cell lists, each as it stands there."""
    plain = text.plain
    if not plain or plain.lower() in UNKNOWN or plain in {"-", "—", "–"}:
        return ()
    parts = re.split(r"\s*(?:[,;、，；]|\s/\s|\band\b|\bund\b|\n)\s*(?![^()]*\))", plain)
    return tuple(dict.fromkeys(part.strip(" `*") for part in parts if part.strip(" `*")))


def people_of_prose(text: Text) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Writers and readers that sentences name outright."""
    raw = text.raw.replace(CODE_ON, "").replace(CODE_OFF, "").replace("\n", " ")
    raw = re.sub(
        rf"\b(?:here|details){LINK_ON}([^{LINK_OFF}]*){LINK_OFF}", lambda found: found[1].replace("../", ""), raw
    )
    raw = re.sub(rf"{LINK_ON}[^{LINK_OFF}]*{LINK_OFF}|[\x05\x06]", "", raw)[:2000]
    writers = [name for found in _WRITTEN.finditer(raw) for name in _names(found["who"])]
    readers = [name for found in _READ.finditer(raw) for name in _names(found["who"])]
    for side, expression in _FOREIGN:
        for found in expression.finditer(raw):
            (writers if side == "w" else readers).extend(_names(found["who"]))
    return tuple(dict.fromkeys(writers)), tuple(dict.fromkeys(readers))


def personal_of_cell(text: str) -> tuple[bool, Certainty] | None:
    """What a cell under a heading such as "Contains PII?" answers, or ``None`` if it does not."""
    words = text.strip().strip("*_").strip()
    first = re.split(r"[\s(（,;:.]", words.lower(), maxsplit=1)[0].strip("*_")
    if not words or words.lower() in UNKNOWN:
        return None
    if words.lower() in NO or first in NO:
        return False, Certainty.STATED
    if words.lower() in YES or first in YES:
        return True, Certainty.STATED
    return (
        (True, Certainty.IMPLIED)
        if re.search(r"\b(?:email|phone|name|address|ip|jwt|token|user)\b", words.lower())
        else None
    )


def personal_of_prose(text: str) -> tuple[bool, str] | None:
    """Whether sentences say that the key holds data of persons or that it does not."""
    found = _PERSONAL.search(text)
    if not found:
        return None
    denied = _DENIED.search(text[: found.start()]) or _DENIED_AFTER.search(text[found.end() :])
    return denied is None, found.group()


def _names(who: str) -> list[str]:
    """Names of programs in a phrase; a phrase that reads as a sentence is none."""
    names = []
    for part in re.split(r",\s*(?:and\s+)?|\s+and\s+|\s+or\s+", who.strip()):
        part = re.sub(r"^(?:the|a|an|our|each|every)\s+", "", part.strip(" `'\""))
        if (
            1 < len(part) <= 60
            and len(part.split()) <= 5
            and not re.match(
                r"(?:\d|incr|using|when|if|one|us|which|"
                r"ascending|descending)\b",
                part,
            )
        ):
            names.append(part)
    return names

"""When a key ends, from sentences that describe it."""

import re
from typing import Final

from keystead.inventory.models import Certainty, Expiry, Rule

from .durations import durations, expiry, says
from .vocabulary import EXPIRY_WORDS

Said = tuple[Expiry, Certainty, str]

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z(`\x01])|(?<=[。！？；])|\n\s*\n|;\s")
_LABEL: Final = re.compile(
    r"(?:^|[\s(\[,;|/·（，。])(?:(?:default|max|cache)\s+)?"
    r"(?:ttl|expiry|expiration|expires|expire|lifetime|retention|过期时间|有效期|过期|만료(?:\s*시간)?|유효\s*기간|"
    r"有効期限|ablauf|gültigkeit|lebensdauer|caducidad|expiración|vencimiento|"
    r"expira|durée de vie|validade|expiração|срок жизни|время жизни)"
    r"\s*(?:\([^)]*\))?\s*(?:is|of|matches|:|=|：|为|是|은|는|は|→|->|~|≈|(?=\d))\s*(?P<value>[^.;。；\n]{1,80})",
    re.IGNORECASE,
)
_BEFORE: Final = re.compile(
    r"(?P<value>(?:\d[\d,.]*|\ban?|\bone|\bhalf an)[\s-]*[a-zà-ÿ가-힣一-鿿]{1,12})[\s-]*(?:\w+[\s-]){0,2}?(?:ttl|"
    r"expir\w*|lifetime|retention|expiry)\b",
    re.IGNORECASE,
)
_SUBJECT: Final = re.compile(
    r"(?:^|[.;,(—–:-]\s*|\b(?:it|this|these|they|keys?|entry|entries|always|automatically|which|and|will|auto|"
    r"records?|values?|cache|session|to|"
    r"then|are|is|key's|lock|each|all|that|has|have|with|an?|the|short|ttl|its|basic)\s+)(?:\w+[\s-]){0,2}$",
    re.IGNORECASE,
)
_OTHERS: Final = re.compile(
    r"\b(?:scores?|tokens?|jwts?|codes?|fields?|when those|whether|entitlement\w*|"
    r"subscriptions?|cookie|otp|link|if)\b[^.]{0,60}$",
    re.IGNORECASE,
)
_NEVER: Final = re.compile(
    r"\b(?:never expires?|(?:does|do|did|will|should|must)(?:n't| not)(?: ever)? expire|no (?:explicit |fixed |"
    r"set )?(?:ttl|expir(?:y|ation|e))|without (?:an? )?(?:ttl|expir\w+)|"
    r"has no (?:ttl|expir\w+)|not? expire[sd]?\b|(?:is |are )?persistent|kept forever|lives forever)|永不过期|"
    r"不过期|无过期|永久|만료\s*(?:되지|없)|無期限|期限なし|läuft nie ab|läuft nicht ab|"
    r"verfällt nie|no (?:caduca|expira|vence)|sin (?:caducidad|expiración)|n'expire (?:pas|jamais)|não expira|"
    r"не истекает|бессрочно",
    re.IGNORECASE,
)
_RESTART: Final = re.compile(r"\bwith less than\s+(?P<value>[\w\s]{2,20}?)\s+between\b", re.IGNORECASE)


def expiry_of_prose(text: str) -> Said | None:
    """What sentences about a key say of when it ends, or ``None``."""
    flat = " ".join(text.split())[:2500]
    label = _LABEL.search(flat)
    if label:
        value = re.split(r"[,，)）]\s*(?![^()]*\))|\s\|\s", label["value"])[0]
        said = expiry(value)
        if said and (said[0].rule is not Rule.SOME or len(value.split()) <= 5):
            return said[0], said[1], label.group().strip(" ([,;|")
    restart = _RESTART.search(flat)
    if restart and re.search(r"\bexpir", flat) and (length := durations(restart["value"])):
        return Expiry(Rule.SLIDING, length[0][0], restart.group()), Certainty.IMPLIED, restart.group()
    some: Said | None = None
    for sentence in _SENTENCE.split(flat):
        lowered = sentence.lower()
        if not says(lowered, EXPIRY_WORDS):
            continue
        if _NEVER.search(sentence):
            return Expiry(Rule.NONE, None, sentence.strip()[:120]), Certainty.STATED, sentence.strip()
        sentence_says = _of_sentence(sentence)
        if sentence_says is None:
            continue
        if sentence_says[0].rule is not Rule.SOME:
            return sentence_says
        some = some or sentence_says
    return some or _of_fragments(flat) or _of_mention(flat)


def _of_sentence(sentence: str) -> Said | None:
    words = sentence.strip()
    before = _BEFORE.search(sentence)
    if before and durations(before["value"]):
        said = expiry(before["value"])
        if said:
            rest = expiry(before.group() + " " + sentence[before.end() : before.end() + 80])
            chosen = rest if rest and rest[0].rule is Rule.SLIDING else said
            return Expiry(chosen[0].rule, chosen[0].seconds, words[:120]), Certainty.STATED, words
    for trigger in re.finditer(
        "|".join(re.escape(word) for word in sorted(EXPIRY_WORDS, key=len, reverse=True) if word != "ex"),
        sentence,
        re.IGNORECASE,
    ):
        latin = trigger.group().isascii()
        ahead = sentence[trigger.end() : trigger.end() + 140]
        if latin:
            if (
                (trigger.start() and sentence[trigger.start() - 1] in "_-.")
                or ahead[:1] in ("_",)
                or (re.match(r"\w", ahead) and trigger.group().lower() in {"ttl", "lasts", "dura", "expira"})
            ):
                continue
            back = sentence[: trigger.start()]
            if not _SUBJECT.search(back[-60:]) or (
                _OTHERS.search(back[-70:])
                and not re.search(
                    r"\b(?:set to|"
                    r"always|key|ttl)\b",
                    back[-70:],
                    re.IGNORECASE,
                )
            ):
                continue
        said = _after(ahead, sentence, latin)
        if said:
            return said[0], said[1], words
    if not re.search(
        r"\b(?:set to (?:automatically )?expire|expiring key|short(?:-lived)? (?:expir\w+|cache)|"
        r"has an? (?:short )?expir\w+|automatically expires?)",
        sentence,
        re.IGNORECASE,
    ):
        return None
    return Expiry(Rule.SOME, None, words[:120]), Certainty.STATED, words


def _after(ahead: str, sentence: str, latin: bool) -> tuple[Expiry, Certainty] | None:
    words = sentence.strip()[:120]
    clause = re.split(r"[.;]\s|$", ahead, maxsplit=1)[0]
    if (
        re.match(r"\s*(?:\w+\s+){0,4}?(?:after|in|at)?\s*[\w\s]{0,12}after (?:the|its|a)\b[^.]*\bexpir", clause)
        or re.match(r"\s*(?:(?:set )?to )?(?:when|once|with|around when|as soon as)\b", clause)
        or (re.match(r"\s*after (?:the|a)\b", clause) and not durations(clause[:40]))
    ):
        return Expiry(Rule.UNTIL, None, words), Certainty.STATED
    found = durations(clause[:90]) or ([] if latin else durations(sentence))
    if found:
        near = clause[: found[0][2] + 60] if latin or durations(clause[:90]) else sentence
        said = expiry(near)
        if said and said[0].seconds is not None:
            return Expiry(said[0].rule, said[0].seconds, words), Certainty.STATED
    if re.match(r"\s*(?:set )?(?:to )?(?:the )?(?:threshold|minimum|longest)", clause) or re.match(
        r"\s*(?:time|"
        r"set)\b",
        clause,
    ):
        return Expiry(Rule.SOME, None, words), Certainty.STATED
    return None


def _of_mention(flat: str) -> Said | None:
    """Words that say that there is an end, and nothing of when: ``(TTL)``, ``with a small TTL``."""
    found = re.search(
        r"\(TTL\b[^)]{0,60}\)|\b(?:with|has|have|by)\s+(?:an?\s+)?(?:\w+\s+)?TTL\b[^.;)]{0,40}|\b(?:short|small|"
        r"long)\s+TTL\b|,\s*TTL\)|\bTTL-backed\b",
        flat,
        re.IGNORECASE,
    )
    return (Expiry(Rule.SOME, None, found.group()), Certainty.IMPLIED, found.group()) if found else None


def _of_fragments(flat: str) -> Said | None:
    """A length of time that stands alone between commas or brackets near the beginning: ``hash, 24h, profile``."""
    for fragment in re.split(r"[,;|·()\[\]，；（）、]|\s[-–—]\s|\.\s|。", flat[:200])[:8]:
        piece = fragment.strip(" .*_`")
        every = durations(piece)
        if (
            every
            and len(every) == 1
            and not re.sub(r"^(?:ex|px|for|~)\s*", "", (piece[: every[0][1]] + piece[every[0][2] :]).strip().lower())
        ):
            return Expiry(Rule.EXACTLY, every[0][0]), Certainty.IMPLIED, piece
    held = re.search(
        r"\b(?:lock|lease|cache|flag|marker|hold|sperre|bloqueo)\w*\s+(?:of|for|von|für|"
        r"de)\s+(?P<value>\d+\s*\w+)",
        flat[:200],
        re.IGNORECASE,
    )
    if held and (length := durations(held["value"])):
        return Expiry(Rule.EXACTLY, length[0][0]), Certainty.IMPLIED, held.group()
    found = re.search(r"\bEX\s+(\d+)\b", flat)
    return (Expiry(Rule.EXACTLY, float(found[1])), Certainty.IMPLIED, found.group()) if found else None

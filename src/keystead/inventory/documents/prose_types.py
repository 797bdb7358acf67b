"""The type of a key, from a cell that names it or from sentences that describe it."""

import re
from typing import Final

from keystead.inventory.models import Certainty

from .durations import says
from .vocabulary import COMMAND_TYPES, TYPE_NAMES

Said = tuple[str, Certainty, str]  # the type, how sure, and the words

_CONTAINERS: Final = ("zset", "geo", "stream", "hyperloglog", "bitmap", "hash", "list", "set")
_LATIN: Final = re.compile(r"[a-zà-ɏ0-9]", re.IGNORECASE)

# Nouns that mean a type when a sentence says that the key goes to one, is one, holds one.
_NOUNS: Final = (
    ("channel", r"pub[/ -]?sub channel|channel"),
    ("zset", r"sorted[ -]sets?|zsets?|ssets?|ordered sets?"),
    ("geo", r"geo(?:spatial)? (?:index|set)|geo set"),
    ("stream", r"streams?"),
    ("hyperloglog", r"hyperloglogs?|hll"),
    ("bitmap", r"bitmaps?|bit ?sets?"),
    ("hash", r"hash ?maps?|hashes|hash(?: table)?"),
    ("list", r"lists?|queue|fifo"),
    ("set", r"sets?"),
    (
        "json",
        r"(?:trivial |special |compressed )?json(?:ified)?(?: (?:string|object|document|blob|array|encoding|"
        r"serialization|representation|payload)s?)?"
        r"|jsonified \w+",
    ),
    ("integer", r"integers?|counters?|numbers?|count|(?:unix )?timestamps?|unix (?:date|month|time)|time in seconds"),
    ("lock", r"(?:redis |distributed |advisory )?locks?(?: key)?|mutex|semaphore"),
    ("flag", r"flags?|booleans?|markers?"),
    ("float", r"floats?"),
    ("string", r"strings?|text|url|uid|value|token|time"),
)
_ADJECTIVES: Final = (
    r"(?:(?:a|an|the|its|one|either|empty|key|or|redis|valkey|plain|simple|basic|single|capped|"
    r"native|regular|small|large|global|"
    r"standard|short-lived|cached|per-\w+|shared|trimmed|circular|fifo|lifo|monotonic|atomic|text|"
    r"special|trivial|binary|"
    r"compressed|serialized|encoded|ordered)[ ,]+)*"
)
_SERIAL: Final = r"(?:trivial |special )?(?:json[- ])?(?:serialization|serialisation|encoding|representation)"
_OBJECT: Final = re.compile(
    _ADJECTIVES + "(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _NOUNS) + r")\b", re.IGNORECASE
)
_GOES: Final = re.compile(r"\b(?:goes|go|points?|maps?|resolves?) to\b", re.IGNORECASE)
_VALUES: Final = re.compile(r"\b(?:the )?values (?:are|is)\b", re.IGNORECASE)
_IS: Final = re.compile(
    r"(?:^|[.;:(—–-]\s*|\b(?:which|key|it|this|that|these|and)\s+)\s*(?:is|are|acts as|stored as|stored in|stores|"
    r"holds|contains|keeps|uses|as)?\s*"
    r"(?=(?:an?|the|one|redis|plain|simple|basic|sorted|json)\b)",
    re.IGNORECASE,
)
_STORED: Final = re.compile(
    r"\b(?:stored|kept|held|saved|implemented|modell?ed|represented|cached|backed|buffered|written|pushed|"
    r"gespeichert|guardado)\s+"
    r"(?:as|in|into|on|by|onto|to|como|en|als)\b",
    re.IGNORECASE,
)
_OF: Final = re.compile(
    r"\b(?P<zset>sorted set|zset)\b|\b(?:a|an|the|redis|as|in|into|one|each|per[- ]\w+|this|"
    r"capped|small)\s+(?P<kind>hash|set|list|stream|bitmap)\b"
    r"|\b(?P<bare>hash|set|list|queue|stream)\s+(?:of|containing|where|with the|keyed by|"
    r"mapping|holding|with fields)\b"
    r"|(?:^|[(\[/,;]\s*)(?P<short>hash|set|list|zset|stream|string|hll|counter|"
    r"bitmap)\b\s*(?=[)\],;:/.—–-]|$)",
    re.IGNORECASE,
)
_NOT_TYPES: Final = re.compile(
    r"\b(?:password|content|commit|url|sha\w*|md5|job|file|git|image|query|config|of the|"
    r"payload|ip|email)\s+hash(?:es)?\b"
    r"|\bhash(?:es)? of (?:the|a|an|each)?\s*\w+\b(?! that)",
    re.IGNORECASE,
)
# A type in the spelling of the server, which no sentence has for anything else.
_WRITTEN: Final = re.compile(r"(?<![A-Za-z_])(?:HASH|ZSET|ZSet|SortedSet|LIST|STRING|STREAM|SET(?= of\b))(?![A-Za-z_])")
_WRITTEN_AMONG_OTHERS: Final = re.compile(
    r"(?<![A-Za-z_])(?:Hash|hash|zset|List|list|String|string|Stream|Set)(?![A-Za-z_])"
)
_IMPLIED: Final = (
    (
        "integer",
        re.compile(
            r"\bcounters?\b|\bgoes to the (?:(?:total |running )?(?:number|count)|earliest|latest|"
            r"current|last|next|unix)\b|\bincremented\b|\bcount(?:er|s)?\b (?:of|for|how)"
            r"|\bhow many\b|计数|计数器|카운트|횟수|回数|カウント|zählt|anzahl der|contador|cuenta",
            re.IGNORECASE,
        ),
    ),
    (
        "lock",
        re.compile(
            r"\b(?:used as a |basic |distributed |simple |leader[- ]election |acts as a )lock\b|"
            r"\block (?:that|to|on|for|which)\b|\bmutex\b|分布式锁|防并发|락\b|잠금|排他|ロック"
            r"|sperre|bloqueo|verrou|блокировк",
            re.IGNORECASE,
        ),
    ),
    ("string", re.compile(r"\bgoes to (?:the|a|an|'|\"|either)\b|\bgoes to ['\"]?1['\"]?\b", re.IGNORECASE)),
    (
        "list",
        re.compile(
            r"\b(?:fifo|work queue|job queue|task queue|ready queue)\b|待处理队列|대기열|作業キュー", re.IGNORECASE
        ),
    ),
    ("json", re.compile(r"\bjson\b", re.IGNORECASE)),
)


def type_of_cell(text: str) -> Said | None:
    """The type that a cell, or what follows ``Type:``, names; ``channel`` is among them. ``None`` if it names none."""
    words = " ".join(text.split())
    lowered = words.lower().replace("_", " ")
    if (
        not lowered
        or len(lowered) > 160
        or (re.search(r"\bindex\b", lowered) and "geo" not in lowered and "set" not in lowered)
    ):
        return None
    found = [(place, name) for name, place in _names_in(lowered)]
    if not found:
        command = re.findall(r"\b[A-Z]{3,}\b", words)
        implied = next((COMMAND_TYPES[each] for each in command if each in COMMAND_TYPES), None)
        return (implied, Certainty.IMPLIED, words) if implied else None
    found.sort()
    containers = list(dict.fromkeys(name for _, name in found if name in _CONTAINERS))
    first = found[0][1]
    if first == "channel":
        return "channel", Certainty.STATED, words
    if "geo" in containers:
        return "geo", Certainty.STATED, words
    if containers and (first in _CONTAINERS or first not in {"string", "json", "integer"}):
        either = re.search(r"\bor\b|/|\boder\b|\bou\b|\bo\b|或|또는|または", lowered) and len(containers) > 1
        return containers[0], Certainty.GUESSED if either else Certainty.STATED, words
    scalars = list(dict.fromkeys(name for _, name in found if name not in _CONTAINERS))
    if first == "rejson":
        return "rejson", Certainty.STATED, words
    finer = next((name for name in scalars if name not in {"string", "channel"}), None)
    return finer or "string", Certainty.STATED, words


def is_type_name(text: str) -> bool:
    """Whether the text is the name of a type and hardly anything more."""
    return len(text) < 40 and _short_cell(text) is not None


def type_of_prose(text: str) -> Said | None:
    """The type that sentences about a key state or imply, or ``None``."""
    flat = " ".join(text.split())[:1500]
    if not flat:
        return None
    for trigger in _GOES.finditer(flat):
        rest = flat[trigger.end() : trigger.end() + 160].lstrip(" :")
        said = _object_of(rest)
        if said:
            return said
        if re.match(r"(?:either )?(?:the |a |an )?" + _SERIAL, rest, re.IGNORECASE):
            return ("json" if "json" in rest[:60].lower() else "string"), Certainty.IMPLIED, rest[:60]
    head = re.match(r"\s*[(\[（]([^)\]）]{2,60})[)\]）]", flat)
    if head and (said := _short_cell(head[1])):
        return said
    if said := _leading(flat):
        return said
    for trigger in (*_STORED.finditer(flat), *_IS.finditer(flat)):
        said = _object_of(flat[trigger.end() : trigger.end() + 120].lstrip())
        if said and said[0] not in {"string", "integer", "flag"}:
            return said
    for trigger in _VALUES.finditer(flat):
        if (said := _object_of(flat[trigger.end() : trigger.end() + 120].lstrip())) and said[0] in _CONTAINERS:
            return said
    clean = _NOT_TYPES.sub(lambda found: " " * len(found.group()), flat)
    noun = _OF.search(clean)
    if noun:
        name = (noun["zset"] and "zset") or (noun["kind"] or noun["bare"] or noun["short"]).lower()
        name = {"queue": "list", "hll": "hyperloglog", "counter": "integer"}.get(name, name)
        return name, Certainty.IMPLIED if noun["bare"] == "queue" else Certainty.STATED, noun.group().strip(" (,;/")
    for fragment in re.split(r"[,;|·()\[\]，；（）、。]|\s[-–—]\s|\.\s", flat)[:6]:
        if said := _short_cell(fragment):
            return said
    if written := _WRITTEN.search(flat) or (None if flat.isascii() else _WRITTEN_AMONG_OTHERS.search(flat)):
        said = type_of_cell(written.group().strip())
        if said:
            return said[0], Certainty.STATED, written.group()
    if not flat.isascii():
        for name, place in sorted(_names_in(flat.lower()), key=lambda each: each[1]):
            if flat[place] in "流图地" or (flat[place] == "셋" and place and "가" <= flat[place - 1] <= "힣"):
                continue
            if (not _LATIN.match(flat[place]) and name not in {"list", "flag", "lock", "integer", "channel"}) or (
                name == "list" and re.match(r"리스트|リスト|列表", flat[place:])
            ):
                return name, Certainty.STATED, flat[place : place + 12]
    command = next(
        (
            word
            for word in re.findall(r"\b[A-Z]{3,}\b", flat)
            if COMMAND_TYPES.get(word, "string") not in {"string", "lock"}
        ),
        None,
    )
    if command:
        return COMMAND_TYPES[command], Certainty.IMPLIED, command
    for name, implied in _IMPLIED:
        if found := implied.search(flat):
            return name, Certainty.IMPLIED, found.group()
    return None


_ARTICLE: Final = re.compile(
    r"(?:an?|the)\s+(?P<name>string|counter|integer|number|flag|boolean)\b(?! of)", re.IGNORECASE
)


def _leading(flat: str) -> Said | None:
    """The type that the text begins with: ``Hash with the profile``, but not ``Set by ...``."""
    lowered = flat.lower().lstrip(" :—–-=→>*(")
    if article := _ARTICLE.match(lowered):
        said = type_of_cell(article["name"])
        return said and (said[0], Certainty.STATED, flat[:40])
    for name, phrases in TYPE_NAMES.items():
        if name in {"flag", "integer", "channel", "float"} and not lowered.startswith(
            ("counter", "integer", "pub/sub", "pubsub")
        ):
            continue
        for phrase in phrases:
            if not lowered.startswith(phrase) or phrase in {"map", "text", "plain", "binary", "bytes", "queue", "hset"}:
                continue
            rest = lowered[len(phrase) :]
            if rest[:1].isalnum() and phrase[-1].isascii():
                continue
            if phrase in {"set", "list"} and not re.match(
                r"\s*(?:$|[,;.:()/\[<|—–-]|(?:of|containing|with|mit|von|de|con|holding|where|that|for|keyed|"
                r"storing)\b)",
                rest,
            ):
                continue
            return name, Certainty.STATED, flat[:40]
    return None


def _object_of(rest: str) -> Said | None:
    """The type noun that a phrase begins with."""
    found = _OBJECT.match(rest)
    if not found:
        quoted = re.match(r"(?:the |a )?(?:string |value |number )?['\"]?(?:1|0|true)['\"]?\b", rest, re.IGNORECASE)
        return ("string", Certainty.STATED, quoted.group()) if quoted else None
    name = next(name for name, _ in _NOUNS if found[name])
    words = found.group()
    after = rest[found.end() : found.end() + 60]
    if name == "hash" and re.match(
        r" of (?:the |an? )?(?:url|email|content|body|request|password|config|file)\b", after
    ):
        return None
    if (
        name == "set"
        and re.match(r" (?:to|by|when|if|on|as|up|at|from|once)\b", after)
        and not re.search(r"\b(?:a|an|the)\s+\w*\s*set", words)
    ):
        return None
    if name == "string":
        if re.match(
            r" (?:acting as|representing|holding|containing) (?:an? |the )?(?:integer|number|count|earliest|"
            r"unix)",
            after,
        ):
            return "integer", Certainty.STATED, words + after[:30]
        if re.match(r" (?:representing|containing|holding) (?:an? |the )?json", after):
            return "json", Certainty.STATED, words + after[:30]
        if not re.search(r"string|text", words, re.IGNORECASE):
            return "string", Certainty.IMPLIED, words
    if name == "integer" and re.match(r" ['\"]?1['\"]?\b", after):
        return "string", Certainty.IMPLIED, words + after[:4]
    return name, Certainty.STATED, words


def _short_cell(fragment: str) -> Said | None:
    """The type, if the fragment is hardly more than its name."""
    words = fragment.strip(" .*_:`")
    rest = re.sub(
        r"\b(?:redis|type|key|data|a|an|the|plain|simple|typ|tipo|single)\b|类型|타입|型", "", words.lower()
    ).strip(" :：")
    if not 2 < len(rest) + 2 <= 40:
        return None
    known = {name for names in TYPE_NAMES.values() for name in names}
    if rest in known or all(word in known for word in rest.split()):
        return type_of_cell(words)
    return (
        type_of_cell(words)
        if re.fullmatch(r"\w+ ?[(\[<][^()]*[)\]>]", rest) and _names_in(rest.split("(")[0].split("<")[0].split("[")[0])
        else None
    )


def _names_in(lowered: str) -> list[tuple[str, int]]:
    """Every type that is named, and where; a name inside a longer one ("set" in "sorted set") does not count."""
    found: list[tuple[str, int, int]] = []
    for name, phrases in TYPE_NAMES.items():
        for phrase in phrases:
            at = lowered.find(phrase)
            while at >= 0:
                end = at + len(phrase)
                if says(lowered[max(0, at - 1) : end + 1].strip(), (phrase,)) and not any(
                    start < end and at < stop and stop - start > end - at for _, start, stop in found
                ):
                    found.append((name, at, end))
                at = lowered.find(phrase, at + 1)
    return [
        (name, start)
        for name, start, stop in found
        if not any(
            other != (name, start, stop)
            and other[1] <= start
            and stop <= other[2]
            and other[2] - other[1] > stop - start
            for other in found
        )
    ]

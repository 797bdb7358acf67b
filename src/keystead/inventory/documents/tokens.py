"""Whether a piece of text can be the name of a key, told from its shape alone. Others weigh where it stands."""

import re
from enum import IntEnum
from typing import Final

from .vocabulary import COMMAND_TYPES, OTHER_COMMANDS


class Likeness(IntEnum):
    """How much a token looks like a key."""

    NOT = 0  # a path, an address, a time, a command, a sentence
    WORD = 1  # a name that could be anything; a key only where keys are listed
    LIKELY = 2  # segments with separators between them, as keys have
    PLAIN = 3  # segments and a placeholder


_PLACEHOLDER: Final = re.compile(
    r"\$\{[^{}]*\}|#\{[^{}]*\}|\{\{[^{}]*\}\}|%\{[^{}]*\}|\{[^{}\n]*\}|<[^<>\n]{1,60}>|%\(\w+\)s|"
    r"%[-+0]?\d*[sdvu](?![a-z])"
    r"|\[[A-Za-z_][\w ]*\]|\*+|(?<=[:/|.\-])\([a-z_ ]+\)|\$[A-Za-z_]\w*(?:->\w+)*|…|\.{3}|(?<=[:/|.\-])@[a-z]\w*|"
    r":{2}[a-z_]*id\b"
    r"|(?<=[/.\-]):[a-z]\w*|(?<![A-Za-z])(?:YYYY|yyyy)[-_/.]?(?:MM|mm)?[-_/.]?(?:DD|dd)?(?![A-Za-z])|%Y\S*"
)
_FILE: Final = re.compile(
    r"(?:^|[\w)/-])\.(?:py|go|js|jsx|ts|tsx|mjs|java|rb|php|md|rst|json5?|ya?ml|toml|lua|sql|html?|css|scss|sh|rs|c|"
    r"cc|cpp|h|hpp|cs|kt|"
    r"swift|txt|csv|tsv|proto|xml|conf|cfg|ini|env|log|vue|ex|exs|erl|scala|gradle|properties|dart|png|svg|jpe?g|"
    r"pdf|zip|gz|service|rdb|aof)"
    r"(?:$|[:#(]|\s)",
    re.IGNORECASE,
)
_HOST: Final = re.compile(
    r"(?:[\w-]+\.)+(?:com|org|net|io|dev|local|internal|cn|de|co|svc|amazonaws)(?::\d+)?(?:/.*)?|"
    r"localhost(?::\d+)?(?:/.*)?"
    r"|(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?:[/>].*)?|[\w.-]+:(?:6379|26379|6380|5432|3306|27017|8080|8000|3000|443|80|"
    r"5672|9092)",
    re.IGNORECASE,
)
_IMAGE: Final = re.compile(
    r"(?:[\w.-]+/)*(?:redis|valkey|keydb|dragonfly|postgres|mysql|mariadb|mongo|rabbitmq|kafka|nginx|python|node|"
    r"golang|ruby|openjdk|alpine|"
    r"debian|ubuntu|redis-stack|php)(?::v?\d+(?:\.[\d.x]+)?(?:-[\w.-]+)?)|[\w./-]+:(?:latest|stable|alpine)"
)
_TIME: Final = re.compile(
    r"\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]m)?|\d+(?:[:.,/-]\d+)*%?|[Hh]{1,2}:mm(?::ss)?|"
    r"\d{4}-\d{2}-\d{2}.*",
    re.IGNORECASE,
)
_SCHEMES: Final = re.compile(
    r"^(?:https?|rediss?|ftp|ssh|mailto|urn|arn|jdbc|xmlns|javascript|std|e\.g|i\.e)\b:|^(?:sha\d+|md5|bearer|basic|"
    r"xsd?|npm|pip|git|docker|tel):[\w.-]+$",
    re.IGNORECASE,
)
_CODE_NAME: Final = re.compile(r"(?:[A-Za-z_]\w*::)*[A-Z]\w*(?:::\w+)+|std::\w+.*|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\(.*")
_GENERIC: Final = re.compile(
    r"(?:[A-Z]\w*|map|list|dict|set|tuple|array|optional)[<\[][^:]*[>\]]\??(?:\[\])?|"
    r"(?:KEYS|ARGV)\[.*"
)
_SEGMENT: Final = r"[\w.\-@+~/]+"
_NO_COLON: Final = re.compile(r"[A-Za-z][\w]*(?:[.\-_][\w]+)*")

_TYPE_WORDS: Final = frozenset(
    (
        "string",
        "hash",
        "list",
        "set",
        "zset",
        "stream",
        "json",
        "integer",
        "int",
        "true",
        "false",
        "null",
        "none",
        "nil",
        "key",
        "value",
        "ttl",
        "field",
        "member",
        "score",
        "ok",
        "yes",
        "no",
        "redis",
        "valkey",
        "bool",
        "boolean",
        "float",
        "type",
        "id",
        "bytes",
        "channel",
        "pubsub",
        "str",
        "dict",
        "number",
        "timestamp",
        "lua",
        "default",
        "prefix",
        "pattern",
        "expire",
        "keys",
        "cache",
        "note",
        "todo",
        "example",
    )
)


def likeness(token: str) -> Likeness:
    """How much ``token`` looks like a key, in whatever spelling of placeholders."""
    text = token.strip()
    if not 1 < len(text) <= 250 or not re.search(r"\w", text) or re.search(r"\{\s*[\"']", text):
        return Likeness.NOT
    bare = _PLACEHOLDER.sub("\0", text).replace("\0,\0", "\0")
    if re.search(r"[\s\"'`;=&?!\\,^]", bare) or "://" in text or _SCHEMES.match(text):
        return Likeness.NOT
    if re.search(
        r"[()\[\]{}<>$]", bare.replace("{", "", 1).replace("}", "", 1) if "{" in bare and "\0" in bare else bare
    ):
        return Likeness.NOT
    if text.startswith(("/", "./", "../", "~/", "-", "#", "@", "\\", "=")) or _is_foreign(text, bare):
        return Likeness.NOT
    literal = bare.replace("\0", "")
    words = re.findall(r"[^\W\d_]+" if ":" in bare or "|" in bare else r"[^\W\d_]{2,}|[^\W\d_]+\d+", literal)
    if "\0" in bare:
        if not words:
            return (
                Likeness.WORD
                if re.fullmatch(r"\0|\0(?:[:_.\-/]\0)+", bare) and not set(text) <= set("*.…:")
                else Likeness.NOT
            )
        if bare.startswith("\0") and not re.search(r"[^\W\d_]{2,}", literal):
            return Likeness.WORD
        if ":" in bare or "|" in bare or re.search(r"[_\-./]\0|\0[_\-./]", bare):
            return Likeness.PLAIN if ":" in bare or "|" in bare or re.search(r"[_\-.]\0", bare) else Likeness.LIKELY
        return Likeness.WORD
    if ":" in text:
        if re.fullmatch(rf"{_SEGMENT}(?::{{1,2}}{_SEGMENT})*:?", text) and words:
            return Likeness.LIKELY
        return Likeness.NOT
    if text.lower() in _TYPE_WORDS or text.upper() in COMMAND_TYPES or text.upper() in OTHER_COMMANDS:
        return Likeness.NOT
    return Likeness.WORD if _NO_COLON.fullmatch(text) or re.fullmatch(r"[\w\-.|/]+", text) else Likeness.NOT


def is_setting(token: str) -> bool:
    """Whether a word is written as constants and environment variables are."""
    return re.fullmatch(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*", token) is not None


def _is_foreign(text: str, bare: str) -> bool:
    if (
        _FILE.search(text)
        or _HOST.fullmatch(text)
        or _TIME.fullmatch(text)
        or _CODE_NAME.fullmatch(text)
        or _GENERIC.fullmatch(text)
    ):
        return True
    if "\0" not in bare and (
        (_IMAGE.fullmatch(text) and not re.search(r":\d{3,}$", text)) or re.fullmatch(r":\w+:?", text)
    ):
        return re.fullmatch(r"[\w-]+:\d+", text) is None or text.split(":")[0] in {
            "redis",
            "valkey",
            "postgres",
            "mysql",
            "node",
            "python",
        }
    if re.fullmatch(r"(?:\w+\.){1,}\w+:\w+", text) and "\0" not in bare and text.count(".") > 1:
        return True  # module:function
    first = text.split(None, 1)[0].upper()
    return " " in text and (first in COMMAND_TYPES or first in OTHER_COMMANDS)


def concrete_to_shape(key: str) -> str:
    """A concrete key with what looks like an identifier replaced by ``{id}``: ``user:1000`` becomes ``user:{id}``."""

    def replaced(part: str) -> str:
        if re.fullmatch(
            r"\d+|[0-9a-f]{8}-[0-9a-f-]{4,}\.*|[0-9a-f]{12,}|[0-9A-HJKMNP-TV-Z]{26}|\d{4}-\d{2}-\d{2}", part
        ):
            return "{date}" if re.fullmatch(r"\d{4}-\d{2}-\d{2}", part) else "{id}"
        if re.fullmatch(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", part):
            return "{email}"
        if re.fullmatch(r"(?:\d{1,3}\.){3}\d{1,3}", part):
            return "{ip}"
        return "{id}" if re.fullmatch(r"(?=.*\d)(?=.*[a-z])(?!v\d+$)[a-z0-9]{6,}|[a-z]{1,4}_?\d{2,}", part) else part

    parts = key.split(":")
    return ":".join([parts[0], *map(replaced, parts[1:])])

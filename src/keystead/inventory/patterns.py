"""One way to write a pattern, whatever way its source wrote it: text, and ``{variables}`` with names in lower case.

``normalise`` knows the placeholders people use in documents and in code. Braces that hold another placeholder are kept
as text (``{user:<id>}:cart`` becomes ``{user:{id}}:cart``: a hash tag of a cluster around a variable).
"""

import re
from itertools import product
from typing import Final, NamedTuple

VARIABLE: Final = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
SEPARATORS: Final = ":/|.-_#@~"

_MOST_ALTERNATIVES: Final = 24  # of one spelling; more are left as one variable

# Words that stand for a value even if nothing marks them as a placeholder.
_ID_WORD: Final = re.compile(
    r"(?!(?:\w+_)?(?:by|to|for|of|in|from|with|on)_)(?:[a-z][a-z0-9]*[_-]){0,2}(?:id|uid|uuid|guid|sid)|[a-z]+(?:Id|"
    r"ID|Uid|UID|Uuid|UUID)|userid|uuidv?\d?|xid", re.ASCII)
_COUNTER_WORD: Final = re.compile(
    r"^(?:next|last|max|min|latest|current|cur|seq|new)(?:[_-]|[A-Z])|^(?:next|last|max)id$")

# Pieces of names in other scripts, so that a variable gets a name that every other tool can write.
_TRANSLATED: Final = (
    ("用户", "user"), ("会员", "member"), ("订单", "order"), ("商品", "product"), ("产品", "product"), ("店铺", "shop"),
    ("活动", "activity"), ("房间", "room"), ("手机号", "phone"), ("手机", "phone"), ("邮箱", "email"), ("日期", "date"),
    ("年月日", "date"), ("会话", "session"), ("令牌", "token"), ("设备", "device"), ("文章", "article"),
    ("分类", "category"),
    ("类型", "type"), ("名称", "name"), ("地址", "address"), ("城市", "city"), ("编号", "id"), ("号", "id"),
    ("사용자", "user"), ("유저", "user"), ("회원", "member"), ("주문", "order"), ("상품", "product"), ("방", "room"),
    ("날짜", "date"), ("세션", "session"), ("토큰", "token"), ("이메일", "email"), ("번호", "id"), ("아이디", "id"),
    ("ユーザー", "user"), ("ユーザ", "user"), ("会員", "member"), ("注文", "order"), ("日付", "date"),
    ("部屋", "room"), ("ルーム", "room"), ("セッション", "session"), ("トークン", "token"), ("番号", "id"),
    ("benutzer", "user"), ("nutzer", "user"), ("usuario", "user"), ("usuário", "user"), ("utilisateur", "user"),
)

_DATE: Final = re.compile(
    r"(?:YYYY|yyyy|%Y)(?:[-_/.]?(?:MM|mm|%m)(?:[-_/.]?(?:DD|dd|%d))?)?(?:[-_T:]?(?:HH|hh|%H)(?:[-_:]?(?:mm|MM|%M))?)?"
    r"(?![A-Za-z])")

_TOKEN: Final = re.compile(
    r"""
    (?P<date>%Y[-_/.%\w]*|(?<![A-Za-z])(?:YYYY|yyyy)(?:[-_/.]?(?:MM|mm)(?:[-_/.]?(?:DD|dd))?)?(?:[-_T:]?(?:HH|hh))?(?![A-Za-z]))
  | (?P<percent_name>%\((?P<pn1>\w+)\)[sdifr]|%\{(?P<pn2>[\w.]+)\}|%<(?P<pn3>\w+)>[sd]?|%(?P<pn4>[A-Za-z]\w+)%)
  | (?P<percent>%(?:\[\d+\]|\d+\$)?[-+0\#]*\d*(?:\.\d+)?(?P<verb>[sdvifxXuqtcgeb@])(?![a-z]))
  | (?P<double>\{\{\s*(?P<double_name>[^{}]+?)\s*\}\})
  | (?P<dollar>[$\#@]\{\s*(?P<dollar_name>[^{}]*)\s*\})
  | (?P<paren_dollar>\$\((?P<paren_name>[\w.]+)\)|\\\((?P<swift_name>[\w.]+)\))
  | (?P<brace>\{\s*(?P<brace_name>(?:[^{}<>]|->)*?)\s*\})
  | (?P<angle><{1,2}\s*(?P<angle_name>[^<>{}]{1,80}?)\s*>{1,2})
  | (?P<square>\[\s*(?P<square_name>[^\[\]{}<>]{1,60}?)\s*\])
  | (?P<bare_dollar>\$(?P<bd_name>[A-Za-z_]\w*(?:(?:->|::|\.)\w+)*)|\$\d)
  | (?P<at>(?<=[:/|.\-])@(?P<at_name>[A-Za-z_]\w*)(?![\w.]))
  | (?P<colon>(?<=[:/|.\-_]):(?P<colon_name>[A-Za-z_]\w*)(?=$|[:/|.\-\s\]}]))
  | (?P<first_colon>^:(?P<first_name>[A-Za-z_]\w*)(?=[:/|.\-]))
  | (?P<round>(?<=[:/|.\-_])\((?P<round_name>[A-Za-z_][\w ]*)\))
  | (?P<dots>\.{3,}|…+)
  | (?P<star>\*+)
    """, re.VERBOSE)

_BARE: Final = re.compile(r"(?:(?<=[:/|.\-_])|^)(?P<word>[xX]{2,}\d*|[XN]|\#+|[A-Za-z][\w]*)(?=$|[:/|.\-{}])")
_STRING_PIECE: Final = re.compile(r"""(["'`])(?P<text>(?:(?!\1).)*)\1|(?P<code>[^"'`+]+)""")
_CHOICE: Final = re.compile(
    r"[{(\[<]([^{}()\[\]<>]*[|/,][^{}()\[\]<>]*)[})\]>]|\[([:._/-][^\[\]]*)\]|\(([:._/-][^()]*)\)\?")
_JOINED: Final = re.compile(r"""^\s*(?:["'`]|[\w.]+\s*\+\s*["'`]).*["'`]\s*(?:\+|\.\.?)\s*\S""", re.DOTALL)


class Normalised(NamedTuple):
    """A pattern, and why somebody should look at it; empty if it stands there plainly."""

    pattern: str
    uncertain: str


class Spelling(NamedTuple):
    """What a spelling says: the pattern, what is doubtful about it, and the kinds it gives to its variables."""

    pattern: str
    uncertain: str
    kinds: tuple[tuple[str, str], ...]


def normalise(spelling: str, *, bare: bool = False, capitals: bool = False) -> Normalised:
    """The pattern that a spelling stands for: ``user:<ID>``, ``user:%s`` and ``user:${id}`` all have one variable.

    ``bare`` also takes words without any mark for variables where that is likely (``user:id:cart``, ``user:XXX``), and
    says so: right for documents, wrong for string literals of code. ``capitals`` takes every segment in capitals for
    one, as documents do that mark them so (``bee:jobs:JID``). Never fails.
    """
    read = read_spelling(spelling, bare=bare, capitals=capitals)
    return Normalised(read.pattern, read.uncertain)


def read_spelling(spelling: str, *, bare: bool = False, capitals: bool = False) -> Spelling:
    """As ``normalise``, with the kinds of values that the spelling gives to its variables (``{id:int}``)."""
    text = _joined_pieces(spelling.strip().strip("`").strip())
    doubts: list[str] = []
    names: dict[str, int] = {}
    kinds: list[tuple[str, str]] = []
    parts: list[str] = []
    position = 0
    while position < len(text):
        found = _TOKEN.search(text, position)
        if found is None:
            parts.append(text[position:])
            break
        parts.append(text[position:found.start()])
        kind, raw = _what(found)
        if kind == "brace" and re.fullmatch(r"[\w.-]+:(?:[A-Z][A-Z0-9_]+|\d+)", raw):
            kind = "text"  # a hash tag around a placeholder in capitals, or around a number
        if kind == "text":  # brackets that hold nothing of ours
            parts.append(found.group()[0])
            position = found.start() + 1
            continue
        name, value_kind = variable_name(raw)
        if kind == "colon":
            if not looks_like_value(name):  # `cache::users`: two colons between two words
                parts.append(found.group())
                position = found.end()
                continue
            if text[found.start() - 1] == ":":
                doubts.append(f"two colons before {name}: one may mark a placeholder, or both belong to the key")
        elif kind == "double":
            doubts.append("double braces may be a template's or a hash tag's")
        elif kind == "brace" and found.start() == 0 and _may_be_hash_tag(name, text[found.end():]):
            doubts.append("the braces in front may be a literal hash tag of a cluster")
        unique = _unique(name, names)
        if value_kind:
            kinds.append((unique, value_kind))
        parts.append("{" + unique + "}")
        position = found.end()
    pattern = re.sub(r"\{any\d*\}(?=\{(?:any|rest)\d*\})", "", "".join(parts))
    if bare or capitals:
        pattern = _with_bare_words(pattern, names, doubts, bare, capitals)
    if pattern and pattern[-1] in ":/|" and len(pattern) > 1:
        doubts.append("ends in a separator: probably a prefix")
    return Spelling(pattern, "; ".join(dict.fromkeys(doubts)), tuple(kinds))


def variables(pattern: str) -> tuple[str, ...]:
    """The names of the variables of a pattern, in order."""
    return tuple(VARIABLE.findall(pattern))


def shape(pattern: str) -> str:
    """The pattern without the names of its variables: two sources that name them differently have the same shape."""
    return VARIABLE.sub("{}", pattern)


def alternatives(spelling: str) -> tuple[str, ...]:
    """The spellings that one spelling stands for: ``a:{x|y}`` is two, ``a[:b]`` is two. Usually only itself."""
    choices: list[list[str]] = []
    position = 0
    for group in _CHOICE.finditer(spelling):
        options = _options(group)
        if options is None:
            continue
        choices.append([spelling[position:group.start()]])
        choices.append(options)
        position = group.end()
    if not choices:
        return (spelling,)
    choices.append([spelling[position:]])
    many = 1
    for options in choices:
        many *= len(options)
    if many > _MOST_ALTERNATIVES:
        return (spelling,)
    return tuple(dict.fromkeys("".join(pieces) for pieces in product(*choices)))


def variable_name(raw: str) -> tuple[str, str]:
    """The name that a placeholder's text gives to its variable, and the kind of value it states (or nothing)."""
    text = raw.strip().strip("\"'`$").strip()
    kind = ""
    typed = re.fullmatch(r"(?:(int|integer|uuid|string|str|path|slug|number):)?([\w.-]+)(?:\s*:\s*(.+))?", text)
    if typed and (typed[1] or typed[3]):
        kind = {"int": "integer", "integer": "integer", "number": "integer", "uuid": "uuid", "long": "integer",
                "sha256": "sha256", "email": "email", "ip": "ip", r"\d+": "integer"}.get(
                    (typed[1] or typed[3] or "").strip().lower(), "")
        text = typed[2]
    if re.fullmatch(_DATE, text):
        return _date_name(text), kind
    lowered = text
    for foreign, english in _TRANSLATED:
        lowered = re.sub(re.escape(foreign), f" {english} ", lowered, flags=re.IGNORECASE)
    lowered = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", lowered).lower()
    name = re.sub(r"[^a-z0-9]+", "_", lowered).strip("_")
    if not name or name[0].isdigit():
        return "value", kind
    return name[:60].rstrip("_"), kind


def looks_like_value(name: str) -> bool:
    """Whether a bare word is likely to stand for a value: ``user_id``, ``uuid``, and not ``next_id``."""
    return _ID_WORD.fullmatch(name) is not None and not _COUNTER_WORD.search(name)


def _what(found: re.Match[str]) -> tuple[str, str]:
    """Which kind of placeholder was found, and the text that names it."""
    group = {key: value for key, value in found.groupdict().items() if value is not None}
    if "date" in group:
        return "date", _date_name(group["date"])
    if "percent_name" in group:
        return "percent", next(group[key] for key in ("pn1", "pn2", "pn3", "pn4") if key in group)
    if "percent" in group:
        return "percent", "number" if group["verb"] in "diu" else "value"
    if "star" in group or "dots" in group:
        return "star", "rest" if found.end() == len(found.string) and found.start() > 0 else "any"
    for kind, key in (("double", "double_name"), ("dollar", "dollar_name"), ("paren_dollar", "paren_name"),
                      ("paren_dollar", "swift_name"), ("at", "at_name"), ("colon", "colon_name"),
                      ("first_colon", "first_name"), ("round", "round_name"), ("bare_dollar", "bd_name")):
        if key in group:
            return kind, group[key]
    if "bare_dollar" in group:
        return "bare_dollar", "value"
    if "brace" in group:
        return "brace", group["brace_name"].split("|")[0] if "|" in group["brace_name"] else group["brace_name"]
    if "angle" in group:
        return "angle", group["angle_name"]
    inner = group.get("square_name", "")
    plain = re.fullmatch(r"[\w ]+", inner) is not None and not inner.isdigit()
    return ("square", inner) if plain else ("star", "any") if re.fullmatch(r"\S*\w-\w\S*", inner) else ("text", inner)


def _unique(name: str, names: dict[str, int]) -> str:
    names[name] = names.get(name, 0) + 1
    if names[name] == 1:
        return name
    numbered = f"{name}{names[name]}"
    return _unique(name, names) if numbered in names else numbered


def _date_name(text: str) -> str:
    if re.search(r"HH|hh|%H", text):
        return "hour"
    if re.search(r"DD|dd|%d", text):
        return "date"
    return "month" if re.search(r"MM|mm|%m", text) else "year"


def _may_be_hash_tag(name: str, rest: str) -> bool:
    plain = looks_like_value(name) or name.endswith(("prefix", "env", "namespace", "ns", "tenant", "app"))
    return bool(rest) and "{" not in rest and not plain and re.match(r"[:./_-]", rest) is not None


def _joined_pieces(text: str) -> str:
    """``"user:" + id + ":cart"`` as one spelling; anything else unchanged."""
    if not _JOINED.match(text) and not re.match(r"""[\w.]+\s*\+\s*["'`]""", text):
        return text.strip("\"'")
    out: list[str] = []
    for piece in _STRING_PIECE.finditer(text):
        if piece["text"] is not None:
            out.append(piece["text"])
            continue
        code = re.sub(r"^[\s.+]+|[\s.+]+$", "", piece["code"])
        if code:
            out.append("{" + code.strip("{}$() ") + "}")
    return "".join(out)


def _with_bare_words(pattern: str, names: dict[str, int], doubts: list[str], bare: bool, capitals: bool) -> str:
    pieces = re.split(r"(\{[a-z_][a-z0-9_]*\})", pattern)
    has_lower = any(re.search(r"[a-z]", piece) for piece in pieces[::2])

    def replace(found: re.Match[str]) -> str:
        word = found["word"]
        marked = bare and re.fullmatch(r"[xX]{2,}\d*|X|N|#+", word) is not None
        upper = has_lower and re.fullmatch(r"[A-Z][A-Z0-9_]*", word) is not None
        capital = upper and ((capitals and len(word) > 1) or looks_like_value(word.lower()))
        if not (marked or capital or (bare and found.start() > 0 and looks_like_value(word))):
            return word
        name = _unique("value" if marked else variable_name(word)[0], names)
        if not marked and not (capital and capitals):
            doubts.append(f"{word} is taken for a variable although nothing marks it")
        return "{" + name + "}"

    offset = 0
    for index, piece in enumerate(pieces):
        if index % 2 == 0 and piece:
            before = "\0" * bool(offset)
            joined = before + piece
            pieces[index] = _BARE.sub(replace, joined).removeprefix(before) if re.search(r"\w", piece) else piece
        offset += len(piece)
    return "".join(pieces)


def _options(group: re.Match[str]) -> list[str] | None:
    optional = group[2] or group[3]
    if optional:
        return ["", optional]
    inner = group[1]
    for mark in ("|", "/", ","):
        words = [word.strip().strip("\"'") for word in inner.split(mark)]
        if len(words) > 1 and all(re.fullmatch(r"[\w.-]+", word) for word in words):
            return words
    return None

"""What a key looks like once it is followed: text, and variables where only a run of the program knows."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from keystead.inventory.code.expressions import Call, Expr, Index, Member, Name, Opaque, Text, spell
from keystead.inventory.code.scopes import Scope
from keystead.inventory.models import Certainty
from keystead.inventory.patterns import variable_name

_GENERIC: Final = frozenset(("id", "key", "name", "uuid", "pk", "value", "uid", "code", "hash", "slug", "type", "sub"))
_SILENT: Final = frozenset((
    "str", "string", "int", "to_s", "tostring", "to_string", "valueof", "itoa", "formatint", "encodeuricomponent",
    "quote",
    "lower", "upper", "strip", "trim", "tolowercase", "touppercase", "tolower", "toupper", "downcase", "encode",
    "decode",
    "hexdigest", "digest", "hex", "urlsafe_b64encode", "b64encode", "parameterize", "repr", "get", "format", "value",
    "unwrap", "result", "await", "trimspace", "strval", "isoformat", "toisostring", "date", "split", "int64", "base64",
    "orelse", "join", "replace", "name", "tohex", "each of",
))
_HASHES: Final = re.compile(r"^(?:sha_?1|sha_?256|sha_?512|md5|blake2[bs]?|sha2?|hash(?:_?\w+)?|fingerprint|digest)$",
                            re.I)
_CLOCKS: Final = re.compile(
    r"strftime|date_?format|isoformat|todatestring|to_date|(?:^|_)today$|format_date|ofpattern", re.I)
_FILLER: Final = re.compile(r"^(?:get|fetch|make|build|current|new|to)_(?=[a-z])")


@dataclass(frozen=True, slots=True)
class Var:
    """A part that only a run knows. ``asked`` is the parameter it comes from, if nothing bound it.

    ``otherwise`` is what that parameter is if nobody gives it: what a key begins with, if no caller says another.
    """

    name: str
    kind: str = ""
    asked: tuple[Scope, str] | None = None
    otherwise: str = ""


Part = str | Var


@dataclass(frozen=True, slots=True)
class Shape:
    """One form of a key, and how sure it is: stated where it is used, or followed to where it is said."""

    parts: tuple[Part, ...]
    certainty: Certainty = Certainty.STATED

    @property
    def text(self) -> str:
        """All that is literal."""
        return "".join(part for part in self.parts if isinstance(part, str))

    @property
    def has_words(self) -> bool:
        """Whether the literal text says anything: a letter or digit, not separators alone."""
        return any(letter.isalnum() for letter in self.text)

    @property
    def begins_open(self) -> Var | None:
        """The variable that the key begins with, if it does."""
        return self.parts[0] if self.parts and isinstance(self.parts[0], Var) else None

    @property
    def pattern(self) -> str:
        """As the inventory writes it: variables in braces, each with a name of its own."""
        names: dict[str, int] = {}
        out: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                out.append(part)
                continue
            names[part.name] = names.get(part.name, 0) + 1
            out.append(f"{{{part.name}{names[part.name] if names[part.name] > 1 else ''}}}")
        return "".join(out)

    def followed(self) -> "Shape":
        """The same, known to have been followed."""
        return replace(self, certainty=Certainty.IMPLIED) if self.certainty is Certainty.STATED else self


def literal(text: str) -> Shape:
    return Shape((text,) if text else ())


def joined(shapes: list[Shape]) -> Shape:
    """Shapes one after the other, neighbouring text made one."""
    parts: list[Part] = []
    certainty = Certainty.STATED
    for shape in shapes:
        if shape.certainty is not Certainty.STATED:
            certainty = shape.certainty
        for part in shape.parts:
            if isinstance(part, str) and parts and isinstance(parts[-1], str):
                parts[-1] += part
            else:
                parts.append(part)
    return Shape(tuple(parts), certainty)


def variable(expr: Expr, kind: str = "") -> Shape:
    """A variable named after the expression that will give it its value."""
    return Shape((Var(name_of(expr), kind),))


def name_of(expr: Expr) -> str:
    """``user.id`` is called user_id, ``str(order_id)`` order_id, ``sha256(token)`` token_sha256."""
    words = _words(expr, 5)
    return _named(words) if words else "value"


@lru_cache(50_000)
def _named(words: str) -> str:
    name = variable_name(words[:200])[0]
    shorter = _FILLER.sub("", name)
    return shorter if shorter and not shorter[0].isdigit() else name


def _words(expr: Expr, depth: int) -> str:
    if depth == 0:
        return ""
    match expr:
        case Name(name):
            return name.lstrip("$@_")
        case Member(base, name):
            if _CLOCKS.search(name):
                return "date"
            if name.lower() in _GENERIC:
                above = _last(base)
                return f"{above}_{name}" if above and above not in ("self", "this", "args", "params", "req") else name
            return _words(base, depth - 1) if name.lower() in _SILENT else name
        case Index(base, key):
            if isinstance(key, Text) and key.value:
                return key.value
            return _words(base, depth - 1)
        case Call():
            return _words_of_call(expr, depth)
        case Opaque(words):
            return words
        case Text(value):
            return value
    return ""


def _words_of_call(call: Call, depth: int) -> str:
    method = call.method
    if _CLOCKS.search(method):
        return "date"
    inner = _words(call.args[0], depth - 1) if call.args and not isinstance(call.args[0], Text) else ""
    if _HASHES.match(method):
        return f"{inner}_{method}" if inner else method
    if method.lower() in _GENERIC and call.receiver is not None and not call.args:
        return _words(Member(call.receiver, method), depth - 1)
    if method.lower().replace("_", "") in _SILENT or method.lower() in _SILENT or not method:
        receiver = call.receiver
        beneath = _words(receiver, depth - 1) if receiver is not None else ""
        module = isinstance(receiver, Name) and (receiver.name[:1].isupper()
                                                 or receiver.name in ("strconv", "uuid", "base64"))
        return inner if (module and inner) or not beneath else beneath
    return method


def _last(expr: Expr) -> str:
    match expr:
        case Name(name) | Member(_, name):
            return name
        case Call():
            return expr.method
    return ""


# -- does it look like a key ----------

_NEVER: Final = re.compile(
    r"""
      \s | :// | ^[:/.\\#<@%&?=+\-] | \\ | [<>"'`;=?&()\[\]!^~,] | ^\d | ::$
    | ^(?:https?|ftp|mailto|data|urn|arn|file|node|npm|tel|javascript|about|blob|chrome|git|ssh|redis|rediss|jdbc|unix
        |xml|xmlns|xlink|xs|xsd|xsi|svg|sha\d*|md5|localhost|utf-?8|text|image|application|audio|video|aria
        |hover|focus|active|sm|md|lg|xl|2xl|dark|group-hover|before|after|first|last|odd|even|disabled|classpath
        |spring|python|java|docker|bearer|basic|aws|kms|iam|s3|ref|base64|v-on|v-bind|on|update|std|system|c|d):
    | ^\w+(?:\.\w+)+:[A-Z]\w*$       # where something is imported from
    | ^(?:[A-Za-z]\w*::)+[A-Za-z{]      # a name in a namespace: AWS::Type, Module::Class
    | ^[\w.-]+:\d+$                 # host and port, file and line
    | ^\{?\w*\}?:\{port\}
    | \b\d{1,2}:\d{2}\b | [HhYymMdDs]{2}:[mMsS]{2} | %[HMSYmdI]:
    """, re.VERBOSE | re.IGNORECASE)
_SEGMENTS: Final = re.compile(r"^[A-Za-z_{][\w.{}\-*/|@]*(?::{1,2}[\w.{}\-*/|@]+)+:?$")
_HOSTS: Final = re.compile(
    r"\{(?:host|hostname|port|ip|scheme|protocol|url|address|addr|server|username|password)\d*\}")


def looks_like_a_key(shape: Shape) -> bool:
    """Whether text that no command was seen to use is likely a key: words and variables with colons between them."""
    pattern = shape.pattern
    if len(pattern) > 120 or ":" not in shape.text or not shape.has_words or shape.begins_open is not None:
        return False
    if _NEVER.search(pattern) or _HOSTS.search(pattern):
        return False
    return _SEGMENTS.match(pattern) is not None


def could_be_a_key(shape: Shape) -> bool:
    """Whether a client's command may well have been given this: no path of a web service, no sentence, no SQL."""
    text = shape.text
    if not any(letter.isalpha() for letter in text) or "://" in text or "\n" in text or len(text) > 300:
        return False
    first = shape.parts[0]
    if isinstance(first, str) and first.startswith(("/", "./", "http", "?", "<", "select ", "SELECT ")):
        return False
    return text.count(" ") <= 2


def describe(expr: Expr) -> str:
    """The expression for a note."""
    return spell(expr, 60)

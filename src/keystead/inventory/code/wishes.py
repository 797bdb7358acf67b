"""What a call to a client asks of the server: which of its arguments are keys, and how long they shall live."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from keystead.inventory.code.commands import Access, Command, Keys, command_named
from keystead.inventory.code.expressions import Call, Expr, Items, Member, Name, Number, Opaque, Table, Text
from keystead.inventory.models import Rule

MILLISECOND: Final = 0.001
_NAMED_KEYS: Final = ("name", "key", "keys", "names", "k", "src", "source", "channel", "channels", "dest",
                      "destination")
_JSON: Final = frozenset(("dumps", "stringify", "to_json", "toJson", "toJSON", "writeValueAsString", "Marshal",
                          "dump_json",
                          "model_dump_json", "json", "generate", "toJSONString", "json_encode", "toJsonStr"))
# Arguments that say how long: their names, the unit of a bare number, and the rule.
_NAMED_TTL: Final = {
    "ex": (1.0, Rule.EXACTLY), "px": (MILLISECOND, Rule.EXACTLY), "exat": (0.0, Rule.UNTIL), "pxat": (0.0, Rule.UNTIL),
    "expires_in": (1.0, Rule.EXACTLY), "expire": (1.0, Rule.EXACTLY), "ttl": (1.0, Rule.EXACTLY),
    "timeout": (1.0, Rule.EXACTLY),
    "expiration": (1.0, Rule.EXACTLY), "expires_at": (0.0, Rule.UNTIL), "expire_in": (1.0, Rule.EXACTLY),
}
_TIME_UNITS: Final = {"NANOSECONDS": 1e-9, "MICROSECONDS": 1e-6, "MILLISECONDS": 1e-3, "SECONDS": 1.0, "MINUTES": 60.0,
                      "HOURS": 3600.0, "DAYS": 86400.0}


@dataclass(frozen=True, slots=True)
class Lasting:
    """An expression that says how long, what a bare number of it means in seconds, and what it rules."""

    expr: Expr
    unit: float
    rule: Rule = Rule.EXACTLY


@dataclass(frozen=True, slots=True)
class Wish:
    """One key that a call names. ``drops_ttl``: it is written anew, and so without any expiry it had."""

    expr: Expr
    command: str
    type: str
    access: Access
    kind: str = "key"  # key, channel, glob, channel glob
    lasting: Lasting | None = None
    drops_ttl: bool = False
    span: tuple[int, int] | None = None


def wishes_of(call: Call, command: Command, language: str) -> Iterator[Wish]:
    """The keys of a call, as its client's method takes them."""
    args, spans = list(call.args), list(call.spans)
    if language == "go" and args and _is_context(args[0]):
        args, spans = args[1:], spans[1:]
    named = dict(call.named)
    if command.keys is Keys.RAW:
        found = _raw(args, spans)
        if found is None:
            return
        command, args, spans, named = *found, {}
    yield from _of_command(command, args, spans, named, language)


def _raw(
    args: list[Expr], spans: list[tuple[int, int]]
) -> tuple[Command, list[Expr], list[tuple[int, int]]] | None:
    """``execute_command("SET", key, value)``, ``Do("SET", …)``, ``sendCommand(["SET", …])``."""
    if args and isinstance(args[0], Items):
        args, spans = args[0].items, []
    if not args or not isinstance(args[0], Text):
        return None
    words = args[0].value.split()
    command = command_named(words[0]) if words else None
    if command is None or command.keys is Keys.RAW:
        return None
    return command, [Text(word) for word in words[1:]] + args[1:], [(0, 0)] * len(words[1:]) + spans[1:]


def _of_command(
    command: Command, args: list[Expr], spans: list[tuple[int, int]], named: dict[str, Expr], language: str
) -> Iterator[Wish]:
    lasting = lasting_of(command, args, named, language)
    made = Wish(Opaque(), command.name, _type(command, args, named), command.access, "key", lasting,
                command.name == "SET" and lasting is None and not _keeps(args, named))
    if not args and not any(name in named for name in _NAMED_KEYS):
        if command.name == "SCAN" and "match" in named:
            yield replace(made, expr=named["match"], kind="glob")
        return
    if args and isinstance(args[0], Call) and (held := args[0].named.get("Stream") or args[0].named.get("Key")):
        args = [held, *args[1:]]  # go-redis: &redis.XAddArgs{Stream: key}, redis.ZRangeArgs{Key: key}
    spans = spans + [(0, 0)] * (len(args) - len(spans))
    together = list(zip(args, spans, strict=False))

    def wish(pair: tuple[Expr, tuple[int, int]], **changes: object) -> Wish:
        return replace(made, expr=pair[0], span=pair[1] if pair[1][1] else None, **changes)  # type: ignore[arg-type]

    first = next((named[name] for name in _NAMED_KEYS if name in named), None)
    match command.keys:
        case Keys.FIRST if together or first is not None:
            yield wish(together[0]) if together else replace(made, expr=first or Opaque())
        case Keys.ALL:
            for pair in together or [(first or Opaque(), (0, 0))]:
                yield wish(pair)
        case Keys.ALL_BUT_LAST:
            for pair in _before_timeout(together) or [(first or Opaque(), (0, 0))]:
                yield wish(pair)
        case Keys.PAIRS:
            for pair in _every_second(together):
                yield wish(pair)
        case Keys.FIRST_TWO:
            for pair in together[:2]:
                yield wish(pair)
        case Keys.COUNTED | Keys.COUNTED_FIRST:
            yield from _counted(command, together, made)
        case Keys.SECOND if together:
            yield wish(together[1] if len(together) > 1 and isinstance(together[0][0], Text)
                       and together[0][0].value.isalpha() else together[0])
        case Keys.STREAMS | Keys.GROUP:
            yield from _streams(command, args, named, made)
        case Keys.PATTERN:
            yield from _globs(command, args, named, made)
        case Keys.CHANNEL if together or first is not None:
            yield wish(together[0], kind="channel") if together else replace(made, expr=first or Opaque(),
                                                                             kind="channel")
        case Keys.CHANNELS | Keys.CHANNEL_PATTERNS:
            kind = "channel" if command.keys is Keys.CHANNELS else "channel glob"
            for expr, span in together:
                if not isinstance(expr, Opaque):
                    yield wish((expr, span), kind=kind)


def _before_timeout(pairs: list[tuple[Expr, tuple[int, int]]]) -> list[tuple[Expr, tuple[int, int]]]:
    """The keys of BLPOP: all but a timeout, which some clients take first and some last."""
    kept = [pair for pair in pairs if not isinstance(pair[0], Number | Table)]
    if len(kept) == len(pairs) and len(pairs) > 1:
        return pairs[:-1] if not isinstance(pairs[0][0], Member | Call) or len(pairs) > 2 else pairs[:1]
    return kept


def _every_second(pairs: list[tuple[Expr, tuple[int, int]]]) -> Iterator[tuple[Expr, tuple[int, int]]]:
    if len(pairs) == 1:
        table = pairs[0][0]
        if isinstance(table, Table):
            for key, _ in table.pairs:
                yield key, (0, 0)
        else:
            yield pairs[0]
        return
    yield from pairs[::2]


def _counted(command: Command, pairs: list[tuple[Expr, tuple[int, int]]], made: Wish) -> Iterator[Wish]:
    """ZUNIONSTORE: the destination is written, the sources are read. Clients leave the count out."""
    rest = pairs
    if command.keys is Keys.COUNTED and pairs:
        yield replace(made, expr=pairs[0][0], span=pairs[0][1] if pairs[0][1][1] else None)
        rest = pairs[1:]
    for expr, span in rest:
        if isinstance(expr, Call | Table):
            continue
        if not isinstance(expr, Number | Opaque) and not (isinstance(expr, Text) and expr.value.isupper()):
            yield replace(made, expr=expr, access=Access.READ, span=span if span[1] else None)


def _streams(command: Command, args: list[Expr], named: dict[str, Expr], made: Wish) -> Iterator[Wish]:
    table = named.get("streams") or next((arg for arg in args if isinstance(arg, Table)), None)
    if isinstance(table, Table):
        keys = [value for key, value in table.pairs if isinstance(key, Text)
                and key.value.lower() in ("key", "streams")]
        for key in keys or [key for key, _ in table.pairs]:
            yield replace(made, expr=key)
        return
    listed = next((arg for arg in args if isinstance(arg, Items)), None)
    if listed is not None and listed.items and isinstance(listed.items[0], Table):
        yield from _streams(command, [listed.items[0]], {}, made)
        return
    for position, arg in enumerate(args):
        if isinstance(arg, Text) and arg.value.upper() == "STREAMS":
            rest = args[position + 1 :]
            for key in rest[: max(1, len(rest) // 2)]:
                yield replace(made, expr=key)
            return
    for arg in args:
        if isinstance(arg, Call) and "Streams" in arg.named:  # go-redis: &redis.XReadArgs{Streams: []string{key, ">"}}
            streams = arg.named["Streams"]
            for key in streams.items[: max(1, len(streams.items) // 2)] if isinstance(streams, Items) else [streams]:
                yield replace(made, expr=key)


def _globs(command: Command, args: list[Expr], named: dict[str, Expr], made: Wish) -> Iterator[Wish]:
    for name in ("match", "pattern", "MATCH"):
        if name in named:
            yield replace(made, expr=named[name], kind="glob")
            return
    for position, arg in enumerate(args):
        if isinstance(arg, Text) and arg.value.upper() == "MATCH" and position + 1 < len(args):
            yield replace(made, expr=args[position + 1], kind="glob")
            return
        if isinstance(arg, Table):
            for key, value in arg.pairs:
                if isinstance(key, Text) and key.value.lower() == "match":
                    yield replace(made, expr=value, kind="glob")
                    return
    if command.name == "KEYS" and args:
        yield replace(made, expr=args[0], kind="glob")
        return
    for arg in args:
        if (isinstance(arg, Text) and "*" in arg.value) or not isinstance(arg, Number | Text | Opaque | Table | Call):
            yield replace(made, expr=arg, kind="glob")
            return


# -- types ------------------------------------------------------------


def _type(command: Command, args: list[Expr], named: dict[str, Expr]) -> str:
    if command.name in ("SET", "SETEX", "SETNX", "PSETEX", "GETSET"):
        value = named.get("value") or (args[1] if len(args) > 1 else None)
        if command.name in ("SETEX", "PSETEX") and len(args) > 2:
            value = args[2]
        if isinstance(value, Call) and value.method in _JSON:
            return "json"
    return command.type


# -- how long ------------------------------------------------------------


def lasting_of(command: Command, args: list[Expr], named: dict[str, Expr], language: str) -> Lasting | None:
    """What a call says about the life of its key."""
    name = command.name
    if name in ("SETEX", "PSETEX") and len(args) >= 3:
        unit = 1.0 if name == "SETEX" else MILLISECOND
        return Lasting(args[2] if language == "go" else args[1], unit)
    if name in ("SETEX", "PSETEX") and "time" in named:
        return Lasting(named["time"], 1.0 if name == "SETEX" else MILLISECOND)
    if name in ("EXPIRE", "PEXPIRE"):
        expr = args[1] if len(args) > 1 else named.get("time")
        if expr is None:
            return None
        unit = _unit_behind(args[2:]) or (1.0 if name == "EXPIRE" else MILLISECOND)
        if language == "java" and len(args) == 3 and _unit_behind(args[2:]) is None:
            return Lasting(Call(Name("in unit"), [expr, args[2]]), unit)
        return Lasting(expr, unit)
    if name in ("EXPIREAT", "PEXPIREAT") and len(args) > 1:
        return Lasting(args[1], 0.0, Rule.UNTIL)
    if name in ("SET", "SETNX", "GETEX", "GETSET", "XADD"):
        return _of_set(name, args, named, language)
    return None


def _of_set(name: str, args: list[Expr], named: dict[str, Expr], language: str) -> Lasting | None:
    sliding = Rule.SLIDING if name == "GETEX" else Rule.EXACTLY
    for key, value in named.items():
        if key.lower() in _NAMED_TTL:
            unit, rule = _NAMED_TTL[key.lower()]
            return Lasting(value, unit, rule if rule is Rule.UNTIL else sliding)
    for position, arg in enumerate(args):
        if isinstance(arg, Text) and position and arg.value.upper() in ("EX", "PX", "EXAT",
                                                                        "PXAT") and position + 1 < len(args):
            unit, rule = _NAMED_TTL[arg.value.lower()]
            return Lasting(args[position + 1], unit, rule if rule is Rule.UNTIL else sliding)
        if isinstance(arg, Table) and position:
            found = _of_options(arg.pairs)
            if found is not None:
                return found
        if isinstance(arg, Call) and position:
            found = _of_builder(arg)
            if found is not None:
                return found
    if name == "SET" and language == "python" and len(args) > 2 and not isinstance(args[2], Text):
        return Lasting(args[2], 1.0)
    if language == "go" and name in ("SET", "SETNX", "GETSET") and len(args) == 3:
        return Lasting(args[2], 1e-9)
    if language == "go" and name == "GETEX" and len(args) == 2:
        return Lasting(args[1], 1e-9, Rule.SLIDING)
    if language == "java" and len(args) > 2:
        behind = _unit_behind(args[3:])
        if behind is not None:
            return Lasting(args[2], behind)
        if len(args) == 4 and isinstance(args[3], Name | Member | Call):  # a unit with a name of its own
            return Lasting(Call(Name("in unit"), [args[2], args[3]]), 1.0)
        if len(args) == 3 and isinstance(args[2], Name | Member):
            return Lasting(args[2], 1.0)
    return None


def _of_options(pairs: Iterable[tuple[Expr, Expr]]) -> Lasting | None:
    """``{ EX: 60 }`` and ``{ expiration: { type: 'EX', value: 60 } }``."""
    for key, value in pairs:
        word = key.value.lower() if isinstance(key, Text) else ""
        if word == "expiration" and isinstance(value, Table):
            inner = {each.value: given for each, given in value.pairs if isinstance(each, Text)}
            kind = inner.get("type")
            if isinstance(kind, Text) and "value" in inner and kind.value.lower() in _NAMED_TTL:
                unit, rule = _NAMED_TTL[kind.value.lower()]
                return Lasting(inner["value"], unit, rule)
        if word in _NAMED_TTL:
            unit, rule = _NAMED_TTL[word]
            return Lasting(value, unit, rule)
    return None


def _of_builder(call: Call) -> Lasting | None:
    """``SetParams.setParams().nx().ex(60)``, ``SetArgs.Builder.ex(60)``, ``Duration.ofMinutes(5)``."""
    expr: Expr | None = call
    if call.receiver is not None and isinstance(call.receiver, Name) and call.receiver.name in ("Duration",
                                                                                                "Expiration"):
        return Lasting(call, 1.0)
    while isinstance(expr, Call):
        if expr.method in ("ex", "px", "exAt", "pxAt", "EX", "PX") and len(expr.args) == 1:
            unit, rule = _NAMED_TTL[expr.method.lower()]
            return Lasting(expr.args[0], unit, rule)
        expr = expr.receiver
    return None


def _keeps(args: list[Expr], named: dict[str, Expr]) -> bool:
    return "keepttl" in named or "keepTtl" in named or any(
        (isinstance(arg, Text) and arg.value.upper() == "KEEPTTL") or
        (isinstance(arg, Table) and any(isinstance(key, Text) and key.value.upper() == "KEEPTTL" for key,
                                        _ in arg.pairs))
        for arg in args[2:])


def _unit_behind(args: list[Expr]) -> float | None:
    for arg in args:
        name = arg.name if isinstance(arg, Member | Name) else ""
        if name in _TIME_UNITS:
            return _TIME_UNITS[name]
    return None


def _is_context(expr: Expr) -> bool:
    name = expr.name if isinstance(expr, Name | Member) else expr.method if isinstance(expr, Call) else ""
    above = expr.receiver if isinstance(expr, Call) else None
    return "ctx" in name.lower() or "context" in name.lower() or \
        (isinstance(above, Name) and above.name == "context") or name in ("Background", "TODO")

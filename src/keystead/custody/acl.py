"""Users of a server that may do no more than the inventory says of their service, checked by the server itself."""

import asyncio
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from keystead.engine import ErrorReply, Valkey
from keystead.errors import Invalid
from keystead.inventory import Entry, Inventory, Matcher

# What a service needs whatever its keys are: to log in, to know the cluster, to group commands.
ALWAYS: Final = (
    "+auth", "+hello", "+ping", "+select", "+client|setname", "+client|setinfo", "+client|id", "+command",
    "+@transaction", "+cluster|slots", "+cluster|shards", "+cluster|nodes", "+readonly", "+asking",
)
_READS: Final = ("+exists", "+type", "+ttl", "+pttl")
_WRITES: Final = ("+del", "+unlink", "+expire", "+pexpire", "+expireat", "+pexpireat")
_OF_TYPE: Final = {
    "string": "+@string", "hash": "+@hash", "list": "+@list", "set": "+@set", "zset": "+@sortedset",
    "stream": "+@stream",
}
_BESIDES: Final = {"bitmap": "+@bitmap", "hyperloglog": "+@hyperloglog", "geo": "+@geo"}
# For keys of unknown type. Commands that name no key would reach everybody's: SCAN, FUNCTION FLUSH.
_ANY_TYPE: Final = ("+@read", "+@write", "-@keyspace", "-@scripting")
_SCRIPTS: Final = ("+eval", "+evalsha", "+script|load")
_PROBES: Final = {
    "string": (("GET", "{}"), ("SET", "{}", "x")), "hash": (("HGET", "{}", "f"), ("HSET", "{}", "f", "v")),
    "list": (("LRANGE", "{}", "0", "0"), ("RPUSH", "{}", "x")), "set": (("SISMEMBER", "{}", "x"), ("SADD", "{}", "x")),
    "zset": (("ZSCORE", "{}", "x"), ("ZADD", "{}", "1", "x")),
    "stream": (("XLEN", "{}"), ("XADD", "{}", "*", "f", "v")),
    "": (("TYPE", "{}"), ("DEL", "{}")),
}
_TO_FILL_IN: Final = "><PASSWORD>"  # by whoever runs the command
_AT_ONCE: Final = 100
_VARIABLE: Final = re.compile(r"\{\w+\}|\*+")


@dataclass(frozen=True, slots=True)
class Service:
    """Who uses the server, and which entries they write (and read), or only read."""

    name: str
    writes: tuple[Entry, ...]
    reads: tuple[Entry, ...]

    @property
    def user(self) -> str:
        """Its name as that of a user: a name without spaces and signs that mean something to the server."""
        name = re.sub(r"[^\w.@-]+", "-", self.name).strip("-") or "service"
        return name if name != "default" else "default-service"  # the server's own, whom everybody is without a name


def services(inventory: Inventory, *, by_section: bool = False) -> tuple[Service, ...]:
    """The services that the inventory names as writers or readers; or one for each of its sections."""
    writes: dict[str, list[Entry]] = {}
    reads: dict[str, list[Entry]] = {}
    for entry in inventory.entries:
        if by_section:
            writes.setdefault(" ".join(entry.section) or inventory.name, []).append(entry)
            continue
        for writer in entry.writers:
            writes.setdefault(writer.value, []).append(entry)
        for reader in entry.readers:
            if not any(writer.value == reader.value for writer in entry.writers):
                reads.setdefault(reader.value, []).append(entry)
    names = dict.fromkeys((*writes, *reads))
    made = tuple(Service(name, tuple(writes.get(name, ())), tuple(reads.get(name, ()))) for name in names)
    if not made:
        raise Invalid(f"{inventory.name} names no writers or readers; add them, or use --by section")
    twice = [each.user for each in made if sum(other.user == each.user for other in made) > 1]
    if twice:
        raise Invalid(f"two services would be the same user {twice[0]}; give them different names")
    return made


def write_acl(service: Service, *, tagged: bool = False) -> str:
    """The command that makes the user, without its password. With ``tagged`` for names behind a hash tag, too."""
    return " ".join(("ACL SETUSER", service.user, "reset", "on", _TO_FILL_IN, *map(_quoted, rules(
        service, tagged=tagged))))


def rules(service: Service, *, tagged: bool = False) -> list[str]:
    """What the user may touch and do. Redis 7 or Valkey: reading and writing are told apart by key."""
    keys: dict[str, None] = {}
    channels: dict[str, None] = {}
    commands: dict[str, None] = dict.fromkeys(ALWAYS)
    entries = [entry for entry in (*service.writes, *service.reads) if entry.kind != "channel"]
    if any(_category(entry) is None for entry in entries):
        commands = dict.fromkeys((*_ANY_TYPE, *ALWAYS))  # what is taken away comes before what is given one by one
    for entry, writes in (*((each, True) for each in service.writes), *((each, False) for each in service.reads)):
        glob = _glob(entry)
        if entry.kind == "channel":
            channels[f"&{glob}"] = None
            commands |= dict.fromkeys(("+publish", "+spublish") if writes else (
                "+subscribe", "+psubscribe", "+ssubscribe", "+unsubscribe", "+punsubscribe", "+sunsubscribe"))
            continue
        for name in (glob, "{*}" + glob) if tagged else (glob,):
            keys[f"~{name}" if writes else f"%R~{name}"] = None
        commands |= dict.fromkeys((*_READS, *(_WRITES if writes else ()), *_commands(entry)))
    return [*keys, *channels, *commands, "-@dangerous"]


def reaches_everything(service: Service) -> list[str]:
    """Patterns of the service that are nothing but a variable, and so take in every key or channel there is."""
    return [entry.pattern for entry in (*service.writes, *service.reads) if not _glob(entry).strip("*")]


def _category(entry: Entry) -> str | None:
    return _OF_TYPE.get(entry.server_type or "")


def _commands(entry: Entry) -> Iterable[str]:
    of_type = _category(entry)
    yield from (of_type,) if of_type is not None else ()
    if entry.type is not None and entry.type.value in _BESIDES:
        yield _BESIDES[entry.type.value]
    if any(name == "scripts" for name, _ in entry.extra):
        yield from _SCRIPTS


def _quoted(rule: str) -> str:
    if rule.isprintable() and not re.search(r"[\s\"'\\]", rule):
        return rule
    plain = rule.replace("\\", "\\\\").replace('"', '\\"')
    # A line must stay one line, and a terminal must not be told anything.
    return '"' + "".join(each if each.isprintable() else "".join(
        f"\\x{byte:02x}" for byte in each.encode(errors="surrogateescape")) for each in plain) + '"'


async def check_acl(
    valkey: Valkey, service: Service, inventory: Inventory, *, tagged: bool = False
) -> list[str]:
    """What the server says the user could not do and should, or could and should not. Empty if all is well.

    Makes a user that nobody can log in as, asks with ACL DRYRUN, and removes it again; nothing is executed. Needs Redis
    7 or Valkey, and the right to use ACL.
    """
    user = f"keystead-check-{secrets.token_hex(8)}"
    node = (await valkey.nodes())[0]
    try:
        await node.run(("ACL", "SETUSER", user, "reset", "off", *rules(service, tagged=tagged)), str)
    except ErrorReply as error:
        raise Invalid(f"the server does not take the rules of {service.user}: {error}") from None
    try:
        return await _troubles(node, user, service, inventory)
    finally:
        await node.run(("ACL", "DELUSER", user), int)


async def _troubles(node: Valkey, user: str, service: Service, inventory: Inventory) -> list[str]:
    written = {id(entry) for entry in service.writes}
    touched = written | {id(entry) for entry in service.reads}
    # A wildcard of the service's own may take in a name of somebody else's pattern; that is not held against it.
    reach = {"read": _reach((*service.writes, *service.reads)), "write": _reach(service.writes)}
    asked: list[tuple[tuple[str, ...], bool, str]] = []
    for entry in inventory.entries:
        if entry.kind == "opaque":
            continue
        sample = sample_name(entry)
        for command, allowed, what in _questions(entry, sample, id(entry) in touched, id(entry) in written):
            if allowed or reach[what.partition(" ")[0]].fullmatch(sample) is None:
                asked.append((command, allowed, f"{what} {entry.pattern}"))
    asked += [(command, False, f"use {command[0]}") for command in (
        ("FLUSHALL",), ("CONFIG", "GET", "*"), ("KEYS", "*"), ("ACL", "LIST"), ("DEBUG", "JMAP"),
        ("SCAN", "0"), ("RANDOMKEY",), ("FUNCTION", "FLUSH"), ("SCRIPT", "FLUSH"))]
    troubles: list[str] = []
    for begin in range(0, len(asked), _AT_ONCE):
        some = asked[begin : begin + _AT_ONCE]
        answers = await asyncio.gather(*(_dry_run(node, user, command) for command, _, _ in some))
        for (_, allowed, what), answer in zip(some, answers, strict=True):
            if allowed and answer:
                troubles.append(f"{service.user} cannot {what}: {answer}")
            elif not allowed and not answer:
                troubles.append(f"{service.user} can {what}, and should not")
    return troubles


def _questions(
    entry: Entry, sample: str, may_read: bool, may_write: bool
) -> Sequence[tuple[tuple[str, ...], bool, str]]:
    if entry.kind == "channel":
        # The server does not tell writing and reading of one channel apart: who has both somewhere, has both here.
        publishing, listening = ("PUBLISH", sample, "x"), ("SUBSCRIBE", sample)
        if may_write:
            return ((publishing, True, "write to"),)
        return ((listening, True, "read"),) if may_read else (
            (publishing, False, "write to"), (listening, False, "read"))
    reading, writing = _PROBES.get(entry.server_type or "", _PROBES[""])
    return ((tuple(word.format(sample) for word in reading), may_read, "read"),
            (tuple(word.format(sample) for word in writing), may_write, "write"))


def _reach(entries: Iterable[Entry]) -> re.Pattern[str]:
    """Fits every name that the wildcards of these entries fit."""
    globs = {_glob(entry) for entry in entries}
    return re.compile("|".join(map(_as_expression, globs)) or r"(?!)", re.DOTALL)


def _glob(entry: Entry) -> str:
    glob = Matcher(Inventory("", (entry,))).glob(entry).decode(errors="surrogateescape")
    return re.sub(r"[ \t\n\v\f\r\0]", "?", glob)  # the server takes no rule with a space in it


def _as_expression(glob: str) -> str:
    """A glob without classes, as the matcher writes them, as an expression."""
    return "".join(".*" if part == "*" else "." if part == "?" else re.escape(part[-1:] if part[0] == "\\" else part)
                   for part in re.findall(r"\\.|.", glob, re.DOTALL))


async def _dry_run(node: Valkey, user: str, command: Sequence[str]) -> str:
    """Empty if the user may; otherwise why not."""
    answer = await node.run(("ACL", "DRYRUN", user, *command), lambda reply: reply)
    said = answer.decode(errors="replace") if isinstance(answer, bytes) else str(answer)
    return "" if said == "OK" else said


def sample_name(entry: Entry) -> str:
    """A name that fits the pattern."""
    return _VARIABLE.sub("1", entry.pattern)

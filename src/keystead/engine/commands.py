"""What the engine knows of commands: which may be repeated, which wait, which need a connection of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import hiredis
import redis.exceptions
from redis.client import EMPTY_RESPONSE, NEVER_DECODE


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Reads: running one twice does no harm, so a lost reply is asked for again.
REPEATABLE = _words(
    """
    BITCOUNT BITFIELD_RO BITPOS COMMAND DBSIZE DUMP ECHO EVALSHA_RO EVAL_RO EXISTS EXPIRETIME FCALL_RO GEODIST
    GEOHASH GEOPOS GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GET GETBIT GETRANGE HEXISTS HEXPIRETIME HGET HGETALL
    HKEYS HLEN HMGET HPEXPIRETIME HPTTL HRANDFIELD HSCAN HSTRLEN HTTL HVALS INFO KEYS LASTSAVE LCS LINDEX LLEN
    LOLWUT LPOS LRANGE MGET PEXPIRETIME PFCOUNT PING PTTL RANDOMKEY ROLE SCAN SCARD SDIFF SINTER SINTERCARD
    SISMEMBER SMEMBERS SMISMEMBER SORT_RO SRANDMEMBER SSCAN STRLEN SUBSTR SUNION TIME TTL TYPE XINFO XLEN XPENDING
    XRANGE XREAD XREVRANGE ZCARD ZCOUNT ZDIFF ZINTER ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX
    ZRANGEBYSCORE ZRANK ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION
    """
) | {
    "ACL LIST", "ACL WHOAMI", "CLIENT GETNAME", "CLIENT ID", "CLIENT INFO", "CLIENT LIST", "CLUSTER INFO",
    "CLUSTER KEYSLOT", "CLUSTER NODES", "CLUSTER SHARDS", "CLUSTER SLOTS", "COMMAND COUNT", "COMMAND DOCS",
    "COMMAND INFO", "COMMAND LIST", "CONFIG GET", "FUNCTION LIST", "MEMORY STATS", "MEMORY USAGE",
    "OBJECT ENCODING", "OBJECT FREQ", "OBJECT IDLETIME", "OBJECT REFCOUNT", "PUBSUB CHANNELS", "PUBSUB NUMPAT",
    "PUBSUB NUMSUB", "PUBSUB SHARDCHANNELS", "PUBSUB SHARDNUMSUB", "SCRIPT EXISTS", "SCRIPT LOAD", "SCRIPT SHOW",
    "SLOWLOG GET", "SLOWLOG LEN", "XINFO CONSUMERS", "XINFO GROUPS", "XINFO STREAM",
}  # fmt: skip

# First words of commands that leave nothing behind that a replica must have: reads, what concerns one server or one
# connection alone, and blocking commands, whose writes are looked after when they took something.
_UNREPLICATED = frozenset(
    name.encode() for name in (
        *(name for name in REPEATABLE if " " not in name), "ACL", "ASKING", "AUTH", "BGREWRITEAOF", "BGSAVE", "CLIENT",
        "CLUSTER", "CONFIG", "DEBUG", "DISCARD", "EXEC", "HELLO", "LATENCY", "MEMORY", "MULTI", "OBJECT", "PUBLISH",
        "PUBSUB", "READONLY", "SAVE", "SCRIPT", "SELECT", "SLOWLOG", "SPUBLISH", "UNWATCH", "WAIT", "WAITAOF", "WATCH",
        "BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN",
    )
)  # fmt: skip


def writes(name: bytes) -> bool:
    """Whether a command with this first word may change what replicas must have."""
    return name.upper() not in _UNREPLICATED


def wait_for(replicas: int, seconds: float) -> tuple[str, int, int]:
    """The command that is answered when so many replicas have what its connection wrote, or when the time is over."""
    return "WAIT", replicas, max(1, round(seconds * 1000))


# What redis-py puts among the options for itself.
NOT_FOR_CALLBACKS = frozenset((EMPTY_RESPONSE, NEVER_DECODE, "keys"))

# Commands that hold the connection until something happens: they would make every other task wait.
BLOCKING = _words(
    """
    BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN
    """
)
MAY_BLOCK = frozenset(("XREAD", "XREADGROUP"))

# WAIT speaks of the writes of its own connection, so it belongs in the pipeline that wrote.
OWN_PIPELINE = frozenset(("WAIT", "WAITAOF"))

# Commands that change the connection itself, which everyone shares.
STATEFUL = _words(
    """
    ASKING AUTH DISCARD EXEC HELLO HIMPORT MONITOR MULTI PSUBSCRIBE PSYNC PUNSUBSCRIBE QUIT READONLY READWRITE REPLCONF
    RESET SELECT SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE SYNC UNSUBSCRIBE UNWATCH WATCH
    """
) | {
    "CLIENT CACHING", "CLIENT CAPA", "CLIENT IMPORT-SOURCE", "CLIENT NO-EVICT", "CLIENT NO-TOUCH", "CLIENT REPLY",
    "CLIENT SETINFO", "CLIENT SETNAME", "CLIENT TRACKING", "SCRIPT DEBUG",
}  # fmt: skip

# Commands whose second word decides.
_CONTAINERS = _words(
    "ACL CLIENT CLUSTER COMMAND CONFIG FUNCTION HIMPORT LATENCY MEMORY OBJECT PUBSUB SCRIPT SLOWLOG XGROUP XINFO"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How one command name is treated; looked up once per call."""

    repeat: bool
    shared: bool
    may_block: bool
    stateful: bool
    plain: bool  # nothing special: straight onto the shared connection
    callback: Any  # redis-py's: from raw reply to the shape its users expect

    def shape(self, reply: Any, options: dict[str, Any]) -> Any:
        if self.callback is None:
            return reply
        if options:
            options = {name: value for name, value in options.items() if name not in NOT_FOR_CALLBACKS}
        return self.callback(reply, **options)


def plan(name: str, callbacks: dict[str, Any]) -> Plan:
    """``name`` is what the caller wrote first: a name, a name of two words, or even a whole command in one string."""
    known = full_name((name,)).upper()
    stateful = known in STATEFUL or known.partition(" ")[0] in STATEFUL
    shared = known not in BLOCKING and known not in OWN_PIPELINE
    may_block = known in MAY_BLOCK
    return Plan(
        repeat=known in REPEATABLE,
        shared=shared,
        may_block=may_block,
        stateful=stateful,
        plain=shared and not stateful and not may_block and known not in _CONTAINERS,
        callback=callbacks.get(name.upper()),
    )


def full_name(args: tuple[Any, ...]) -> str:
    """``CLIENT SETNAME`` whether it was given as one word group or as two arguments."""
    words = _text(args[0]).split()
    if len(words) == 1 and len(args) > 1 and words[0].upper() in _CONTAINERS:
        return f"{words[0]} {_text(args[1])}"
    return " ".join(words[: 2 if words and words[0].upper() in _CONTAINERS else 1])


def _text(word: Any) -> str:
    return word if isinstance(word, str) else bytes(word).decode("latin-1") if isinstance(word, bytes) else str(word)


def blocks(args: tuple[Any, ...]) -> bool:
    """Whether a stream read was asked to wait."""
    return _block_ms(args) is not None


def _block_ms(args: tuple[Any, ...]) -> Any:
    words = [*_text(args[0]).split(), *args[1:10]]
    for place, word in enumerate(words):
        upper = word.upper() if isinstance(word, str | bytes) else None
        if upper in ("BLOCK", b"BLOCK"):
            return words[place + 1] if place + 1 < len(words) else 0
        if upper in ("STREAMS", b"STREAMS"):
            break
    return None


def longest_wait_seconds(args: tuple[Any, ...]) -> float | None:
    """How long the server may keep a command waiting; ``None`` when it may take forever or nobody can say."""
    name = full_name(args).upper()
    if name in MAY_BLOCK:
        wait, unit = _block_ms(args), 1000.0
        if wait is None:
            return 0.0
    elif name in OWN_PIPELINE:
        wait, unit = args[-1], 1000.0
    elif name in ("BLMPOP", "BZMPOP"):
        wait, unit = (args[1] if len(args) > 1 else None), 1.0
    elif name in BLOCKING:
        wait, unit = args[-1], 1.0
    else:
        return 0.0
    try:
        seconds = float(wait) / unit
    except (TypeError, ValueError):
        return None
    return seconds or None


def pack(args: Any) -> bytes:
    """One command as the protocol has it. A command name of several words is split."""
    name = args[0]
    if isinstance(name, str):
        if " " in name:
            args = (*name.split(), *args[1:])
    elif b" " in name:
        args = (*name.split(), *args[1:])
    try:
        packed: bytes = hiredis.pack_command(args)
    except TypeError:
        packed = hiredis.pack_command(tuple(_plain(argument) for argument in args))
    except UnicodeEncodeError:
        raise redis.exceptions.DataError("a command argument is not valid Unicode; pass it as bytes") from None
    return packed


def _plain(argument: Any) -> Any:
    if isinstance(argument, bytearray | memoryview):
        return bytes(argument)
    if isinstance(argument, bool) or not isinstance(argument, str | bytes | int | float):
        raise redis.exceptions.DataError(
            f"a command argument of type {type(argument).__name__} cannot be sent; make it bytes, str, int or float"
        )
    return argument


def multi(commands: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [("MULTI",), *commands, ("EXEC",)]


def transaction_replies(replies: list[Any]) -> list[Any]:
    """The replies of the commands inside a MULTI block; raises the first error of any of them."""
    for reply in replies[1:-1]:
        if isinstance(reply, Exception):
            raise reply
    outcome = replies[-1]
    if isinstance(outcome, Exception):
        raise outcome
    if outcome is None:
        raise redis.exceptions.WatchError("a watched key changed")
    for reply in outcome:
        if isinstance(reply, Exception):
            raise reply
    result: list[Any] = outcome
    return result

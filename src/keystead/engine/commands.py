"""What the engine knows of commands: which may be repeated, which wait, which need a connection of their own."""

from dataclasses import dataclass
from typing import Any

import hiredis
import redis.exceptions


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Reads: running one twice does no harm, so a lost reply is asked for again.
REPEATABLE = _words(
    """
    BITCOUNT BITFIELD_RO BITPOS COMMAND DBSIZE DUMP ECHO EXISTS EXPIRETIME GEODIST GEOHASH GEOPOS
    GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GET GETBIT GETRANGE HEXISTS HGET HGETALL HKEYS HLEN HMGET HRANDFIELD
    HSCAN HSTRLEN HVALS INFO KEYS LASTSAVE LCS LINDEX LLEN LOLWUT LPOS LRANGE MGET PEXPIRETIME PFCOUNT PING PTTL
    RANDOMKEY ROLE SCAN SCARD SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS SMISMEMBER SORT_RO SRANDMEMBER SSCAN STRLEN
    SUBSTR SUNION TIME TTL TYPE XINFO XLEN XPENDING XRANGE XREAD XREVRANGE ZCARD ZCOUNT ZDIFF ZINTER ZINTERCARD
    ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE
    ZREVRANK ZSCAN ZSCORE ZUNION
    """
) | {
    "CLIENT ID", "CLIENT INFO", "CLIENT LIST", "CLUSTER INFO", "CLUSTER NODES", "CLUSTER SHARDS", "CLUSTER SLOTS",
    "CONFIG GET", "MEMORY USAGE", "MEMORY STATS", "OBJECT ENCODING", "OBJECT FREQ", "OBJECT IDLETIME",
    "OBJECT REFCOUNT", "PUBSUB CHANNELS", "PUBSUB NUMSUB", "PUBSUB NUMPAT", "SCRIPT EXISTS", "SCRIPT LOAD",
    "SLOWLOG GET", "SLOWLOG LEN", "XINFO CONSUMERS", "XINFO GROUPS", "XINFO STREAM", "EVAL_RO", "EVALSHA_RO",
}  # fmt: skip

# Commands that hold the connection until something happens: they would make every other task wait.
BLOCKING = _words(
    """
    BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN MONITOR SYNC PSYNC
    """
)
MAY_BLOCK = frozenset(("XREAD", "XREADGROUP"))

# WAIT speaks of the writes of its own connection, so it belongs in the pipeline that wrote.
OWN_PIPELINE = frozenset(("WAIT", "WAITAOF"))

# Commands that change the connection itself, which everyone shares.
STATEFUL = _words(
    """
    ASKING AUTH DISCARD EXEC HELLO MULTI PSUBSCRIBE PUNSUBSCRIBE QUIT READONLY READWRITE RESET SELECT SSUBSCRIBE
    SUBSCRIBE SUNSUBSCRIBE UNSUBSCRIBE UNWATCH WATCH
    """
) | {"CLIENT REPLY", "CLIENT SETNAME", "CLIENT TRACKING", "CLIENT CACHING", "CLIENT NO-EVICT", "CLIENT NO-TOUCH"}


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
        options.pop("keys", None)
        return self.callback(reply, **options)


def plan(name: str, callbacks: dict[str, Any]) -> Plan:
    upper = name.upper()
    shared = upper not in BLOCKING and upper not in OWN_PIPELINE
    return Plan(
        repeat=upper in REPEATABLE,
        shared=shared,
        may_block=upper in MAY_BLOCK,
        stateful=upper in STATEFUL,
        plain=shared and upper not in MAY_BLOCK and upper not in STATEFUL and upper != "CLIENT",
        callback=callbacks.get(upper),
    )


def full_name(args: tuple[Any, ...]) -> str:
    """``CLIENT SETNAME`` whether it was given as one word group or as two arguments."""
    name = args[0] if isinstance(args[0], str) else bytes(args[0]).decode("latin-1")
    if len(args) > 1 and name.upper() in ("CLIENT", "CONFIG", "MEMORY", "OBJECT", "SCRIPT", "CLUSTER", "XINFO"):
        second = args[1] if isinstance(args[1], str) else str(args[1])
        return f"{name} {second}"
    return name


def blocks(args: tuple[Any, ...]) -> bool:
    """Whether a stream read was asked to wait."""
    return any(isinstance(word, str | bytes) and word in ("BLOCK", b"BLOCK", "block", b"block") for word in args[1:8])


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

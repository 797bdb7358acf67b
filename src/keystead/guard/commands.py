"""Every command of Redis and Valkey that names keys: where they stand, what types it works on, what it does to expiry.

The table is written down rather than asked of the server, so that a guard needs no connection and judges a command
before it leaves. A test holds it against what the server says of its own commands.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from keystead.guard.places import Find, Words, after, at, counted, migrated, row, streams, upper


class Effect(Enum):
    """What a command does to the expiry of a key."""

    NONE = "none"  # it reads, or takes parts away: nothing new comes to be
    MAKES = "makes"  # it may make the key, and gives it no expiry
    RENEWS = "renews"  # it makes the key anew without an expiry, whatever it had
    REPLACES = "replaces"  # it makes the key anew; the command itself says when it ends, if at all
    EXPIRES = "expires"  # it sets when the key ends
    PERSISTS = "persists"  # it takes the expiry away
    ENDS = "ends"  # it removes the key
    UNKNOWN = "unknown"  # a script or a copy: what it does cannot be seen from outside


@dataclass(frozen=True, slots=True)
class Place:
    """Keys that a command treats alike. ``types`` are what TYPE may answer for them; empty means any."""

    find: Find
    types: frozenset[str]
    effect: Effect


@dataclass(frozen=True, slots=True)
class Command:
    """What is known of one command. ``single``: its only key is the first word after the name."""

    name: str
    places: tuple[Place, ...]
    single: bool = False
    channels: Find | None = None
    wildcards: bool = False  # the channels are patterns of names


_ANY: Final[frozenset[str]] = frozenset()
_TABLE: dict[str, Command] = {}


def _types(names: str) -> frozenset[str]:
    return frozenset(names.split())


def _add(names: str, *places: Place, single: bool = False) -> None:
    for name in names.split():
        name = name.replace("|", " ")
        _TABLE[name] = Command(name, places, single)


def _singles(types: str, effect: Effect, names: str) -> None:
    _add(names, Place(at(1), _types(types), effect), single=True)


_SAME, _MAKES, _ENDS = Effect.NONE, Effect.MAKES, Effect.ENDS
_UNKNOWN, _EXPIRES, _REPLACES, _RENEWS = Effect.UNKNOWN, Effect.EXPIRES, Effect.REPLACES, Effect.RENEWS

_singles("", _SAME, "DUMP TYPE TTL PTTL EXPIRETIME PEXPIRETIME MEMORY|USAGE OBJECT|ENCODING OBJECT|FREQ "
                    "OBJECT|IDLETIME OBJECT|REFCOUNT DEBUG|OBJECT")
_singles("", _UNKNOWN, "MOVE DEBUG|RELOAD")
_singles("", _EXPIRES, "EXPIRE PEXPIRE EXPIREAT PEXPIREAT")
_singles("", Effect.PERSISTS, "PERSIST")
_singles("", _REPLACES, "RESTORE RESTORE-ASKING")
_singles("list set zset", _SAME, "SORT_RO")

_singles("string", _SAME, "GET GETRANGE SUBSTR STRLEN GETBIT BITCOUNT BITPOS BITFIELD_RO DIGEST")
_singles("string", _MAKES, "APPEND INCR INCRBY INCRBYFLOAT DECR DECRBY SETNX SETRANGE SETBIT BITFIELD PFADD")
_singles("string", _RENEWS, "GETSET")
_singles("string", _REPLACES, "SET SETEX PSETEX")
_singles("string", _EXPIRES, "GETEX")
_singles("string", _ENDS, "GETDEL")
_singles("string", _SAME, "DELIFEQ DELEX")

_singles("hash", _SAME, "HGET HMGET HGETALL HKEYS HVALS HLEN HEXISTS HSTRLEN HRANDFIELD HSCAN HTTL HPTTL HEXPIRETIME "
                        "HPEXPIRETIME HDEL HGETDEL HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT HPERSIST HGETEX")
_singles("hash", _MAKES, "HSET HMSET HSETNX HINCRBY HINCRBYFLOAT HSETEX")

_singles("list", _SAME, "LINDEX LLEN LRANGE LPOS LPOP RPOP LREM LSET LTRIM LINSERT LPUSHX RPUSHX")
_singles("list", _MAKES, "LPUSH RPUSH")

_singles("set", _SAME, "SCARD SISMEMBER SMISMEMBER SMEMBERS SRANDMEMBER SSCAN SPOP SREM")
_singles("set", _MAKES, "SADD")

_singles("zset", _SAME, "ZCARD ZCOUNT ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE "
                        "ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK "
                        "ZREMRANGEBYSCORE ZPOPMAX ZPOPMIN GEODIST GEOHASH GEOPOS GEOSEARCH GEORADIUS_RO "
                        "GEORADIUSBYMEMBER_RO")
_singles("zset", _MAKES, "ZADD ZINCRBY GEOADD")

_singles("stream", _SAME, "XLEN XRANGE XREVRANGE XPENDING XACK XDEL XTRIM XCLAIM XAUTOCLAIM XSETID XINFO|STREAM "
                          "XINFO|GROUPS XINFO|CONSUMERS XGROUP|CREATECONSUMER XGROUP|DELCONSUMER XGROUP|DESTROY "
                          "XGROUP|SETID XACKDEL XDELEX XCFGSET")
_singles("stream", _MAKES, "XADD XGROUP|CREATE")

# Modules, as Redis 8 and Redis Stack have them.
_singles("ReJSON-RL", _SAME, "JSON.GET JSON.TYPE JSON.STRLEN JSON.ARRLEN JSON.OBJLEN JSON.OBJKEYS JSON.ARRINDEX "
                             "JSON.RESP JSON.DEL JSON.FORGET JSON.CLEAR JSON.ARRPOP JSON.ARRTRIM JSON.ARRAPPEND "
                             "JSON.ARRINSERT JSON.NUMINCRBY JSON.NUMMULTBY JSON.STRAPPEND JSON.TOGGLE "
                             "JSON.DEBUG|MEMORY")
_singles("ReJSON-RL", _MAKES, "JSON.SET JSON.MERGE")
_singles("TSDB-TYPE", _SAME, "TS.GET TS.RANGE TS.REVRANGE TS.INFO TS.DEL TS.ALTER")
_singles("TSDB-TYPE", _MAKES, "TS.CREATE TS.ADD TS.INCRBY TS.DECRBY")
_singles("MBbloom--", _SAME, "BF.EXISTS BF.MEXISTS BF.INFO BF.CARD BF.SCANDUMP")
_singles("MBbloom--", _MAKES, "BF.ADD BF.MADD BF.INSERT BF.RESERVE BF.LOADCHUNK")
_singles("MBbloomCF", _SAME, "CF.EXISTS CF.MEXISTS CF.INFO CF.COUNT CF.DEL CF.SCANDUMP")
_singles("MBbloomCF", _MAKES, "CF.ADD CF.ADDNX CF.INSERT CF.INSERTNX CF.RESERVE CF.LOADCHUNK")
_singles("CMSk-TYPE", _SAME, "CMS.QUERY CMS.INFO")
_singles("CMSk-TYPE", _MAKES, "CMS.INITBYDIM CMS.INITBYPROB CMS.INCRBY")
_singles("TopK-TYPE", _SAME, "TOPK.QUERY TOPK.COUNT TOPK.LIST TOPK.INFO")
_singles("TopK-TYPE", _MAKES, "TOPK.RESERVE TOPK.ADD TOPK.INCRBY")
_singles("TDIS-TYPE", _SAME, "TDIGEST.QUANTILE TDIGEST.CDF TDIGEST.MIN TDIGEST.MAX TDIGEST.INFO TDIGEST.RANK "
                             "TDIGEST.REVRANK TDIGEST.BYRANK TDIGEST.BYREVRANK TDIGEST.TRIMMED_MEAN")
_singles("TDIS-TYPE", _MAKES, "TDIGEST.CREATE TDIGEST.ADD TDIGEST.RESET")
_singles("vectorset", _SAME, "VCARD VDIM VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VRANGE VREM VSETATTR VSIM")
_singles("vectorset", _MAKES, "VADD")


def _several(names: str, types: str, effect: Effect, find: Find) -> None:
    _add(names, Place(find, _types(types), effect))


_several("EXISTS TOUCH WATCH", "", _SAME, row(1))
_several("DEL UNLINK", "", _ENDS, row(1))
_several("MGET PFCOUNT", "string", _SAME, row(1))
_several("JSON.MGET", "ReJSON-RL", _SAME, lambda words: words[1:-1])
_several("JSON.MSET", "ReJSON-RL", _MAKES, row(1, step=3))
_several("TS.MADD", "TSDB-TYPE", _SAME, row(1, step=3))
_several("TS.CREATERULE TS.DELETERULE", "TSDB-TYPE", _SAME, at(1, 2))
_several("MSET", "string", _RENEWS, row(1, step=2))
_several("MSETNX", "string", _MAKES, row(1, step=2))
_several("MSETEX", "string", _REPLACES, counted(1, step=2))
_several("LCS", "string", _SAME, at(1, 2))
_several("PFMERGE", "string", _MAKES, row(1))
_several("PFDEBUG", "string", _SAME, at(2))
_several("SINTER SUNION SDIFF", "set", _SAME, row(1))
_several("SINTERCARD", "set", _SAME, counted(1))
_several("ZINTER ZUNION ZDIFF ZINTERCARD", "zset set", _SAME, counted(1))
_several("BLPOP BRPOP", "list", _SAME, lambda words: words[1:-1])
_several("BZPOPMIN BZPOPMAX", "zset", _SAME, lambda words: words[1:-1])
_several("LMPOP", "list", _SAME, counted(1))
_several("BLMPOP", "list", _SAME, counted(2))
_several("ZMPOP", "zset", _SAME, counted(1))
_several("BZMPOP", "zset", _SAME, counted(2))
_several("XREAD XREADGROUP", "stream", _SAME, streams)
_several("EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO", "", _UNKNOWN, counted(2))
_several("MIGRATE", "", _UNKNOWN, migrated)
_several("RENAME RENAMENX COPY", "", _UNKNOWN, at(1, 2))


def _stores(names: str, result: str, into: Find, sources: str, out_of: Find, effect: Effect = _RENEWS) -> None:
    _add(names, Place(into, _types(result), effect), Place(out_of, _types(sources), _SAME))


_stores("SINTERSTORE SUNIONSTORE SDIFFSTORE", "set", at(1), "set", row(2))
_stores("ZINTERSTORE ZUNIONSTORE ZDIFFSTORE", "zset", at(1), "zset set", counted(2))
_stores("ZRANGESTORE GEOSEARCHSTORE", "zset", at(1), "zset", at(2))
_stores("BITOP", "string", at(2), "string", row(3))
_stores("LMOVE BLMOVE RPOPLPUSH BRPOPLPUSH", "list", at(2), "list", at(1), _MAKES)
_stores("SMOVE", "set", at(2), "set", at(1), _MAKES)
_stores("SORT", "list", after("STORE"), "list set zset", at(1))
_stores("GEORADIUS GEORADIUSBYMEMBER", "zset", after("STORE", "STOREDIST", begin=4), "zset", at(1))
_stores("CMS.MERGE", "CMSk-TYPE", at(1), "CMSk-TYPE", counted(2), _MAKES)
_stores("TDIGEST.MERGE", "TDIS-TYPE", at(1), "TDIS-TYPE", counted(2), _MAKES)

_TABLE |= {name: Command(name, (), channels=at(1)) for name in ("PUBLISH", "SPUBLISH")}
_TABLE |= {name: Command(name, (), channels=row(1)) for name in ("SUBSCRIBE", "SSUBSCRIBE")}
_TABLE["PSUBSCRIBE"] = Command("PSUBSCRIBE", (), channels=row(1), wildcards=True)

# Commands without keys. What is neither here nor above is counted as unknown and left alone.
WITHOUT_KEYS: Final = _types(
    "ACL ASKING AUTH BGREWRITEAOF BGSAVE CLIENT CLUSTER CLUSTERSCAN COMMAND COMMANDLOG CONFIG DBSIZE DEBUG DISCARD "
    "ECHO EXEC FAILOVER FLUSHALL FLUSHDB FT.AGGREGATE FT.ALIASADD FT.ALIASDEL FT.ALIASUPDATE FT.ALTER FT.CONFIG "
    "FT.CREATE FT.CURSOR FT.DROPINDEX FT.EXPLAIN FT.HYBRID FT.INFO FT.PROFILE FT.SEARCH FT.TAGVALS FT._LIST "
    "FUNCTION HELLO HOTKEYS INFO KEYS LASTSAVE LATENCY LOLWUT MEMORY MODULE MONITOR MULTI OBJECT PFSELFTEST PING "
    "PSYNC PUBSUB PUNSUBSCRIBE QUIT RANDOMKEY READONLY READWRITE REPLCONF REPLICAOF RESET ROLE SAVE SCAN SCRIPT "
    "SELECT SENTINEL SHUTDOWN SLAVEOF SLOWLOG SUNSUBSCRIBE SWAPDB SYNC TIME TS.MGET TS.MRANGE TS.MREVRANGE "
    "TS.QUERYINDEX UNSUBSCRIBE UNWATCH WAIT WAITAOF XGROUP XINFO "
)


def find_command(words: Words) -> tuple[Command | None, Words]:
    """The command of these words, and the words with its name in one piece; ``None`` if it names no key."""
    name = words[0] if words[0].__class__ is str else _text(words[0])
    command = _TABLE.get(name)
    if command is not None:
        return command, words
    command = _TABLE.get(name.upper())
    if command is not None:
        return command, words
    if " " in name:  # as in "MEMORY  USAGE", or a whole command in one piece
        return find_command((*name.split(), *words[1:]))
    if len(words) > 1:
        double = f"{name.upper()} {upper(words[1])}"
        if double in _TABLE:
            return _TABLE[double], (double, *words[2:])
    return None, words


def _text(word: Any) -> str:
    if isinstance(word, (bytes, bytearray)):
        return word.decode("latin-1")
    return word if isinstance(word, str) else ""


def is_known(words: Words) -> bool:
    """Whether a command is one that the table knows to name no key."""
    return upper(words[0]).partition(" ")[0] in WITHOUT_KEYS


def all_commands() -> Iterable[Command]:
    return _TABLE.values()

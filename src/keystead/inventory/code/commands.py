"""The commands of the server that name keys: the type they imply, whether they read or write, which words are keys."""

from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Final


class Access(Enum):
    """What a command does to a key."""

    READ = "reads"
    WRITE = "writes"  # and makes it, if it was not there
    CHANGE = "changes"  # writes to what is there, or deletes it; says nothing about how long it lives
    EXPIRE = "expires"


class Keys(Enum):
    """Which arguments of a command are keys."""

    FIRST = "first"
    ALL = "all"
    ALL_BUT_LAST = "all but the last"  # BLPOP key key timeout
    PAIRS = "every second"  # MSET key value key value
    FIRST_TWO = "first two"  # RENAME, SMOVE, RPOPLPUSH
    COUNTED = "counted"  # ZUNIONSTORE destination count key key
    COUNTED_FIRST = "counted first"  # ZUNION count key key
    SCRIPT = "script"  # EVAL script count key key
    STREAMS = "streams"  # XREAD … STREAMS key id
    GROUP = "group"  # XREADGROUP
    PATTERN = "pattern"  # KEYS, SCAN MATCH
    CHANNEL = "channel"
    CHANNELS = "channels"
    CHANNEL_PATTERNS = "channel patterns"
    RAW = "raw"  # the command itself is the first argument
    SECOND = "second"  # OBJECT ENCODING key, MEMORY USAGE key


@dataclass(frozen=True, slots=True)
class Command:
    """One command. ``type`` is empty if every type bears it."""

    name: str
    type: str
    access: Access
    keys: Keys = Keys.FIRST
    plain: bool = False  # methods of that name are common in programs that have nothing to do with the server


# type, access, keys: names. A name with a dot behind it is a common word in programs.
_TABLE: Final = """
string READ FIRST: GET. GETRANGE SUBSTR STRLEN GETEX LCS
string WRITE FIRST: SET. SETEX PSETEX SETNX GETSET APPEND. SETRANGE
string CHANGE FIRST: GETDEL
string READ ALL: MGET
string WRITE PAIRS: MSET MSETNX
integer WRITE FIRST: INCR. INCRBY DECR. DECRBY
float WRITE FIRST: INCRBYFLOAT
bitmap READ FIRST: GETBIT BITCOUNT BITPOS BITFIELD_RO
bitmap WRITE FIRST: SETBIT BITFIELD
hyperloglog WRITE FIRST: PFADD
hyperloglog READ ALL: PFCOUNT
hyperloglog WRITE ALL: PFMERGE
hash WRITE FIRST: HSET HSETNX HMSET HINCRBY HINCRBYFLOAT HSETEX
hash READ FIRST: HGET HMGET HGETALL HKEYS HVALS HLEN HEXISTS HSTRLEN HSCAN HRANDFIELD HTTL HPTTL HGETEX
hash CHANGE FIRST: HDEL HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT HPERSIST HGETDEL
list WRITE FIRST: LPUSH RPUSH LINSERT LSET
list CHANGE FIRST: LPUSHX RPUSHX LPOP RPOP LTRIM LREM
list READ FIRST: LRANGE LLEN LINDEX LPOS
list CHANGE ALL_BUT_LAST: BLPOP BRPOP
list WRITE FIRST_TWO: RPOPLPUSH BRPOPLPUSH LMOVE BLMOVE
list CHANGE COUNTED_FIRST: LMPOP BLMPOP
set WRITE FIRST: SADD
set CHANGE FIRST: SREM SPOP
set READ FIRST: SMEMBERS SISMEMBER SMISMEMBER SCARD SRANDMEMBER SSCAN
set READ ALL: SINTER SUNION SDIFF
set READ COUNTED_FIRST: SINTERCARD
set WRITE ALL: SINTERSTORE SUNIONSTORE SDIFFSTORE
set WRITE FIRST_TWO: SMOVE
zset WRITE FIRST: ZADD ZINCRBY
zset CHANGE FIRST: ZREM ZREMRANGEBYSCORE ZREMRANGEBYRANK ZREMRANGEBYLEX ZPOPMIN ZPOPMAX
zset CHANGE ALL_BUT_LAST: BZPOPMIN BZPOPMAX
zset READ FIRST: ZRANGE ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZRANGEBYLEX ZREVRANGEBYLEX ZSCORE ZMSCORE
zset READ FIRST: ZRANK ZREVRANK ZCARD ZCOUNT ZLEXCOUNT ZSCAN ZRANDMEMBER
zset WRITE COUNTED: ZUNIONSTORE ZINTERSTORE ZDIFFSTORE
zset WRITE FIRST_TWO: ZRANGESTORE
zset READ COUNTED_FIRST: ZUNION ZINTER ZDIFF ZINTERCARD ZMPOP
geo WRITE FIRST: GEOADD
geo READ FIRST: GEOPOS GEODIST GEOHASH GEOSEARCH GEORADIUS GEORADIUSBYMEMBER
geo WRITE FIRST_TWO: GEOSEARCHSTORE
stream WRITE FIRST: XADD
stream CHANGE FIRST: XDEL XTRIM XACK XCLAIM XAUTOCLAIM XSETID
stream READ FIRST: XRANGE XREVRANGE XLEN XPENDING
stream WRITE SECOND: XGROUP
stream READ SECOND: XINFO
stream READ STREAMS: XREAD
stream CHANGE GROUP: XREADGROUP
rejson WRITE FIRST: JSON.SET JSON.MERGE JSON.NUMINCRBY JSON.ARRAPPEND
rejson READ FIRST: JSON.GET JSON.TYPE JSON.ARRLEN JSON.OBJKEYS
rejson CHANGE FIRST: JSON.DEL JSON.FORGET
- CHANGE ALL: DEL. UNLINK. TOUCH.
- READ ALL: EXISTS. WATCH.
- READ FIRST: TYPE. TTL. PTTL EXPIRETIME PEXPIRETIME DUMP. SORT.
- READ SECOND: OBJECT. MEMORY.
- EXPIRE FIRST: EXPIRE. PEXPIRE EXPIREAT PEXPIREAT
- CHANGE FIRST: PERSIST. RESTORE.
- WRITE FIRST_TWO: RENAME. RENAMENX COPY.
- READ PATTERN: KEYS. SCAN.
- WRITE SCRIPT: EVAL. EVALSHA FCALL EVAL_RO EVALSHA_RO FCALL_RO
- WRITE CHANNEL: PUBLISH. SPUBLISH
- READ CHANNELS: SUBSCRIBE. SSUBSCRIBE UNSUBSCRIBE.
- READ CHANNEL_PATTERNS: PSUBSCRIBE PUNSUBSCRIBE
"""

# What clients call a command, where that is not its own name without underscores.
_ALIASES: Final = {
    "DELETE": "DEL", "REMOVE": "DEL", "EXISTS?": "EXISTS", "SISMEMBER?": "SISMEMBER", "HEXISTS?": "HEXISTS",
    "SADD?": "SADD", "SREM?": "SREM", "MAPPEDMGET": "MGET", "MAPPEDMSET": "MSET", "MAPPEDHMSET": "HMSET",
    "MAPPEDHMGET": "HMGET", "SCANITER": "SCAN", "SCANEACH": "SCAN", "SCANSTREAM": "SCAN", "SCANITERATOR": "SCAN",
    "HSCANITER": "HSCAN",
    "SSCANITER": "SSCAN", "ZSCANITER": "ZSCAN", "HSCANEACH": "HSCAN", "SSCANEACH": "SSCAN", "ZSCANEACH": "ZSCAN",
    "HSCANSTREAM": "HSCAN", "SSCANSTREAM": "SSCAN", "ZSCANSTREAM": "ZSCAN", "INCREMENT": "INCR",
    "DECREMENT": "DECR", "GETSETTTL": "GETEX", "SETXX": "SET", "SETARGS": "SET", "SETIFABSENT": "SETNX",
    "SUBSCRIBETO": "SUBSCRIBE", "XGROUPCREATE": "XGROUP", "XGROUPCREATEMKSTREAM": "XGROUP", "XGROUPDESTROY": "XGROUP",
    "XGROUPDELCONSUMER": "XGROUP", "XINFOSTREAM": "XINFO", "XINFOGROUPS": "XINFO", "XINFOCONSUMERS": "XINFO",
    "OBJECTENCODING": "OBJECT", "OBJECTIDLETIME": "OBJECT", "MEMORYUSAGE": "MEMORY", "KEYSASYNC": "KEYS",
    "ZRANGEWITHSCORES": "ZRANGE", "ZREVRANGEWITHSCORES": "ZREVRANGE", "ZRANGEBYSCOREWITHSCORES": "ZRANGEBYSCORE",
    "ZREVRANGEBYSCOREWITHSCORES": "ZREVRANGEBYSCORE", "SMEMBERSMAP": "SMEMBERS", "SPOPN": "SPOP",
    "SRANDMEMBERN": "SRANDMEMBER", "LPOPCOUNT": "LPOP", "RPOPCOUNT": "RPOP", "ZADDNX": "ZADD", "ZADDXX": "ZADD",
    "ZADDARGS": "ZADD", "HRANDFIELDWITHVALUES": "HRANDFIELD", "JSONSET": "JSON.SET", "JSONGET": "JSON.GET",
    "JSONDEL": "JSON.DEL", "JSONMERGE": "JSON.MERGE", "JSONNUMINCRBY": "JSON.NUMINCRBY", "ZRANGEARGS": "ZRANGE",
    "JSONARRAPPEND": "JSON.ARRAPPEND", "BITFIELDRO": "BITFIELD_RO", "EVALRO": "EVAL_RO", "EVALSHARO": "EVALSHA_RO",
    "PEXPIREAT": "PEXPIREAT", "EXPIRENX": "EXPIRE", "EXPIREXX": "EXPIRE", "EXPIREGT": "EXPIRE", "EXPIRELT": "EXPIRE",
    "GEORADIUSRO": "GEORADIUS", "SETKEEPTTL": "SET", "SUBSCRIBEONCE": "SUBSCRIBE",
}

# A method that takes the command itself as its first argument.
_RAW_METHODS: Final = frozenset((
    "EXECUTECOMMAND", "DO", "SEND", "CALL", "SENDCOMMAND", "CUSTOMCOMMAND", "DOCONTEXT", "PCALL", "CALLV",
    "DOWITHTIMEOUT",
))
RAW: Final = Command("", "", Access.READ, Keys.RAW, True)


@cache
def _commands() -> dict[str, Command]:
    found: dict[str, Command] = {}
    for line in _TABLE.strip().splitlines():
        head, _, names = line.partition(": ")
        type_, access, keys = head.split()
        for name in names.split():
            plain = name.endswith(".")
            name = name.removesuffix(".")
            found[name] = Command(name, "" if type_ == "-" else type_, Access[access], Keys[keys], plain)
    return found


def command_named(name: str) -> Command | None:
    """The command as the server spells it, in any case; None if it names no keys or there is none."""
    return _commands().get(name.upper())


@cache
def command_of_method(method: str) -> Command | None:
    """The command that a client's method of that name sends: ``hset``, ``hSet``, ``h_set``, ``HSet``, ``delete``."""
    plain = method.replace("_", "").upper().rstrip("!")
    if plain.endswith("ASYNC"):
        plain = plain.removesuffix("ASYNC")
    if plain in _RAW_METHODS:
        return RAW
    return _commands().get(_ALIASES.get(plain, plain)) or (
        _commands().get(plain.removesuffix("BUFFER")) if plain.endswith("BUFFER") else None)

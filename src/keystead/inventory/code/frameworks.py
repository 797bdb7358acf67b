"""Calls that reach a Redis through something other than a client's commands: Spring, Redisson, caches, locks."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from keystead.inventory.code.commands import Access, command_named
from keystead.inventory.code.expressions import Call, Expr, Items, Joined, Member, Name, Opaque, Text
from keystead.inventory.code.scopes import CallSite
from keystead.inventory.code.wishes import Lasting, Wish, lasting_of

# Operations of Spring's template by kind: its method and the command it sends.
_SPRING: Final = {
    "value": {"get": "GET", "set": "SET", "setIfAbsent": "SETNX", "setIfPresent": "SET", "increment": "INCRBY",
              "size": "STRLEN",
              "decrement": "DECRBY", "multiGet": "MGET", "multiSet": "MSET", "getAndSet": "GETSET", "append": "APPEND",
              "getAndDelete": "GETDEL", "getAndExpire": "GETEX", "setBit": "SETBIT", "getBit": "GETBIT"},
    "hash": {"put": "HSET", "putAll": "HSET", "putIfAbsent": "HSETNX", "get": "HGET", "multiGet": "HMGET",
             "entries": "HGETALL",
             "keys": "HKEYS", "values": "HVALS", "increment": "HINCRBY", "delete": "HDEL", "hasKey": "HEXISTS",
             "size": "HLEN",
             "scan": "HSCAN"},
    "list": {"leftPush": "LPUSH", "rightPush": "RPUSH", "leftPushAll": "LPUSH", "rightPushAll": "RPUSH",
             "leftPop": "LPOP",
             "rightPop": "RPOP", "range": "LRANGE", "size": "LLEN", "trim": "LTRIM", "remove": "LREM",
             "index": "LINDEX",
             "set": "LSET", "rightPopAndLeftPush": "RPOPLPUSH", "move": "LMOVE", "indexOf": "LPOS"},
    "set": {"add": "SADD", "remove": "SREM", "members": "SMEMBERS", "isMember": "SISMEMBER", "size": "SCARD",
            "pop": "SPOP",
            "randomMember": "SRANDMEMBER", "move": "SMOVE", "intersect": "SINTER", "union": "SUNION",
            "difference": "SDIFF",
            "scan": "SSCAN"},
    "zset": {"add": "ZADD", "addIfAbsent": "ZADD", "remove": "ZREM", "range": "ZRANGE", "rangeByScore": "ZRANGEBYSCORE",
             "reverseRange": "ZREVRANGE", "score": "ZSCORE", "incrementScore": "ZINCRBY", "size": "ZCARD",
             "zCard": "ZCARD",
             "rank": "ZRANK", "reverseRank": "ZREVRANK", "count": "ZCOUNT", "removeRange": "ZREMRANGEBYRANK",
             "removeRangeByScore": "ZREMRANGEBYSCORE", "rangeWithScores": "ZRANGE", "popMin": "ZPOPMIN",
             "popMax": "ZPOPMAX",
             "reverseRangeWithScores": "ZREVRANGE", "rangeByScoreWithScores": "ZRANGEBYSCORE",
             "reverseRangeByScore": "ZREVRANGEBYSCORE", "reverseRangeByScoreWithScores": "ZREVRANGEBYSCORE",
             "scan": "ZSCAN"},
    "stream": {"add": "XADD", "read": "XREAD", "range": "XRANGE", "size": "XLEN", "acknowledge": "XACK",
               "delete": "XDEL"},
    "geo": {"add": "GEOADD", "position": "GEOPOS", "distance": "GEODIST", "radius": "GEORADIUS", "search": "GEOSEARCH"},
    "hyperloglog": {"add": "PFADD", "size": "PFCOUNT", "union": "PFMERGE"},
}
_OPS: Final = re.compile(r"^(?:ops[Ff]or|bound)(\w+?)(?:Ops|Operations)?$")
_OPS_TYPE: Final = re.compile(r"\b(?:Reactive|Bound)?(Value|Hash|List|Set|ZSet|Stream|Geo|HyperLogLog)Operations\b")
_TEMPLATE: Final = {"delete": "DEL", "unlink": "UNLINK", "hasKey": "EXISTS", "expire": "EXPIRE", "expireAt": "EXPIREAT",
                    "getExpire": "TTL", "persist": "PERSIST", "rename": "RENAME", "type": "TYPE", "keys": "KEYS",
                    "convertAndSend": "PUBLISH"}
_REDISSON: Final = {
    "getLock": "lock", "getFairLock": "lock", "getReadWriteLock": "lock", "getSpinLock": "lock",
    "getFencedLock": "lock",
    "getSemaphore": "string", "getPermitExpirableSemaphore": "string", "getCountDownLatch": "string",
    "getBucket": "string",
    "getAtomicLong": "integer", "getAtomicDouble": "float", "getMap": "hash", "getMapCache": "hash",
    "getLocalCachedMap": "hash",
    "getRateLimiter": "hash", "getSet": "set", "getSetCache": "zset", "getSortedSet": "zset",
    "getScoredSortedSet": "zset",
    "getList": "list", "getQueue": "list", "getDeque": "list", "getBlockingQueue": "list", "getDelayedQueue": "list",
    "getTopic": "channel", "getStream": "stream", "getHyperLogLog": "hyperloglog", "getBitSet": "bitmap",
    "getGeo": "geo",
}
_CACHES: Final = {  # methods of caches of Rails, Django and others, and what they do
    "fetch": Access.WRITE, "write": Access.WRITE, "set": Access.WRITE, "add": Access.WRITE, "get_or_set": Access.WRITE,
    "put": Access.WRITE, "read": Access.READ, "get": Access.READ, "exist?": Access.READ, "has_key": Access.READ,
    "delete": Access.CHANGE, "delete_many": Access.CHANGE, "get_many": Access.READ, "read_multi": Access.READ,
    "increment": Access.WRITE, "incr": Access.WRITE, "decrement": Access.WRITE, "decr": Access.WRITE,
    "del": Access.CHANGE,
    "touch": Access.EXPIRE, "wrap": Access.WRITE, "fetch_multi": Access.WRITE, "aget": Access.READ,
    "aset": Access.WRITE,
}
_SPEL: Final = re.compile(r"'([^']*)'|#([\w.]+)|\"([^\"]*)\"|T\([\w.]+\)[\w.()]*")


def spring_wish(call: Call, type_of: Callable[[Expr], str]) -> Wish | None:
    """``template.opsForHash().put(key, …)``, ``boundValueOps(key).set(…)``, and fields of type ``ValueOperations``."""
    receiver = call.receiver
    kind, bound = "", None
    if isinstance(receiver, Call) and (found := _OPS.match(receiver.method)):
        kind = found[1].lower()
        bound = receiver.args[0] if receiver.method.startswith("bound") and receiver.args else None
    elif receiver is not None and (found := _OPS_TYPE.search(type_of(receiver))):
        kind = found[1].lower()
    commands = _SPRING.get(kind)
    if commands is None:
        return None
    name = commands.get(call.method)
    command = command_named(name) if name else None
    if command is None or (bound is None and not call.args):
        return None
    args = [bound, *call.args] if bound is not None else list(call.args)
    span = None if bound is not None or not call.spans else call.spans[0]
    lasting = lasting_of(command, args, call.named, "java")
    value_type = "integer" if command.name in ("INCRBY", "DECRBY") else command.type
    return Wish(args[0], command.name, value_type, command.access, "key", lasting, command.name == "SET"
                and lasting is None, span)


def template_wish(call: Call, template: bool) -> Wish | None:
    """``redisTemplate.delete(key)`` and the like."""
    if not template or call.method not in _TEMPLATE or not call.args:
        return None
    command = command_named(_TEMPLATE[call.method])
    if command is None:
        return None
    kind = {"KEYS": "glob", "PUBLISH": "channel"}.get(command.name, "key")
    return Wish(call.args[0], command.name, command.type, command.access, kind,
                lasting_of(command, list(call.args), call.named, "java"), False, call.spans[0] if call.spans else None)


def redisson_wish(call: Call) -> Wish | None:
    """``redisson.getLock("lock:" + id)``."""
    kind = _REDISSON.get(call.method)
    if kind is None or not call.args:
        return None
    span = call.spans[0] if call.spans else None
    if kind == "channel":
        return Wish(call.args[0], call.method, "", Access.WRITE, "channel", None, False, span)
    return Wish(call.args[0], call.method, kind, Access.WRITE, "key", None, False, span)


def lock_wish(call: Call, strong: bool) -> Wish | None:
    """``r.lock(name, timeout=…)``, ``Lock(r, name)``, ``redlock.acquire([name], ms)``, ``rs.NewMutex(name)``."""
    method, receiver, args = call.method, call.receiver, call.args
    above = receiver.name.lower() if isinstance(receiver, Name | Member) else ""
    span = call.spans[0] if call.spans else None
    if method == "lock" and strong and (args or "name" in call.named):
        lasting = call.named.get("timeout") or (args[1] if len(args) > 1 else None)
        return Wish(call.named.get("name", args[0] if args else Opaque()), "LOCK", "lock", Access.WRITE, "key",
                    Lasting(lasting, 1.0) if lasting is not None else None, False, span)
    if "redlock" in above and method in ("acquire", "lock", "using") and args:
        key = args[0].items[0] if isinstance(args[0], Items) and args[0].items else args[0]
        lasting = args[1] if len(args) > 1 else None
        return Wish(key, "LOCK", "lock", Access.WRITE, "key", Lasting(lasting, 0.001) if lasting is not None else None,
                    False, span)
    if method == "NewMutex" and args:
        return Wish(args[0], "LOCK", "lock", Access.WRITE, "key", None, False, span)
    if method == "Lock" and len(args) > 1 and isinstance(args[0], Name | Member) and "redis" in args[0].name.lower():
        lasting = call.named.get("timeout")
        return Wish(args[1], "LOCK", "lock", Access.WRITE, "key", Lasting(lasting, 1.0) if lasting is not None
                    else None, False,
                    call.spans[1] if len(call.spans) > 1 else None)
    return None


def cache_wish(call: Call, site: CallSite) -> Wish | None:
    """``Rails.cache.fetch(key, expires_in: …)``, Django's ``cache.set(key, value, timeout)`` and their like."""
    access = _CACHES.get(call.method)
    receiver = call.receiver
    if access is None or receiver is None or not (call.args or "key" in call.named):
        return None
    file = site.scope.file
    name = receiver.name if isinstance(receiver, Name | Member) else receiver.method if isinstance(receiver,
                                                                                                   Call) else ""
    rails = name == "cache" and isinstance(receiver, Call | Member) and _root(receiver) == "Rails"
    django = name == "cache" and file.imports.get("cache", ("",))[0] == "django.core.cache"
    nest = name.lstrip("_") in ("cacheManager", "cacheService") and file.speaks_redis
    if not (rails or django or nest):
        return None
    key = call.named.get("key", call.args[0] if call.args else Opaque())
    if isinstance(key, Items) and rails:  # ["users", id] is written users/1
        key = Joined([piece for position, item in enumerate(key.items)
                      for piece in ([Text("/"), item] if position else [item])])
    lasting: Expr | None = call.named.get("expires_in") or call.named.get("timeout") or call.named.get("ttl")
    if lasting is None and django and len(call.args) > 2:
        lasting = call.args[2]
    if lasting is None and nest and len(call.args) > 2:
        lasting = call.args[2]
    words = f"cache.{call.method}"
    kind = "integer" if call.method in ("increment", "incr", "decrement", "decr") else "string"
    return Wish(key, words, kind, access, "key", Lasting(lasting, 1.0) if lasting is not None else None, False,
                call.spans[0] if call.spans else None)


def annotation_wishes(site: CallSite) -> Iterator[Wish]:
    """``@Cacheable(value = "users", key = "#id")`` keeps ``users::{id}``; ``@RedisHash("people")`` ``people:{id}``."""
    call = site.call
    if call.method == "@RedisHash":
        name = call.named.get("value") or (call.args[0] if call.args else None)
        lasting = call.named.get("timeToLive")
        if name is not None:
            made = Wish(name, call.method, "hash", Access.WRITE, "key", Lasting(lasting, 1.0) if lasting is not None
                        else None)
            yield replace(made, expr=Joined([name, Text(":"), Opaque("id")]))
            yield replace(made, type="set", lasting=None)
        return
    if call.method not in ("@Cacheable", "@CachePut", "@CacheEvict"):
        return
    names = call.named.get("value") or call.named.get("cacheNames") or (call.args[0] if call.args else None)
    if names is None:
        return
    access = Access.CHANGE if call.method == "@CacheEvict" else Access.WRITE
    given = call.named.get("key")
    key: list[Expr] = _spel(given.value) if isinstance(given, Text) else \
        [Opaque(site.scope.params[0].name if len(site.scope.params) == 1 else "key")]
    for name in names.items if isinstance(names, Items) else [names]:
        yield Wish(Joined([name, Text("::"), *key]), call.method, "string", access)


def _spel(text: str) -> list[Expr]:
    """Spring's expressions for keys: texts and ``#parameters`` with plus signs between."""
    parts: list[Expr] = []
    for piece in _SPEL.finditer(text):
        if piece[1] is not None or piece[3] is not None:
            parts.append(Text(piece[1] if piece[1] is not None else piece[3]))
        elif piece[2] is not None:
            words = piece[2].split(".")
            parts.append(Opaque("_".join(words) if words[-1] in ("id", "name", "key") else words[-1]))
    return parts or [Opaque("key")]


def _root(expr: Expr | None) -> str:
    while isinstance(expr, Member | Call):
        expr = expr.base if isinstance(expr, Member) else expr.callee
    return expr.name if isinstance(expr, Name) else ""

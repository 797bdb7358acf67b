"""Which calls go to a Redis, judged by what they are called on."""

import re
from enum import IntEnum
from typing import Final

from keystead.inventory.code.commands import Command, command_of_method
from keystead.inventory.code.expressions import SELF, Call, Expr, Index, Member, Name
from keystead.inventory.code.resolving import Frame, Resolver
from keystead.inventory.code.resolving_calls import functions_called

# Files that speak of one of these may talk to a server; files with one of the others are worth reading too.
_SPEAKS: Final = (b"redis", b"valkey", b"jedis", b"lettuce", b"dragonfly", b"keydb", b"sidekiq", b"rails.cache",
                  b"cacheable",
                  b"memorystore", b"elasticache", b"resque", b"redlock", b"redsync", b"django.core.cache")
_COMMANDS: Final = (b".hset(", b".hget(", b".hgetall(", b".zadd(", b".zrange(", b".sadd(", b".smembers(", b".lpush(",
                    b".rpush(",
                    b".setex(", b".incrby(", b".xadd(", b".hset ", b".zadd ", b".sadd ")
_NAMES_KEYS: Final = re.compile(rb"(?:key|prefix|channel)\w{0,30}\W{1,12}[\"'`][\w{}$%.#-]{1,60}:[\w{}$%.#:-]*[\"'`]")
_CLIENT: Final = re.compile(
    r"redis|valkey|jedis|(?:^|_)rdb$|(?:^|_)rdb\d?$|lettuce|redisson|keydb|dragonfly|glide|sidekiq", re.I)
_GIVES: Final = re.compile(  # names of functions that give a client
    r"^_?(?:(?:get|create|make|new|build|connect|init|use|open|provide|current|default|shared|a?with)_?)*(?:[a-z]+_|[a-z]+(?=[A-Z]))?"
    r"(?:strict_?|async_?)?(?:redis|valkey|jedis|lettuce|redisson|glide)(?:_?(?:client|connection|conn|pool|instance|cluster|db"
    r"|cache|store|commands|sync|async|service|manager|template|sentinel))*$", re.I)
_NOT_CLIENT: Final = re.compile(
    r"(?:conf|config|settings?|options?|opts|params?|kwargs|url|uri|env|host|port|dsn|info|stats?|errors?|exceptions?|args|data"
    r"|results?|response|mock_calls|key|keys|prefix|names?|version|module|commands?_map|schema|docs?|status)$", re.I)
_TYPES: Final = re.compile(
    r"redis|valkey|jedis|rediscommands|redistemplate|cmdable|pipeliner|universalclient|glideclient|valueoperations"
    r"|hashoperations|listoperations|setoperations|zsetoperations|rediscommands|statefulredis", re.I)
_WEAK: Final = frozenset((
    "r", "rc", "rd", "c", "cn", "conn", "connection", "client", "cli", "pipe", "pipeline", "p", "multi", "tx", "cache",
    "store",
    "db", "kv", "commands", "cmds", "cmd", "sync", "async", "ops", "pool", "broker", "backend", "storage", "pubsub",
    "subscriber",
    "publisher", "pub", "sub", "transaction", "batch", "server", "tr", "trx", "session", "m", "con", "operations",
    "master",
    "replica", "cluster", "rcon", "rconn", "template", "ps", "t", "s", "_client", "_conn", "_r", "driver", "b",
    "write_client",
))
_MAKERS: Final = frozenset(("pipeline", "multi", "getresource", "sync", "async", "reactive", "duplicate", "pipelined",
                            "txpipeline",
                            "opsforvalue", "opsforhash", "opsforlist", "opsforset", "opsforzset", "opsforstream",
                            "opsforgeo",
                            "pubsub", "connect", "get", "with", "watch", "transaction", "withoptions", "getconnection",
                            "acquire",
                            "execute_pipeline", "subscribe", "batch", "boundhashops", "opsforhyperloglog"))


# Makers that are commands too: with arguments they give values, not clients.
_ALSO_COMMANDS: Final = frozenset(("get", "watch", "subscribe", "with"))
_CHAINS: Final = frozenset(("pipeline", "multi", "batch", "txpipeline", "transaction"))

_STEPS: Final = 500


def speaks_redis(data: bytes) -> bool:
    """Whether a file names a client of a Redis, or something that keeps its data there."""
    low = data.lower()
    return any(word in low for word in _SPEAKS)


def worth_reading(data: bytes) -> bool:
    """Whether a file may use keys: it speaks of a Redis, sends telling commands, or names what looks like keys."""
    low = data.lower()
    return any(word in low for word in _SPEAKS) or any(word in low for word in _COMMANDS) \
        or _NAMES_KEYS.search(low) is not None


class Strength(IntEnum):
    """How sure it is that something is a client of a Redis."""

    NONE = 0
    WEAK = 1  # its name fits, and the file speaks of Redis
    STRONG = 2  # its type or its name says so


class Clients:
    """Judges what calls are called on, and remembers its judgements."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def strength(self, call: Call, frame: Frame) -> Strength:
        """How sure it is that this call goes to a Redis."""
        self._resolver.refill(_STEPS)
        return self._judge(call.receiver, frame, 0) if call.receiver is not None else Strength.NONE

    def accepts(self, call: Call, command: Command, frame: Frame) -> Strength:
        """As ``strength``; a call with a telling name goes to a Redis whatever it is called on."""
        found = self.strength(call, frame)
        speaks = frame.scope.file.speaks_redis
        if found is Strength.WEAK and not speaks:
            return Strength.NONE
        if found is Strength.NONE and call.receiver is not None and not command.plain and command.name:
            own = isinstance(call.receiver, Name) and call.receiver.name == SELF
            return Strength.WEAK if speaks or own else Strength.NONE
        return found

    def _judge(self, expr: Expr, frame: Frame, depth: int) -> Strength:
        if depth > 8 or self._resolver.tired():
            return Strength.NONE
        match expr:
            case Call():
                return self._judge_call(expr, frame, depth)
            case Name(name):
                return self._judge_name(expr, name, frame, depth)
            case Member(base, name):
                found = self._judge_name(expr, name, frame, depth)
                if found is Strength.STRONG:
                    return found
                if name.lower() in _WEAK and isinstance(base, Name) and base.name != SELF and _is_client(base.name):
                    return Strength.STRONG  # app.redis.client
                return found
            case Index(base, _):
                return self._judge(base, frame, depth + 1)
        return Strength.NONE

    def _judge_call(self, call: Call, frame: Frame, depth: int) -> Strength:
        method = call.method
        if _GIVES.match(method) or (isinstance(call.receiver, Name | Member) and _constructs(call)):
            return Strength.STRONG
        if isinstance(call.callee, Name) and _CLIENT.search(frame.scope.file.imports.get(method, ("", ""))[0]):
            return Strength.STRONG  # createClient(…) of the package redis
        if call.receiver is None:
            return self._judge_returned(call, frame, depth)
        plain = method.lower().replace("_", "")
        if plain in _MAKERS and (not call.args or plain not in _ALSO_COMMANDS):
            return self._judge(call.receiver, frame, depth + 1)
        if command_of_method(method) is not None and _in_a_chain(call):
            return self._judge(call.receiver, frame, depth + 1)  # multi().set(…).expire(…)
        return self._judge_returned(call, frame, depth)

    def _judge_returned(self, call: Call, frame: Frame, depth: int) -> Strength:
        """What a function of the program gives back."""
        return max((self._judge(given.expr, frame.at(given), depth + 2)
                    for function, _ in functions_called(self._resolver, call, frame) for given in function.returns[:4]
                    if isinstance(given.expr, Call | Name | Member)), default=Strength.NONE)

    def _judge_name(self, expr: Name | Member, name: str, frame: Frame, depth: int) -> Strength:
        if _is_client(name) and not _is_module(name, frame):
            return Strength.STRONG
        if depth > 6:
            return Strength.NONE
        for scope in frame.scope.around():
            said = scope.types.get(name, "")
            if said and isinstance(expr, Name):
                if _TYPES.search(said):
                    return Strength.STRONG
                break
        if isinstance(expr, Member):
            for scope, _ in self._resolver.objects(expr.base, frame, 10):
                if any(_TYPES.search(each.types.get(name, "")) for each in self._resolver.lineage(scope, name)):
                    return Strength.STRONG
        values = self._resolver.values(name, frame) if isinstance(expr, Name) else \
            self._resolver.members(expr.base, name, frame, 10)
        for value, where in values[:6]:
            if value is not expr and isinstance(value, Call | Name | Member | Index) \
                    and self._judge(value, where, depth + 2) is Strength.STRONG:
                return Strength.STRONG
        return Strength.WEAK if name.lower().lstrip("_$@") in _WEAK else Strength.NONE


def _in_a_chain(call: Call) -> bool:
    """Whether a call stands on a pipeline that is built up call by call."""
    beneath = call.receiver
    while isinstance(beneath, Call):
        if beneath.method.lower().replace("_", "") in _CHAINS:
            return True
        beneath = beneath.receiver
    return False


def _is_client(name: str) -> bool:
    return _CLIENT.search(name) is not None and _NOT_CLIENT.search(name) is None


def _is_module(name: str, frame: Frame) -> bool:
    """``redis.get(…)`` where redis is the imported library is no client, except in languages that make it one."""
    module, there = frame.scope.file.imports.get(name, ("", ""))
    return bool(module) and not there and frame.scope.file.language == "python" and module.split(".")[0] in ("redis",
                                                                                                             "valkey")


def _constructs(call: Call) -> bool:
    """``redis.Redis(…)``, ``Redis.new``, ``redis.NewClient(…)``, ``createClient(…)``."""
    receiver = call.receiver
    above = receiver.name if isinstance(receiver, Name | Member) else ""
    method = call.method.lower()
    return bool(_CLIENT.search(above)) and method in (
        "redis", "strictredis", "from_url", "new", "newclient", "newclusterclient", "newuniversalclient",
        "newfailoverclient",
        "create_redis_pool", "create_redis", "create_pool", "createclient", "createcluster", "dial", "get", "newring",
        "current", "client", "getclient", "get_client", "connection", "instance", "getinstance", "createclient")

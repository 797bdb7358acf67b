"""A shop with a document, a server and some code that agree; and thirty ways in which they can be made to disagree."""

from dataclasses import dataclass, field, replace

NEVER = -1


@dataclass(frozen=True)
class Feature:
    """One kind of key, as each of the three knows it. A None is: not there at all."""

    name: str
    spelling: str  # in the document
    type: str
    ttl: str  # in the document
    seconds: int  # what the code gives and the server shows; NEVER for none
    personal: str = "No"
    keys: int = 2500
    documented: bool = True
    code_type: str = ""
    code_seconds: int = 0
    coded: bool = True
    wrong: tuple[str, int] | None = None  # another type and expiry (0: as ever) that some live keys have
    argument: str = "{n}"  # what stands for the variable on the server

    @property
    def prefix(self) -> str:
        return self.spelling.partition("<")[0]

    def key(self, number: int) -> str:
        if "<" not in self.spelling:
            return self.spelling
        rest = self.spelling.partition(">")[2]
        return f"{self.prefix}{self.argument.format(n=number)}{rest}"


CLEAN = (
    Feature("sessions", "session:<session_id>", "Hash", "30 min", 1800),
    Feature("carts", "cart:<user_id>", "Hash", "7 days", 604800),
    Feature("product cache", "cache:product:<sku>", "String (JSON)", "1 hour", 3600),
    Feature("price cache", "cache:price:<sku>", "String", "10 min", 600),
    Feature("search cache", "cache:search:<query_hash>", "String", "5 min", 300),
    Feature("stock", "stock:<sku>", "String", "none", NEVER),
    Feature("order queue", "queue:orders", "List", "none", NEVER, keys=1),
    Feature("mail queue", "queue:mail", "List", "none", NEVER, keys=1),
    Feature("best sellers", "rank:bestsellers:<category>", "Sorted set", "none", NEVER, keys=40),
    Feature("visited", "visited:<user_id>", "Set", "30 days", 2592000),
    Feature("rate of callers", "rate:<ip>", "String", "60 s", 60, personal="Yes", argument="203.0.{n}.7", keys=200),
    Feature("login codes", "login:code:<email>", "String", "15 min", 900, personal="Yes", argument="u{n}@example.com"),
    Feature("locks", "lock:<job>", "String", "30 s", 30, keys=30),
    Feature("settings", "settings", "Hash", "none", NEVER, keys=1),
    Feature("feature flags", "flags", "Set", "none", NEVER, keys=1),
    Feature("tokens", "token:<token>", "String", "1 day", 86400),
    Feature("wish lists", "wishlist:<user_id>", "Sorted set", "none", NEVER),
    Feature("reviews", "reviews:<sku>", "List", "none", NEVER),
    Feature("recommendations", "recommend:<user_id>", "List", "6 h", 21600),
    Feature("geo of shops", "shops:geo", "Geo", "none", NEVER, keys=1),
    Feature("event log", "events:<day>", "Stream", "14 days", 1209600, keys=14),
    Feature("coupons", "coupon:<code>", "Hash", "90 days", 7776000),
    Feature("profiles", "profile:<user_id>", "Hash", "12 h", 43200, personal="Yes"),
    Feature("checkout", "checkout:<order_id>", "Hash", "2 h", 7200),
    Feature("refunds", "refund:<order_id>", "String", "none", NEVER),
    Feature("invoices", "invoice:<order_id>", "String", "30 days", 2592000),
    Feature("views", "views:<sku>", "String", "1 day", 86400),
    Feature("badges", "badges:<user_id>", "Set", "none", NEVER),
    Feature("inbox", "inbox:<user_id>", "List", "60 days", 5184000),
    Feature("presence", "presence:<user_id>", "String", "90 s", 90),
)


@dataclass
class Shop:
    """The features, and which drifts were planted: kind and pattern as the audit must name them."""

    features: dict[str, Feature] = field(default_factory=lambda: {each.name: each for each in CLEAN})
    planted: set[tuple[str, str]] = field(default_factory=set)

    def change(self, name: str, kind: str, **changes: object) -> None:
        self.features[name] = replace(self.features[name], **changes)
        pattern = self.features[name].spelling.replace("<", "{").replace(">", "}")
        self.planted.add((kind, pattern))

    def add(self, kind: str, feature: Feature, pattern: str) -> None:
        self.features[feature.name] = feature
        self.planted.add((kind, pattern))

    # -- the three --------------------------------------------------------------------------------------------------

    def document(self) -> str:
        lines = ["# Redis keys of the shop", "", "Everything the shop keeps in Redis.", "",
                 "| Key | Type | TTL | Personal data | Purpose |", "|---|---|---|---|---|"]
        lines += [f"| `{each.spelling}` | {each.type} | {each.ttl} | {each.personal} | {each.name} |"
                  for each in self.features.values() if each.documented]
        return "\n".join(lines) + "\n"

    def code(self) -> dict[str, str]:
        """Two modules, as somebody would write them."""
        half = [each for each in self.features.values() if each.coded]
        return {"shop/store.py": _python(half[::2]), "api/store.go": _go(half[1::2])}

    def commands(self) -> list[tuple[object, ...]]:
        """What fills the server."""
        made: list[tuple[object, ...]] = []
        for each in self.features.values():
            for number in range(each.keys):
                kind, seconds = each.type, each.seconds
                if each.wrong is not None and number % 10 == 3:
                    kind, seconds = each.wrong[0] or kind, each.wrong[1] or seconds
                key = each.key(number)
                made.append(_write(kind, key, number))
                if seconds != NEVER:
                    made.append(("EXPIRE", key, max(1, seconds - number % max(1, seconds // 10))))
        return made


def thirty_drifts() -> Shop:
    """Three of each of ten kinds."""
    shop = Shop()
    for number, (spelling, kind) in enumerate((("tmp:export:<id>", "String"), ("legacy_cart:<id>", "Hash"),
                                               ("experiment:<id>:seen", "Set"))):
        shop.add("undocumented", Feature(f"stray {number}", spelling, kind, "", NEVER, documented=False, coded=False,
                                         keys=500), spelling.replace("<id>", "{}"))
    for name, kind in (("carts", "String"), ("visited", "List"), ("stock", "Hash")):
        shop.change(name, "wrong-type", wrong=(kind, 0))
    for name in ("sessions", "token" + "s", "views"):
        shop.change(name, "never-expires", wrong=("", NEVER))
    for name in ("price cache", "presence", "login codes"):
        shop.change(name, "expires-late", wrong=("", 50_000_000))
    for name in ("wish lists", "reviews", "badges"):
        shop.change(name, "unexpected-expiry", wrong=("", 5000))
    for number, spelling in enumerate(("audit:<order_id>", "draft:<user_id>:mail", "seen:banner")):
        pattern = spelling.replace("<", "{").replace(">", "}")
        shop.add("only-in-code", Feature(f"code {number}", spelling, "String", "", 60, documented=False, keys=0),
                 pattern)
    for name, kind in (("recommendations", "Set"), ("coupons", "String"), ("product cache", "Hash")):
        shop.change(name, "code-type", code_type=kind)
    for name, seconds in (("checkout", 86400), ("invoices", 3600), ("inbox", 86400)):
        shop.change(name, "code-expiry", code_seconds=seconds)
    for number, spelling in enumerate(("old:basket:<id>", "newsletter:sent", "import:row:<n>")):
        pattern = spelling.replace("<", "{").replace(">", "}")
        shop.add("unused", Feature(f"old {number}", spelling, "String", "none", NEVER, keys=0, coded=False), pattern)
    shop.change("locks", "personal-data", argument="u{n}@example.com")
    shop.change("rate of callers", "personal-data", personal="No")
    shop.change("refunds", "personal-data", argument="198.51.100.{n}", keys=200)
    return shop


_WRITES = {
    "String": ("SET", "{key}", "v{n}"), "Hash": ("HSET", "{key}", "field", "v{n}"), "List": ("RPUSH", "{key}", "v{n}"),
    "Set": ("SADD", "{key}", "v{n}"), "Sorted set": ("ZADD", "{key}", "1", "v{n}"),
    "Stream": ("XADD", "{key}", "*", "f", "v"),
    "Geo": ("GEOADD", "{key}", "13.4", "52.5", "shop{n}"), "String (JSON)": ("SET", "{key}", '{{"sku": {n}}}'),
}
_PYTHON = {
    "String": "client.set({key}, value{ex})", "String (JSON)": "client.set({key}, json.dumps(value){ex})",
    "Hash": "client.hset({key}, mapping=value)", "List": "client.rpush({key}, value)",
    "Set": "client.sadd({key}, value)", "Sorted set": "client.zadd({key}, {{value: 1}})",
    "Stream": "client.xadd({key}, value)",
    "Geo": "client.geoadd({key}, (13.4, 52.5, value))",
}
_GO = {
    "String": "rdb.Set(ctx, {key}, value, {ttl})", "String (JSON)": "rdb.Set(ctx, {key}, value, {ttl})",
    "Hash": 'rdb.HSet(ctx, {key}, "field", value)', "List": "rdb.RPush(ctx, {key}, value)",
    "Set": "rdb.SAdd(ctx, {key}, value)", "Sorted set": "rdb.ZAdd(ctx, {key}, redis.Z{{Score: 1, Member: value}})",
    "Stream": "rdb.XAdd(ctx, &redis.XAddArgs{{Stream: {key}, Values: value}})",
    "Geo": "rdb.GeoAdd(ctx, {key}, &redis.GeoLocation{{Name: value}})",
}


def _write(kind: str, key: str, number: int) -> tuple[object, ...]:
    return tuple(part.format(key=key, n=number) for part in _WRITES[kind])


def _variable(each: Feature) -> str:
    return each.spelling.partition("<")[2].partition(">")[0]


def _python(features: list[Feature]) -> str:
    lines = ["import json", "", "import redis", "", "client = redis.Redis()", ""]
    for each in features:
        name, seconds = _variable(each), each.code_seconds or each.seconds
        kind = each.code_type or each.type
        key = f'f"{each.spelling.replace("<", "{").replace(">", "}")}"' if name else f'"{each.spelling}"'
        lines += ["", f"def keep_{each.name.replace(' ', '_')}({name + ', ' if name else ''}value):"]
        ex = f", ex={seconds}" if seconds != NEVER else ""
        lines.append("    " + _PYTHON[kind].format(key=key, ex=ex))
        if seconds != NEVER and not kind.startswith("String"):
            lines.append(f"    client.expire({key}, {seconds})")
        lines.append("")
    return "\n".join(lines)


def _go(features: list[Feature]) -> str:
    lines = ["package api", "", "import (", '\t"context"', '\t"fmt"', '\t"time"', "",
             '\t"github.com/redis/go-redis/v9"', ")", "", "var rdb = redis.NewClient(&redis.Options{})", ""]
    for each in features:
        name, seconds = _variable(each), each.code_seconds or each.seconds
        kind = each.code_type or each.type
        before, _, after = each.spelling.partition("<")
        pattern = before + "%s" + after.partition(">")[2]
        key = f'fmt.Sprintf("{pattern}", {name})' if name else f'"{each.spelling}"'
        argument = f"{name} string, " if name else ""
        ttl = f"{seconds}*time.Second" if seconds != NEVER else "0"
        function = "Keep" + each.name.title().replace(" ", "")
        lines.append(f"func {function}(ctx context.Context, {argument}value string) {{")
        lines.append("\t" + _GO[kind].format(key=key, ttl=ttl))
        if seconds != NEVER and not kind.startswith("String"):
            lines.append(f"\trdb.Expire(ctx, {key}, {ttl})")
        lines += ["}", ""]
    return "\n".join(lines)

"""An inventory that the tests of the guard share."""

from keystead.inventory import Entry, Expiry, Fact, Inventory, Rule


def entry(pattern: str, type: str | None = None, ttl: Expiry | None = None, kind: str = "key") -> Entry:
    return Entry(pattern, kind=kind, type=None if type is None else Fact(type), ttl=None if ttl is None else Fact(ttl))


HOUR = Expiry(Rule.EXACTLY, 3600.0)
FOREVER = Expiry(Rule.NONE)

SHOP = Inventory("keystead.toml", (
    entry("cart:{id}", "hash"),
    entry("session:{token}", "string", HOUR),
    entry("visits:{day}", "integer", Expiry(Rule.SOME)),
    entry("settings", "string", FOREVER),
    entry("orders:{id}", "list"),
    entry("ranking", "zset"),
    entry("asynq:*", kind="opaque"),
    entry("news:{topic}", kind="channel"),
))

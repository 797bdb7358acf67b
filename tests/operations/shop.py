"""A small shop's keys, one of every type, to look at from outside."""

import msgspec

from keystead.keys import (
    AtMost,
    Channel,
    Exactly,
    FlagKey,
    IntegerKey,
    Keyspace,
    Layout,
    ListKey,
    LockKey,
    LockKind,
    MapKey,
    OpaqueNamespace,
    Pair,
    Personal,
    RecordKey,
    Registry,
    SetKey,
    Sliding,
    SortedSetKey,
    StreamKey,
    StringKey,
)


class Price(msgspec.Struct, frozen=True):
    cents: int
    currency: str = "EUR"


class Order(msgspec.Struct, frozen=True):
    customer: str
    total_cents: int


class Event(msgspec.Struct, frozen=True):
    name: str


SHOP = Keyspace("shop", tag="shop")
SAYS = {"writers": ("shop.desk",), "readers": ("shop.desk", "shop.report")}

VISITS = IntegerKey(SHOP, "visits:{unix_date}", purpose="visits of one day", **SAYS)
PRICE = StringKey(SHOP, "price:{sku}", Price, ttl=AtMost(600), purpose="what an article costs", **SAYS)
SEEN = FlagKey(SHOP, "seen:{user_sub}", ttl=Exactly(60), purpose="greeted a moment ago",
               personal=Personal(variable="user_sub"), **SAYS)
CLOSING = LockKey(SHOP, "closing:lock", LockKind.PLAIN, ttl=Exactly(30), purpose="one till closes at a time", **SAYS)
STOCK = MapKey(SHOP, "stock:{place}", int, fields=("{sku}",), purpose="articles on the shelf", **SAYS)
CART = RecordKey(SHOP, "cart:{user_sub}", Order, ttl=Sliding(3600), purpose="what someone is about to buy",
                 personal=Personal(variable="user_sub"), scripts=("shop/check_out.lua",), **SAYS)
MAIL = ListKey(SHOP, "mail:to_send", Order, purpose="receipts waiting to be mailed", **SAYS)
TAGS = SetKey(SHOP, "tags:{sku}", str, member="tag", purpose="tags of an article", **SAYS)
LOG = StreamKey(SHOP, "log", Event, most_items=1000, purpose="what happened", **SAYS)
ORDER = RecordKey(SHOP, "pending:{order_id:integer}", Order, purpose="an order under way", **SAYS)
PENDING = SortedSetKey(SHOP, "pending", str, member="order id", score="when it is due", purpose="orders under way",
                       pairs_with=Pair(ORDER), **SAYS)
NEWS = Channel(SHOP, "news:{topic}", str, purpose="announcements", **SAYS)
OTHER = OpaqueNamespace(SHOP, "queue:*", purpose="belongs to the mail program")


def registry(layout: Layout = Layout.PLAIN) -> Registry:
    return Registry([SHOP], layout=layout)

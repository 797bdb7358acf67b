from pathlib import Path

import pytest

SHOP = '''
"""Declarations of a user's own program."""

import msgspec

from keystead.keys import (
    AtMost, Exactly, FlagKey, IntegerKey, Keyspace, Pair, Personal, RecordKey, SortedSetKey, StringKey,
)


class Price(msgspec.Struct, frozen=True):
    cents: int


class Order(msgspec.Struct, frozen=True):
    customer: str


SHOP = Keyspace("shop", tag="shop")
CLUB = Keyspace("club", tag="club")
ALL = [SHOP, CLUB]
NUMBER = 7

SAYS = {"writers": ("shop.desk",), "readers": ("shop.desk",)}
PRICE = StringKey(SHOP, "price:{sku}", Price, ttl=AtMost(600), purpose="what an article costs", **SAYS)
ORDER = RecordKey(SHOP, "pending:{order_id}", Order, purpose="an order under way", **SAYS)
PENDING = SortedSetKey(SHOP, "pending", str, member="order id", score="when due", purpose="orders under way",
                       pairs_with=Pair(ORDER), **SAYS)
VISITS = IntegerKey(CLUB, "visits:{unix_date}", purpose="visits of one day", **SAYS)
SEEN = FlagKey(CLUB, "seen:{user_sub}", ttl=Exactly(60), purpose="greeted a moment ago",
               personal=Personal(variable="user_sub"), **SAYS)
'''


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A working directory with a user's program: the package shop, whose declarations are in shop/keys.py."""
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "keys.py").write_text(SHOP)
    (package / "empty.py").write_text("NOTHING = 1\n")
    (package / "broken.py").write_text("def broken(:\n")
    (package / "needy.py").write_text("import a_package_that_nobody_has\n")
    return tmp_path


@pytest.fixture
def server(valkey_server):
    """The test server, empty, for commands that are given its address."""
    valkey_server.ensure_running()
    valkey_server.call("FLUSHALL")
    return valkey_server

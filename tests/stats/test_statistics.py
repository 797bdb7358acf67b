"""The library's door: what a program has that declares families of its own."""

import time

import pytest

from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.keys import Keyspace
from keystead.patterns import DailyFamily, DaySet
from keystead.stats import Statistics
from keystead.testing.server import LocalServer

SHOP = Keyspace("shop")
NOON_NOW = f"Etc/GMT{time.gmtime().tm_hour - 12:+d}"  # days end far from now, so the one before has been due for hours
ORDERS = DailyFamily(SHOP, "orders", counts=("placed",), held_days=1, zone=NOON_NOW, table="order_stats",
                     purpose="orders")
BUYERS = DaySet(SHOP, "stats:buyers", zone=NOON_NOW, table="buyer_stats", personal=True, purpose="who bought")


async def test_a_program_counts_rotates_and_reads_what_it_declared(
    valkey: Valkey, valkey_server: LocalServer, tmp_path
) -> None:
    url = f"sqlite:///{tmp_path}/shop.sqlite"
    async with Statistics.open(valkey_server.url, url, ORDERS, BUYERS) as stats:
        now = stats.clock.now()
        counted = stats.counting()
        counted.of(ORDERS).incr("placed", amount=3, at=now).incr("placed", at=now - 2 * 86400)
        await counted.store(stats.valkey)
        report = await stats.rotation.run()
        assert report.days == 2 and not report.problems
        assert (await stats.charts.recent("orders", 3)).counts == {"placed": [1, 0, 3]}
        with pytest.raises(DeclarationError, match="has not begun"):
            counted.of(ORDERS).incr("placed", at=now + 2 * 86400)
    async with Statistics.open(valkey_server.url, url, ORDERS, BUYERS) as stats:  # another process, another day
        assert (await stats.charts.recent("orders", 3)).counts["placed"][0] == 1

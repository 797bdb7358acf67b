"""Rows for programs."""

import json

from hypothesis import HealthCheck, given, settings

from keystead.inventory import Certainty, Entry, Expiry, Fact, Inventory, Rule, Source
from keystead.inventory.rows import entry_row, inventory_rows

from .inventories import INVENTORIES


def test_row_says_what_is_known_and_what_is_a_guess() -> None:
    row = entry_row(Entry("a:{id}", type=Fact("geo", Certainty.GUESSED), ttl=Fact(Expiry(Rule.EXACTLY, 60)),
                          personal=Fact(False), sources=(Source("k.md", 3),)))

    assert (row["type"], row["server_type"], row["ttl"], row["personal"]) == ("geo", "zset", "1 min", False)
    assert (row["unsure"], row["sources"], row["purpose"]) == (["type"], ["k.md:3"], "")


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(INVENTORIES)
def test_every_row_is_json(inventory: Inventory) -> None:
    assert json.loads(json.dumps(inventory_rows(inventory))) == inventory_rows(inventory)

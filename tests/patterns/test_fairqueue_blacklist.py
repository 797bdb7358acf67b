"""Shards that are not served for a while."""

from typing import Any

import pytest

from keystead.engine import Valkey
from keystead.errors import Invalid

from .fairqueue_rooms import REQUESTS
from .test_fairqueue import NOW, fill


async def test_blacklisted_shard_is_not_served_until_every_reason_is_gone(server: Valkey) -> None:
    await fill(server, REQUESTS, "bad", 2)
    await fill(server, REQUESTS, "good", 1)
    assert await REQUESTS.blacklist.add(server, [("bad", "quota", 30), ("bad", "admin", 60)], now=NOW) == 2
    batch = await REQUESTS.take_batch(server, 10, "w", now=NOW)
    assert [item.shard for item in batch.items] == ["good"]
    assert batch.look_at == pytest.approx(NOW + 60, abs=20), "the longest reason counts"
    assert await REQUESTS.blacklist.clear(server, "bad", "quota", now=NOW) == 1
    assert not (await REQUESTS.take_batch(server, 10, "w", now=NOW)).items
    assert await REQUESTS.blacklist.clear(server, "bad", "admin", now=NOW) == 0
    assert len((await REQUESTS.take_batch(server, 10, "w", now=NOW)).items) == 2, "served again at once"


async def test_reasons_end_by_themselves(valkey: Valkey, moving_clock: Any) -> None:
    now = moving_clock.now
    await fill(valkey, REQUESTS, "bad", 1, now=now())
    await REQUESTS.blacklist.add(valkey, [("bad", "engine", 30)], now=now())
    assert await REQUESTS.take_most_urgent(valkey, "w", now=now()) is None
    assert [each.value for each in await REQUESTS.blacklist.of(valkey, "bad", now=now())] == ["engine"]
    moving_clock.advance(31)
    assert await REQUESTS.blacklist.of(valkey, "bad", now=now()) == ()
    assert await REQUESTS.take_most_urgent(valkey, "w", now=now())


async def test_a_reason_given_again_gets_the_new_end(server: Valkey) -> None:
    for seconds in (60, 10):
        await REQUESTS.blacklist.add(server, [("bad", "quota", seconds)], now=NOW)
    [reason] = await REQUESTS.blacklist.of(server, "bad", now=NOW)
    assert reason.until == (NOW + 10) * 1000


async def test_blacklisted_shards_are_listed_in_pages(server: Valkey) -> None:
    await REQUESTS.blacklist.add(server, [(f"s{number}", "quota", 10 + number) for number in range(5)], now=NOW)
    seen, cursor = [], 0
    while True:
        page = await REQUESTS.blacklist.page(server, cursor, 2, now=NOW)
        seen += [(shard, reasons[0].value) for shard, reasons in page.shards]
        cursor = page.cursor
        if not cursor:
            break
    assert seen == [(f"s{number}", "quota") for number in range(5)]
    assert [shard for shard, _ in (await REQUESTS.blacklist.page(server, now=NOW + 12.5)).shards] == ["s3", "s4"]


async def test_reason_without_name_or_end_is_refused(valkey: Valkey) -> None:
    for wrong in (("a:b", "quota", 1.0), ("a", "", 1.0), ("a", "quota", 0.0), ("a", "quota", 1e9)):
        with pytest.raises(Invalid):
            REQUESTS.blacklist.add(valkey, [wrong], now=NOW)

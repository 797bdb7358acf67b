"""Which shards a queue knows."""

from keystead.engine import Valkey

from .fairqueue_rooms import TASKS
from .test_fairqueue import NOW, fill


async def test_counts_of_several_shards_are_read_together(server: Valkey) -> None:
    await fill(server, TASKS, "a", 3)
    await fill(server, TASKS, "b", 2, delay_seconds=50)
    await fill(server, TASKS, "c", 2)
    item = next(each for each in (await TASKS.take_batch(server, 7, "w", now=NOW)).items if each.shard == "c")
    await TASKS.parking.park(server, item, TASKS.parking.at("session", "s1"), now=NOW, deadline_seconds=20)
    a, b, c, nobody = await TASKS.shards.counts(server, ["a", "b", "c", "nobody"])
    assert (a.leased, b.delayed, c.leased, c.parked) == (3, 2, 1, 1)
    assert nobody == type(nobody)()


async def test_pages_hold_each_shard_once_wherever_it_is(server: Valkey) -> None:
    for n in range(30):
        await fill(server, TASKS, f"ready{n}", 1)
        await fill(server, TASKS, f"later{n}", 1, delay_seconds=50)
    await TASKS.blacklist.add(server, [("ready1", "x", 60), ("empty", "x", 60)], now=NOW)
    found: list[str] = []
    page = await TASKS.shards.page(server, None, 7)
    while True:
        assert len(page.shards) <= 7
        found += page.shards
        if page.position is None:
            break
        page = await TASKS.shards.page(server, page.position, 7)
    assert sorted(found) == sorted({"empty", *(f"{kind}{n}" for kind in ("ready", "later") for n in range(30))})

"""What changed between looks at the census."""

from keystead.keys import Registry
from keystead.operations import Census, PatternCount, PatternCounts
from keystead.testing.clock import MovableClock
from keystead.web.keyspace_changes import KEPT_SAMPLES, ChangeKeeper

from ..operations import shop

NOW = 1_800_000_000.0


def counted(carts: int, visits: int, strays: int = 0) -> PatternCounts:
    found = {shop.CART: PatternCount(carts, carts * 100), shop.VISITS: PatternCount(visits, visits * 50)}
    return PatternCounts(carts + visits + strays, carts * 100 + visits * 50, strays, strays * 10, found,
                         {"old:{old_id}": strays} if strays else {})


def keeper() -> tuple[ChangeKeeper, Census, MovableClock]:
    clock = MovableClock(now=NOW)
    census = Census(None, Registry([shop.SHOP]), clock)  # type: ignore[arg-type]
    return ChangeKeeper(census, clock), census, clock


def test_nothing_is_known_before_the_first_count():
    kept, _, _ = keeper()
    kept.take()
    assert kept.changes() is None and kept.since is None


def test_patterns_that_came_went_grew_and_passed_by_are_told_apart():
    kept, census, clock = keeper()
    for carts, visits in ((10, 0), (12, 4), (20, 0)):
        census.counts = counted(carts, visits)
        kept.take()
        kept.take()  # the same count is no new look
        clock.advance(60)
    assert len(kept.samples) == 3 and kept.since == NOW
    found = kept.changes()
    assert found is not None
    by_name = {each.pattern: each for each in found.patterns}
    assert (by_name[shop.CART.pattern].keys, by_name[shop.CART.pattern].kind) == (10, "changed")
    assert by_name[shop.VISITS.pattern].kind == "passing" and by_name[shop.VISITS.pattern].counts == (0, 4, 0, 0)
    census.counts = counted(0, 7, strays=3)
    found = kept.changes()
    assert found is not None and {each.pattern: each.kind for each in found.patterns} == {
        shop.CART.pattern: "gone", shop.VISITS.pattern: "new"}
    assert found.undeclared == ((0, 0), (3, 30)) and found.strays == {"old:{old_id}": (0, 3)}
    assert found.keys == (10, 10)


def test_the_window_is_an_hour_and_memory_is_bounded():
    kept, census, clock = keeper()
    for minute in range(200):
        census.counts = counted(minute, 0)
        kept.take()
        clock.advance(60)
    assert len(kept.samples) == KEPT_SAMPLES
    found = kept.changes()
    assert found is not None and 3590 <= found.until - found.since <= 3630
    assert found.patterns[0].keys in (59, 60)


async def test_it_looks_by_itself_once_the_census_has_counted(valkey, monkeypatch):
    import asyncio

    monkeypatch.setattr("keystead.web.keyspace_changes.SOON_SECONDS", 0.01)
    kept, census, _ = keeper()
    task = asyncio.ensure_future(kept.run())
    try:
        census.counts = counted(1, 1)
        async with asyncio.timeout(20):
            while not kept.samples:
                await asyncio.sleep(0.01)
    finally:
        task.cancel()

"""Batch jobs against a plain account: whatever goes wrong with some items, each ends once, the innocent are done."""

import asyncio
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import keystead.jobs.batch_job as frame
from keystead.engine import Valkey, connect
from keystead.errors import Unavailable
from keystead.jobs.batch_job_run import Step, StopReason
from keystead.jobs.retry import GiveUp, RetryLater
from keystead.testing.clock import MovableClock
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer

from .batch_room import DUE, KINDS, LOCK, RUNS, SENT, TO_SEND, Died, Send, in_purgatory, sent, waiting

# What happens at each try of an item, in order; after the last it succeeds. None: the item does not decode.
TROUBLES: dict[str, BaseException] = {
    "raises": ValueError("bad"), "wants later": RetryLater(3), "wants later, free": RetryLater(3, counts=False),
    "is out of reach": Unavailable("away"), "gives up": GiveUp("no"), "kills": Died(),
}
HARMLESS = {"wants later, free", "is out of reach"}
Plan = list[str] | None
PLANS = st.lists(
    st.one_of(st.just([]), st.none(), st.lists(st.sampled_from(sorted(TROUBLES)), max_size=4)), min_size=1, max_size=12
)
unhurried = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


async def put(valkey: Valkey, kind: type[Send], plans: list[Plan]) -> None:
    raws = [b"garbage %d" % number if plan is None else b"%d" % number for number, plan in enumerate(plans)]
    if kind.source is DUE:
        for number, raw in enumerate(raws):
            await valkey.run(("ZADD", DUE.due.name(valkey.layout), number, raw), int)
    else:
        await TO_SEND.push_raw(valkey, *raws)


async def follow(url: str, kind: type[Send], plans: list[Plan]) -> None:
    """Run again and again, as a schedule would, until nothing is left; then account for every item."""
    valkey, clock = await connect(url), MovableClock(now=1_000_000.0)
    left = {number: iter(plan) for number, plan in enumerate(plans) if plan is not None}

    def before(value: int, step: Step) -> None:
        if trouble := next(left[value], None):
            raise TROUBLES[trouble]

    async def sleep(seconds: float, **rest: object) -> bool:
        clock.advance(seconds)
        return True

    await put(valkey, kind, plans)
    deaths = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame, "graceful_sleep", sleep)
        for _ in range(200):
            job = kind(valkey, clock)
            job.before = before
            try:
                run = await job.run()
                assert run is not None and await in_purgatory(valkey, kind) == []
                if run.stop_reason is StopReason.LIST_EXHAUSTED and not await _raw_waiting(valkey, kind):
                    break
            except Died:
                deaths += 1
            clock.advance(1000)
        else:
            raise AssertionError("it does not come to an end")
    done = await sent(valkey)
    dead = [letter.raw for letter in await kind.source.dead.range(valkey)]
    assert Counter([*(b"%d" % number for number in done), *dead]) == Counter(
        b"garbage %d" % number if plan is None else b"%d" % number for number, plan in enumerate(plans)
    ), "each ends once: done or dead"
    for number, plan in enumerate(plans):
        if plan is not None and set(plan) <= HARMLESS:
            assert number in done, f"{number} did nothing wrong"
    assert await waiting(valkey, kind) == [] and not await LOCK.at().reference.exists(valkey)
    facts = await RUNS.at().get(valkey)
    assert facts is not None and facts.stop_reason == "list_exhausted"
    assert deaths <= sum(trouble == "kills" for plan in plans if plan is not None for trouble in plan)
    await SENT.at().delete(valkey)
    await valkey.aclose()


async def _raw_waiting(valkey: Valkey, kind: type[Send]) -> int:
    return await (DUE.size(valkey) if kind.source is DUE else TO_SEND.length(valkey))


@pytest.mark.parametrize("kind", KINDS)
def test_every_item_ends_once_whatever_goes_wrong(kind: type[Send], valkey_server: LocalServer) -> None:
    valkey_server.ensure_running()

    @unhurried
    @given(PLANS)
    def check(plans: list[Plan]) -> None:
        valkey_server.call("FLUSHALL")
        asyncio.run(follow(valkey_server.url, kind, plans))

    check()


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
@pytest.mark.parametrize("kind", KINDS)
def test_every_item_ends_once_on_a_cluster(kind: type[Send], valkey_cluster: LocalCluster) -> None:
    valkey_cluster.heal()

    @settings(unhurried, max_examples=5)
    @given(PLANS)
    def check(plans: list[Plan]) -> None:
        valkey_cluster.flush()
        asyncio.run(follow(valkey_cluster.url, kind, plans))

    check()

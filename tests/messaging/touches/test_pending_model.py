"""Steps of touches that wait, in any order, against a plain model."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from keystead.engine import connect
from keystead.messaging.touches.keys import REMAINING
from keystead.messaging.touches.pending import Pending
from keystead.patterns import Writes

from .test_pending import a_touch, opened, parts, row

UIDS, MESSAGES = ("t1", "t2"), ("a", "b", "c")
Steps = st.lists(st.one_of(
    st.tuples(st.just("open"), st.sampled_from(UIDS), st.sets(st.sampled_from(MESSAGES), min_size=1)),
    st.tuples(st.just("succeed"), st.sampled_from(UIDS), st.none()),
    st.tuples(st.just("fail"), st.sampled_from(UIDS), st.sampled_from(MESSAGES)),
    st.tuples(st.just("drop"), st.sampled_from(UIDS), st.none()),
), max_size=25)


class Model:
    """The same in plain Python."""

    def __init__(self) -> None:
        self.waiting: dict[str, set[str]] = {}
        self.queued: list[str] = []

    def step(self, what: str, uid: str, given) -> None:
        left = self.waiting.get(uid)
        if what == "open":
            if left is None:
                self.waiting[uid] = set(given)
        elif left is not None:
            if what == "succeed" or what == "drop":
                del self.waiting[uid]
                self.queued.append("shop.reached" if what == "succeed" else "shop.missed")
            elif given in left:
                left.remove(given)
                if not left:
                    del self.waiting[uid]
                    self.queued.append("shop.missed")


@settings(max_examples=40, deadline=None)
@given(Steps)
def test_any_order_of_steps_ends_as_the_model_says(valkey_server, steps):
    async def run() -> None:
        valkey = await connect(valkey_server.url)
        try:
            await valkey.flushall()
            pending, model = Pending(valkey, trace_seconds=0), Model()
            for what, uid, given_ in steps:
                if what == "open":
                    if uid not in model.waiting:
                        await opened(valkey, a_touch(uid), sorted(given_))
                elif what == "succeed":
                    await pending.succeeded(uid, row(valkey), 1.0)
                elif what == "fail":
                    await pending.failed(uid, given_, row(valkey), 1.0)
                else:
                    await pending.drop(uid, Writes(valkey.layout), 1.0, "stale")
                model.step(what, uid, given_)
                for one in UIDS:
                    assert await parts(valkey, one) == (one in model.waiting,) * 3
                    assert set(await REMAINING.at(one).members(valkey)) == model.waiting.get(one, set())
            names = [raw.split(b'"')[3].decode() for raw in await valkey.lrange("jobs:hot", 0, -1)]
            assert names == model.queued
        finally:
            await valkey.aclose()

    asyncio.run(run())

"""Every kind of limit against a plain model: random uses, crowds, give-backs, several at once, moving clocks, crashes.

Windows end on the half second and clocks move by whole seconds, so that the real time which a test takes decides
nothing.
"""

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keystead.engine import Valkey, connect
from keystead.keys import Keyspace
from keystead.patterns.limits import Decision, check_all
from keystead.patterns.limits_logs import DistinctValues, Renewal, SlidingList, SlidingLog
from keystead.patterns.limits_slots import Gcra, LastUsedAt, SpacedSlots
from keystead.patterns.limits_windows import Cooldown, FixedWindow, RestartingWindow
from keystead.testing.clock import MovableClock
from tests.patterns.crash import Died, Mortal

SHOP = Keyspace("shop", tag="shop")
# Ends lie five seconds off the steps of the clock, since the server's own time runs on while the test does.
ONCE = Cooldown(SHOP, "once:{name}", seconds=35, purpose="a test")
WINDOW = FixedWindow(SHOP, "window:{name}", most=3, window_seconds=55, purpose="a test")
UNITS = FixedWindow(SHOP, "units:{name}", most=6, window_seconds=55, counts_refused=False, purpose="a test")
AGAIN = RestartingWindow(SHOP, "again:{name}", most=3, window_seconds=45, purpose="a test")
LOG = SlidingLog(SHOP, "log:{name}", windows=((2, 35), (4, 95)), purpose="a test")
TIMES = SlidingList(SHOP, "times:{name}", most=3, window_seconds=55, purpose="a test")
VALUES = DistinctValues(SHOP, "values:{name}", most=3, window_seconds=45, purpose="a test")
FIRST = DistinctValues(SHOP, "first:{name}", most=3, window_seconds=45, renewal=Renewal.FROM_FIRST, purpose="a test")
SLOTS = SpacedSlots(SHOP, "slots:{name}", gap_seconds=20, most_ahead_seconds=70, purpose="a test")
CALLS = LastUsedAt(SHOP, "calls:{name}", gap_seconds=20, most_wait_seconds=60, purpose="a test")
RATE = Gcra(SHOP, "rate:{name}", most=10, per_seconds=200, burst=4, purpose="a test")

Verdict = tuple[bool, int]


class CounterModel:
    def __init__(self, most: int, length: float, *, renews: bool = False, counts_refused: bool = True) -> None:
        self.most, self.length, self.renews, self.counts_refused = most, length, renews, counts_refused
        self.used, self.ends = 0, 0.0

    def fits(self, now: float, cost: int = 1) -> bool:
        if now >= self.ends:
            self.used = 0
        return self.used + cost <= self.most

    def use(self, now: float, cost: int = 1) -> bool:
        fits = self.fits(now, cost)
        if fits or self.counts_refused:
            if now >= self.ends or self.renews:
                self.ends = now + self.length
            self.used += cost
        return fits


class LogModel:
    def __init__(self, *windows: tuple[int, float]) -> None:
        self.windows = windows
        self.times: list[float] = []

    def fits(self, now: float) -> bool:
        return all(sum(time > now - length for time in self.times) < most for most, length in self.windows)

    def use(self, now: float) -> bool:
        fits = self.fits(now)
        if fits:
            self.times.append(now)
        return fits


class ValuesModel:
    def __init__(self, most: int, length: float, *, renews: bool) -> None:
        self.most, self.length, self.renews = most, length, renews
        self.values: set[str] = set()
        self.ends = 0.0

    def fits(self, now: float, value: str) -> bool:
        if now >= self.ends:
            self.values.clear()
        return value in self.values or len(self.values) < self.most

    def use(self, now: float, value: str) -> bool:
        fits = self.fits(now, value)
        if now >= self.ends or self.renews:
            self.ends = now + self.length
        if fits:
            self.values.add(value)
        return fits


class RowModel:
    """Starts in a row; ``rate`` uses do not wait."""

    def __init__(self, gap: float, most_ahead: float, *, rate: bool = False) -> None:
        self.gap, self.most_ahead, self.rate = gap, most_ahead, rate
        self.free = 0.0

    def starts(self, now: float) -> float:
        return max(now, self.free)

    def fits(self, now: float, cost: int = 1, delay: float = 0.0) -> bool:
        lead = self.gap * cost if self.rate else delay
        return self.starts(now) + lead - now <= self.most_ahead

    def use(self, now: float, cost: int = 1, delay: float = 0.0) -> bool:
        fits = self.fits(now, cost, delay)
        if fits:
            self.free = self.starts(now) + self.gap * cost
        return fits


def models() -> dict[str, Any]:
    return {
        "once": CounterModel(1, 35, counts_refused=False), "window": CounterModel(3, 55),
        "units": CounterModel(6, 55, counts_refused=False), "again": CounterModel(3, 45, renews=True),
        "log": LogModel((2, 35), (4, 95)), "times": LogModel((3, 55)),
        "values": ValuesModel(3, 45, renews=True), "first": ValuesModel(3, 45, renews=False),
        "slots": RowModel(20, 70), "calls": RowModel(20, 60), "rate": RowModel(20, 80, rate=True),
    }


LIMITS: dict[str, Any] = {
    "once": ONCE, "window": WINDOW, "units": UNITS, "again": AGAIN, "log": LOG, "times": TIMES, "values": VALUES,
    "first": FIRST, "slots": SLOTS, "calls": CALLS, "rate": RATE,
}
TOGETHER = ("window", "units", "log", "first", "slots", "rate")


async def use(on: Any, kind: str, now: float, number: int) -> Decision:
    limit = LIMITS[kind].at("x")
    if kind in ("values", "first"):
        return await limit.use(on, f"v{number % 5}", now=now)
    if kind in ("units", "rate"):
        return await limit.use(on, now=now, cost=1 + number % 3)
    if kind == "slots":
        return await limit.use(on, now=now, delay_seconds=number % 3 * 10)
    return await limit.use(on, now=now)


def expected(model: Any, kind: str, now: float, number: int) -> bool:
    if kind in ("values", "first"):
        return model.use(now, f"v{number % 5}")
    if kind in ("units", "rate"):
        return model.use(now, cost=1 + number % 3)
    if kind == "slots":
        return model.use(now, delay=number % 3 * 10)
    return model.use(now)


async def play(valkey: Valkey, clock: MovableClock, steps: list[tuple[str, str, int]]) -> None:
    model = models()
    for what, kind, number in steps:
        now = clock.now()
        if what == "move":
            clock.advance(number % 4 * 10)
        elif what == "use":
            starts = model[kind].starts(now) if kind in ("slots", "calls") else now
            told = await use(valkey, kind, now, number)
            assert told.allowed == expected(model[kind], kind, now, number), (kind, now)
            assert (told.retry_after_seconds == 0) == told.allowed
            if told.allowed and kind in ("slots", "calls"):
                assert told.starts_at == starts + (number % 3 * 10 if kind == "slots" else 0)
        elif what == "crowd":
            decisions = await asyncio.gather(*(use(valkey, kind, now, number) for _ in range(number)))
            wanted = [expected(model[kind], kind, now, number) for _ in range(number)]
            assert sum(each.allowed for each in decisions) == sum(wanted), kind
        elif what == "look":
            if kind not in ("times", "values", "first"):
                assert (await LIMITS[kind].at("x").look(valkey, now=now)).allowed == model[kind].fits(now), kind
        elif what == "give back":
            if kind in ("window", "units", "again"):
                model[kind].fits(now)
                given = await LIMITS[kind].at("x").give_back(valkey)
                assert given == (1 if model[kind].used > 0 else 0)
                model[kind].used -= given
        elif what == "forget":
            await LIMITS[kind].at("x").forget(valkey)
            model[kind] = models()[kind]
        elif what == "die":
            mortal = Mortal(valkey, 1, after=number % 2 == 1)
            with pytest.raises(Died):
                await use(mortal, kind, now, number)
            if number % 2:
                expected(model[kind], kind, now, number)
        else:
            await together(valkey, model, now, number)


async def together(valkey: Valkey, model: dict[str, Any], now: float, number: int) -> None:
    chosen = random.Random(number).sample(TOGETHER, k=3)
    uses = [LIMITS[kind].at("x").rule(now, "v1") if kind == "first" else LIMITS[kind].at("x") for kind in chosen]
    checked = await check_all(valkey, uses, now=now)
    fits = [model[kind].fits(now, "v1") if kind == "first" else model[kind].fits(now) for kind in chosen]
    assert [each.allowed for each in checked.decisions] == fits, chosen
    assert checked.allowed == all(fits)
    if checked.allowed:
        for kind in chosen:
            assert model[kind].use(now, "v1") if kind == "first" else model[kind].use(now)


WORDS = ("use", "use", "use", "crowd", "move", "move", "look", "give back", "forget", "die", "together", "together")
STEPS = st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from(sorted(LIMITS)), st.integers(0, 30)), max_size=50
)


@settings(max_examples=100, deadline=None)
@given(steps=STEPS)
def test_limits_decide_as_their_models(valkey_server, steps) -> None:
    async def run() -> None:
        client = await connect(valkey_server.url)
        try:
            await client.flushall()
            await play(client, MovableClock([valkey_server], now=1_700_000_000.0), steps)
        finally:
            await client.aclose()

    asyncio.run(run())


@pytest.mark.parametrize("kind", sorted(LIMITS))
def test_one_kind_decides_as_its_model_over_many_uses(valkey_server, kind: str) -> None:
    async def run() -> None:
        client = await connect(valkey_server.url)
        try:
            for seed in range(4):
                rng = random.Random(f"{kind} {seed}")
                await client.flushall()
                often = ("use", "use", "use", "move", "crowd") + ("look", "give back", "die") * (seed == 0)
                steps = [(rng.choice(often), kind, rng.randint(0, 20)) for _ in range(150)]
                await play(client, MovableClock([valkey_server], now=1_700_000_000.0), steps)
        finally:
            await client.aclose()

    asyncio.run(run())


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
async def test_limits_decide_as_their_models_on_a_cluster(cluster: Valkey, valkey_cluster) -> None:
    for seed in range(5):
        rng = random.Random(seed)
        valkey_cluster.flush()
        clock = MovableClock(valkey_cluster.primaries(), now=1_700_000_000.0)
        steps = [(rng.choice(WORDS), rng.choice(sorted(LIMITS)), rng.randint(0, 30)) for _ in range(80)]
        await play(cluster, clock, steps)


async def test_no_stretch_of_time_holds_more_uses_than_declared(server: Valkey) -> None:
    """Uses at random instants: whatever window one lays over the allowed ones, it is never too full."""
    rng = random.Random(3)
    now, allowed = 1_700_000_000.0, {"log": [], "rate": [], "calls": []}  # type: ignore[var-annotated]
    for _ in range(300):
        now += rng.random() * 20
        for kind in allowed:
            told = await LIMITS[kind].at("y").use(server, now=now)
            if told.allowed:
                allowed[kind].append(told.starts_at)
    for most, length in ((2, 35), (4, 95)):
        assert max(sum(start <= at < start + length for at in allowed["log"]) for start in allowed["log"]) == most
    for span in (10, 50, 200):
        fullest = max(sum(start <= at <= start + span for at in allowed["rate"]) for start in allowed["rate"])
        assert fullest <= 4 + span / 20
    gaps = [later - earlier for earlier, later in zip(allowed["calls"], allowed["calls"][1:], strict=False)]
    assert min(gaps) >= 20 - 1e-6

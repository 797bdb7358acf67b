"""Families of daily counts: storing, reading, late counts, and a day on its way out."""

import asyncio
import random
from collections import Counter
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keystead.engine import Valkey, connect
from keystead.engine.failures import ErrorReply
from keystead.errors import Corrupt, DeclarationError, Unavailable
from keystead.keys import Keyspace, ListKey, Registry
from keystead.patterns import Stored, Tallies
from keystead.patterns.daily import CANONICAL, OTHER, DailyFamily
from keystead.settings import ValkeySettings
from keystead.telemetry import counts
from keystead.testing.checks import check_no_undeclared_keys
from tests.patterns.crash import Died, crash_points

ZONE = "America/Los_Angeles"
SMS = Keyspace("messaging.sms", tag="msg")
EVENTS = DailyFamily(
    SMS, "sms_events", counts=("found", "lost"), breakdowns={"failed": "status", "pending": "status"}, held_days=2,
    zone=ZONE, table="sms_event_stats", channel="ps:stats:sms_events:daily", purpose="what became of texts",
)
REMINDERS = DailyFamily(
    SMS, "daily_reminders", counts=("attempted",), breakdowns={"sent": "channel"}, held_days=3, zone=CANONICAL,
    most_breakdown_fields=3, purpose="reminders by the day of their reader",
)
WEBHOOKS = DailyFamily(SMS, "sms_webhooks", counts=("received",), breakdowns={"refused": "reason"}, held_days=2,
                       zone=ZONE, kept_seconds=604800, purpose="calls of the provider")
QUEUE = ListKey(SMS, "sms:to_send", str, purpose="texts waiting")
REGISTRY_KEYSPACES = [SMS]
DAY = 19331  # 2022-12-05


def instant(*when: int) -> float:
    return datetime(*when, tzinfo=ZoneInfo(ZONE)).timestamp()  # type: ignore[arg-type]


NOON = instant(2022, 12, 5, 12)


async def hash_at(server: Valkey, name: str) -> dict[str, int]:
    raw = await server.hgetall(("{msg}" if server.layout.name == "TAGGED" else "") + name)
    return {field.decode(): int(value) for field, value in raw.items()}


async def text_at(server: Valkey, name: str) -> bytes | None:
    return await server.get(("{msg}" if server.layout.name == "TAGGED" else "") + name)


async def test_one_call_stores_counts_and_breakdowns_under_the_documented_keys(server: Valkey) -> None:
    tally = EVENTS.tally().incr("found", at=NOON).incr("found", amount=2, at=NOON)
    tally.incr("failed", "undelivered", at=NOON).incr("failed", "blocked", 4, at=NOON)
    tally.incr("pending", "queued", at=NOON)
    stored = await tally.store(server)

    assert (stored.late, stored.overflow) == (0, 0)
    assert await hash_at(server, "stats:sms_events:daily:19331") == {"found": 3, "failed": 5, "pending": 1}
    assert await hash_at(server, "stats:sms_events:daily:19331:extra:failed") == {"undelivered": 1, "blocked": 4}
    assert await text_at(server, "stats:sms_events:daily:earliest") == b"19331"
    day = await EVENTS.read(server, DAY)
    assert day.counts == {"found": 3, "lost": 0, "failed": 5, "pending": 1}
    assert day.breakdowns == {"failed": {"undelivered": 1, "blocked": 4}, "pending": {"queued": 1}}
    assert day.inconsistencies() == [] and not day.rotating


async def test_storing_is_one_round_trip(valkey: Valkey) -> None:
    await EVENTS.incr(valkey, "found", at=NOON)
    before = valkey.commands_sent
    tally = EVENTS.tally()
    for number in range(50):
        tally.incr("failed", f"status {number}", unix_date=DAY - number % 5)
    await tally.store(valkey)
    assert valkey.commands_sent - before == 1


@pytest.mark.parametrize(("at", "day"), [
    (instant(2022, 12, 5, 23, 59, 59) + 0.9, 19331), (instant(2022, 12, 6) + 0.1, 19332),
    (instant(2023, 3, 12, 23, 30), 19428), (instant(2023, 11, 5, 0, 30), 19666), (instant(2023, 11, 5, 23, 30), 19666),
])
def test_an_instant_falls_on_the_day_of_the_declared_zone(at: float, day: int) -> None:
    assert EVENTS.day_of(at) == day


async def test_earliest_only_goes_down(server: Valkey) -> None:
    for day, earliest in ((DAY, DAY), (DAY + 1, DAY), (DAY - 1, DAY - 1), (DAY, DAY - 1)):
        await EVENTS.incr(server, "found", unix_date=day)
        assert await EVENTS.earliest(server) == earliest


async def test_an_amount_of_nothing_touches_nothing(server: Valkey) -> None:
    assert (await EVENTS.incr(server, "found", amount=0, at=NOON)).late == 0
    assert await server.dbsize() == 0
    assert await EVENTS.earliest(server) is None


@pytest.mark.parametrize(("call", "says"), [
    (lambda: EVENTS.tally().incr("failed", at=NOON), "needs its breakdown"),
    (lambda: EVENTS.tally().incr("found", "x", at=NOON), "without a breakdown"),
    (lambda: EVENTS.tally().incr("fond", at=NOON), "no event"),
    (lambda: EVENTS.tally().incr("found", amount=-1, at=NOON), "whole number"),
    (lambda: EVENTS.tally().incr("found"), "say when"),
    (lambda: EVENTS.tally().incr("found", at=NOON, unix_date=DAY), "say when"),
    (lambda: REMINDERS.tally().incr("attempted", at=NOON), "canonical"),
    (lambda: EVENTS.tally().incr("failed", "x" * 201, at=NOON), "characters"),
    (lambda: EVENTS.tally().incr("failed", "half \ud800", at=NOON), "not valid Unicode"),
    (lambda: EVENTS.tally().incr("found", at=NOON * 1000), "unix time in seconds"),
    (lambda: EVENTS.tally().incr("found", at=float("nan")), "unix time in seconds"),
    (lambda: EVENTS.tally().incr("found", unix_date=19331.5), "whole number"),
    (lambda: EVENTS.tally().merge(REMINDERS.tally()), "cannot be merged"),
    (lambda: DailyFamily(Keyspace("x"), "x", held_days=1, zone=ZONE, purpose="x"), "needs events"),
])
def test_a_misuse_is_told_where_it_happens(call, says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        call()


async def test_a_breakdown_with_too_many_values_counts_the_rest_as_other(server: Valkey) -> None:
    before = counts.value("daily_overflow", family="daily_reminders")
    tally = REMINDERS.tally()
    for number in range(6):
        tally.incr("sent", f"channel {number}", 2, unix_date=DAY)
    assert (await tally.store(server)).overflow == 6
    assert (await REMINDERS.incr(server, "sent", "channel 1", unix_date=DAY)).overflow == 0, "known values go on"
    assert (await REMINDERS.incr(server, "sent", "channel 9", unix_date=DAY)).overflow == 1

    day = await REMINDERS.read(server, DAY)
    assert day.breakdowns["sent"] == {"channel 0": 2, "channel 1": 3, "channel 2": 2, OTHER: 7}
    assert day.inconsistencies() == []
    assert counts.value("daily_overflow", family="daily_reminders") - before == 7


@pytest.mark.parametrize("transaction", [False, True])
async def test_a_statistic_commits_with_the_change_it_counts(server: Valkey, transaction: bool) -> None:
    async with server.pipeline(transaction=transaction) as pipeline:
        QUEUE.at().push_right(pipeline, "a text")
        stored = EVENTS.tally().incr("found", at=NOON).incr("failed", "blocked", at=NOON).store(pipeline)
        EVENTS.tally().store(pipeline)
        await pipeline.execute()
    assert (await stored).late == 0
    assert await QUEUE.at().length(server) == 1
    assert (await EVENTS.read(server, DAY)).counts["found"] == 1


async def test_a_range_is_read_as_of_one_moment_with_zeros_for_empty_days(server: Valkey) -> None:
    await EVENTS.incr(server, "found", unix_date=DAY)
    await EVENTS.incr(server, "failed", "blocked", 2, unix_date=DAY + 2)
    days = await EVENTS.read_range(server, DAY, DAY + 2)
    assert [(day.unix_date, day.counts["found"], day.counts["failed"]) for day in days] == [
        (DAY, 1, 0), (DAY + 1, 0, 0), (DAY + 2, 0, 2)]


async def test_a_day_written_around_us_shows_its_inconsistency(server: Valkey) -> None:
    await EVENTS.incr(server, "failed", "blocked", unix_date=DAY)
    await server.hincrby(EVENTS.day_keys[0].at(DAY).name(server.layout), "failed", 5)
    assert (await EVENTS.read(server, DAY)).inconsistencies() == ["failed"]


async def test_a_field_that_is_no_number_is_an_error_and_stays(server: Valkey) -> None:
    await server.hset(EVENTS.day_keys[0].at(DAY).name(server.layout), "found", "many")
    with pytest.raises(Corrupt, match="found"):
        await EVENTS.read(server, DAY)
    assert await server.exists(EVENTS.day_keys[0].at(DAY).name(server.layout))


async def test_a_key_that_holds_something_else_leaves_nothing_half_counted(valkey: Valkey) -> None:
    await EVENTS.incr(valkey, "found", unix_date=DAY)
    before = await EVENTS.read(valkey, DAY)
    tally = EVENTS.tally().incr("found", unix_date=DAY).incr("failed", "a", unix_date=DAY)
    tally.incr("pending", "b", unix_date=DAY).incr("found", unix_date=DAY + 1)
    for key in (EVENTS.extra_keys[0].at(DAY, "pending"), EVENTS.day_keys[0].at(DAY + 1), EVENTS.late_key.at()):
        await valkey.set(key.name(valkey.layout), "nonsense")
        with pytest.raises(ErrorReply, match="WRONGTYPE"):
            await tally.store(valkey)
        await valkey.delete(key.name(valkey.layout))
        assert await EVENTS.read(valkey, DAY) == before
    await tally.store(valkey)
    assert (await EVENTS.read(valkey, DAY)).counts == {"found": 2, "lost": 0, "failed": 1, "pending": 1}


async def test_what_was_rotated_stays_so_when_another_program_lowers_earliest(valkey: Valkey) -> None:
    await EVENTS.incr(valkey, "found", unix_date=DAY)
    await EVENTS.begin_rotation(valkey, DAY, "rot_1")
    await EVENTS.end_rotation(valkey, DAY, "rot_1")
    await valkey.set(EVENTS.earliest_key.at().name(valkey.layout), DAY - 3)
    assert await EVENTS.begin_rotation(valkey, DAY - 3, "rot_2") == "rot_2"
    state = await EVENTS.rotation_state(valkey)
    assert state is not None and state.rotated_to == DAY + 1
    assert (await EVENTS.incr(valkey, "found", unix_date=DAY)).late == 1


async def test_rotation_puts_the_day_aside_and_forgets_it_at_the_end(server: Valkey) -> None:
    await EVENTS.incr(server, "failed", "blocked", 3, unix_date=DAY)
    await EVENTS.incr(server, "found", unix_date=DAY + 1)
    assert await EVENTS.begin_rotation(server, DAY + 1, "rot_0") is None, "not the earliest"
    assert await EVENTS.begin_rotation(server, DAY, "rot_1") == "rot_1"
    assert await EVENTS.begin_rotation(server, DAY, "rot_2") == "rot_1", "goes on with the one under way"
    assert await EVENTS.earliest(server) == DAY

    aside = await EVENTS.read(server, DAY)
    assert (aside.counts["failed"], aside.breakdowns["failed"], aside.rotating) == (3, {"blocked": 3}, True)
    assert not await EVENTS.end_rotation(server, DAY, "rot_2")
    assert await EVENTS.end_rotation(server, DAY, "rot_1")
    assert not await EVENTS.end_rotation(server, DAY, "rot_1")
    assert await EVENTS.earliest(server) == DAY + 1
    assert (await EVENTS.read(server, DAY)).counts["failed"] == 0
    state = await EVENTS.rotation_state(server)
    assert state is not None and (state.rotated_to, state.unix_date, state.id) == (DAY + 1, None, None)


async def test_counts_for_a_rotated_day_are_kept_as_late_and_removed_exactly(server: Valkey) -> None:
    await EVENTS.incr(server, "found", unix_date=DAY)
    await EVENTS.begin_rotation(server, DAY, "rot_1")
    tally = EVENTS.tally().incr("found", amount=2, unix_date=DAY).incr("failed", "a/b \"c\" ü", 3, unix_date=DAY)
    assert (await tally.incr("lost", unix_date=DAY + 1).store(server)).late == 2
    await EVENTS.end_rotation(server, DAY, "rot_1")
    assert (await EVENTS.incr(server, "found", unix_date=DAY - 40)).late == 1

    late = await EVENTS.late(server, now=1.0)
    assert [(one.count.unix_date, one.count.event, one.count.breakdown, one.count.amount) for one in late] == [
        (DAY, "found", None, 2), (DAY, "failed", "a/b \"c\" ü", 3), (DAY - 40, "found", None, 1)]
    assert len({one.count.id for one in late}) == 3
    assert await EVENTS.earliest(server) == DAY + 1, "never goes below what was rotated"
    assert await EVENTS.finish_late(server, late[:2]) == 2
    assert await EVENTS.finish_late(server, late[:2]) == 0
    assert await EVENTS.late(server, now=1.0) == late[2:]
    assert (await EVENTS.read(server, DAY + 1)).counts["lost"] == 1


async def test_late_counts_keep_their_value_and_amount_whatever_these_are(valkey: Valkey) -> None:
    await EVENTS.incr(valkey, "found", unix_date=DAY)
    await EVENTS.begin_rotation(valkey, DAY, "rot_1")
    values = ["a\0b", "line\nline", "a:b", '\\"', "\x7f\x85\u2028", "\U0001f600" * 200, "null"]
    tally = EVENTS.tally()
    for place, value in enumerate(values):
        tally.incr("failed", value, 10**12 - place, unix_date=DAY)
    for _ in range(1234):
        tally.incr("found", amount=10**12 - 1, unix_date=DAY)
    await tally.store(valkey)
    late = {(one.count.breakdown, one.count.amount) for one in await EVENTS.late(valkey, now=1.0)}
    expected = {(value, 10**12 - place) for place, value in enumerate(values)}
    assert late == {*expected, (None, 1234 * (10**12 - 1))}
    assert await EVENTS.late_dead_key.at().length(valkey) == 0


async def test_late_count_that_does_not_decode_stops_no_other(server: Valkey) -> None:
    key = EVENTS.late_key.at().name(server.layout)
    good = b'{"id":"a:0","unix_date":%d,"event":"found","amount":2}' % DAY
    await server.run(("RPUSH", key, b"x", b'{"id":"a"}', good), int)
    assert [one.count.amount for one in await EVENTS.late(server, 1, now=5.0)] == [2]
    letters = await EVENTS.late_dead_key.at().range(server)
    assert [(letter.raw, letter.dead_at) for letter in letters] == [(b"x", 5.0), (b'{"id":"a"}', 5.0)]
    assert all("does not decode" in letter.error for letter in letters)


async def test_a_rotation_that_dies_anywhere_loses_and_doubles_nothing(server: Valkey) -> None:
    """The rotator stores with its id, as SQL does; whoever comes next goes on with that rotation."""
    async for mortal in crash_points(server, 20):
        await server.flushdb()
        await EVENTS.incr(server, "failed", "blocked", 5, unix_date=DAY)
        table: dict[str, int] = {}
        try:
            await rotate(mortal, table, "rot_1")
        except Died:
            await EVENTS.incr(server, "failed", "blocked", unix_date=DAY)  # perhaps late
            await rotate(server, table, "rot_2")
        late = sum(one.count.amount for one in await EVENTS.late(server, now=1.0))
        left = (await EVENTS.read(server, DAY)).counts["failed"]
        assert sum(table.values()) + late + left == (6 if mortal.dead else 5)
        assert left == 0 and len(table) == 1
        if not mortal.dead:
            return


async def rotate(on, table: dict[str, int], rotation_id: str) -> None:
    begun = await EVENTS.begin_rotation(on, DAY, rotation_id)
    if begun is None:
        return
    day = await EVENTS.read(on, DAY)
    table.setdefault(begun, day.counts["failed"])
    await EVENTS.end_rotation(on, DAY, begun)


async def test_a_day_without_a_table_expires_after_it_was_ended(server: Valkey) -> None:
    await WEBHOOKS.tally().incr("received", unix_date=DAY).incr("refused", "signature", unix_date=DAY).store(server)
    assert not await WEBHOOKS.end_day(server, DAY + 1)
    assert await WEBHOOKS.end_day(server, DAY)
    assert await WEBHOOKS.earliest(server) == DAY + 1
    assert 604_700 < await WEBHOOKS.day_keys[0].at(DAY).remaining_seconds(server) <= 604_800
    assert 604_700 < await WEBHOOKS.extra_keys[0].at(DAY, "refused").remaining_seconds(server) <= 604_800
    assert (await WEBHOOKS.incr(server, "received", unix_date=DAY)).late == 0
    assert (await WEBHOOKS.read(server, DAY)).counts["received"] == 2
    assert await WEBHOOKS.end_day(server, DAY), "a late count made it the earliest again"
    with pytest.raises(DeclarationError, match="rotated, not ended"):
        await EVENTS.end_day(server, DAY)


async def test_collected_tallies_share_a_call_and_each_caller_is_told(valkey: Valkey) -> None:
    await EVENTS.incr(valkey, "found", at=NOON)
    async with EVENTS.collector(valkey) as collector:
        before = valkey.commands_sent
        tallies = [EVENTS.tally().incr("failed", f"s{number % 7}", at=NOON) for number in range(100)]
        stored = await asyncio.gather(*(collector.store(tally) for tally in tallies))
        assert len(stored) == 100 and valkey.commands_sent - before == 1
        assert (await collector.store(EVENTS.tally())).late == 0
    assert (await EVENTS.read(valkey, DAY)).counts["failed"] == 100
    with pytest.raises(DeclarationError, match="async with"):
        await collector.store(tallies[0])


async def test_every_waiter_of_a_collector_hears_of_a_failure_and_can_try_again(fault_proxy, valkey: Valkey) -> None:
    proxy = await fault_proxy()
    away = await connect(proxy.url, settings=ValkeySettings(outage_seconds=1.0))
    try:
        await proxy.aclose()
        tallies = [EVENTS.tally().incr("found", at=NOON) for _ in range(10)]
        async with EVENTS.collector(away) as collector:
            told = await asyncio.gather(*(collector.store(tally) for tally in tallies), return_exceptions=True)
        assert len(told) == 10 and all(isinstance(each, Unavailable) for each in told)
        async with EVENTS.collector(valkey) as collector:
            await asyncio.gather(*(collector.store(tally) for tally in tallies))
        assert (await EVENTS.read(valkey, DAY)).counts["found"] == 10
    finally:
        await away.aclose()


async def test_a_cancelled_caller_of_a_collector_does_not_take_the_others_along(valkey: Valkey) -> None:
    async with EVENTS.collector(valkey) as collector:
        tasks = [asyncio.create_task(collector.store(EVENTS.tally().incr("found", at=NOON))) for _ in range(6)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        told = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(told[0], asyncio.CancelledError) and not any(isinstance(one, BaseException) for one in told[1:])
    assert (await EVENTS.read(valkey, DAY)).counts["found"] == 6, "what left was counted"


# -- against a plain model --------------------------------------------------------------------------------------------

STEPS = st.lists(st.one_of(
    st.tuples(st.just("count"), st.integers(0, 2**32)),
    st.tuples(st.just("collect"), st.integers(0, 2**32)),
    st.tuples(st.just("begin"), st.integers(-1, 1)),
    st.tuples(st.just("end"), st.booleans()),
    st.tuples(st.just("late"), st.integers(1, 5)),
    st.tuples(st.just("next day"), st.just(0)),
), max_size=40)


class Model:
    """Everything that was counted, wherever it is now."""

    def __init__(self) -> None:
        self.today = DAY
        self.all: Counter[tuple[int, str, str | None]] = Counter()
        self.table: dict[str, Counter[tuple[int, str, str | None]]] = {}
        self.applied: Counter[tuple[int, str, str | None]] = Counter()
        self.rotation = 0


async def play(server: Valkey, steps: list[tuple[str, int]]) -> None:
    model = Model()
    for what, how in steps:
        rng = random.Random(how)
        if what in ("count", "collect"):
            tallies = [EVENTS.tally() for _ in range(1 if what == "count" else 4)]
            for _ in range(rng.randint(1, 12)):
                day, amount = model.today - rng.choice((0, 0, 1, 2, 5)), rng.choice((0, 1, 1, 7))
                event, value = rng.choice((("found", None), ("lost", None), ("failed", "a"), ("failed", "b")))
                rng.choice(tallies).incr(event, value, amount, unix_date=day)
                model.all[day, event, value] += amount
            async with EVENTS.collector(server) as collector:
                await asyncio.gather(*(
                    collector.store(tally) if what == "collect" else tally.store(server) for tally in tallies))
        elif what == "begin":
            earliest = await EVENTS.earliest(server)
            model.rotation += 1
            if earliest is not None:
                await EVENTS.begin_rotation(server, earliest + how, f"rot_{model.rotation}")
        elif what == "end":
            state = await EVENTS.rotation_state(server)
            if state is not None and state.id is not None and state.unix_date is not None:
                day = await EVENTS.read(server, state.unix_date)
                model.table.setdefault(state.id, flat(day.unix_date, day.counts, day.breakdowns))
                if how:  # else the rotator died here, and the next one stores the same id again
                    assert await EVENTS.end_rotation(server, state.unix_date, state.id)
        elif what == "late":
            late = await EVENTS.late(server, how, now=1.0)
            for one in late:
                model.applied[one.count.unix_date, one.count.event, one.count.breakdown] += one.count.amount
            if late:
                assert await EVENTS.finish_late(server, late) == len(late)
        else:
            model.today += 1
    await compare(server, model)


def flat(day: int, counts_of, breakdowns) -> Counter:  # type: ignore[no-untyped-def]
    found: Counter[tuple[int, str, str | None]] = Counter()
    for event in EVENTS.plain:
        found[day, event, None] += counts_of[event]
    for event, fields in breakdowns.items():
        for value, amount in fields.items():
            found[day, event, value] += amount
    return +found


async def compare(server: Valkey, model: Model) -> None:
    """Every count is in exactly one place: a live day, a stored rotation, or the late list (or was applied from it)."""
    found = Counter(model.applied)
    for stored in model.table.values():
        found += stored
    for one in await EVENTS.late(server, 10_000, now=1.0):
        found[one.count.unix_date, one.count.event, one.count.breakdown] += one.count.amount
    state = await EVENTS.rotation_state(server)
    for day in await EVENTS.read_range(server, DAY - 10, model.today):
        assert day.inconsistencies() == []
        if state is not None and state.id in model.table and day.unix_date == state.unix_date:
            continue  # it was stored; the keys only wait for the end of the rotation
        found += flat(day.unix_date, day.counts, day.breakdowns)
    assert +found == +model.all
    live = [day for day, _, _ in +model.all]
    earliest = await EVENTS.earliest(server)
    assert (earliest is None) == (not live)
    if state is not None and earliest is not None:
        assert earliest >= state.rotated_to or earliest == state.unix_date


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_every_count_is_in_exactly_one_place(valkey_server, steps) -> None:
    async def run() -> None:
        client = await connect(valkey_server.url)
        try:
            await client.flushall()
            await play(client, steps)
            check_no_undeclared_keys(Registry(REGISTRY_KEYSPACES, client.layout), valkey_server)
        finally:
            await client.aclose()

    asyncio.run(run())


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
async def test_every_count_is_in_exactly_one_place_on_a_cluster(cluster: Valkey, valkey_cluster) -> None:
    for seed in range(12):
        rng = random.Random(seed)
        valkey_cluster.flush()
        kinds = ("count", "count", "collect", "begin", "end", "end", "late", "next day")
        steps = [(what, rng.randint(0, 1) if what in ("begin", "end") else rng.randint(1, 5 if what == "late" else 999))
                 for what in rng.choices(kinds, k=25)]
        await play(cluster, steps)
        check_no_undeclared_keys(Registry(REGISTRY_KEYSPACES, cluster.layout), *valkey_cluster.primaries())


async def test_several_families_are_counted_in_one_round_trip(server: Valkey) -> None:
    tallies = Tallies(now=NOON)
    tallies.of(EVENTS).incr("found", at=NOON).incr("failed", "blocked", at=NOON)
    tallies.of(WEBHOOKS).incr("received", at=NOON)
    tallies.of(REMINDERS)  # nothing was counted
    assert await tallies.store(server) == Stored()
    assert await hash_at(server, f"stats:sms_events:daily:{DAY}") == {"found": 1, "failed": 1}
    assert await hash_at(server, f"stats:sms_webhooks:daily:{DAY}") == {"received": 1}
    assert await REMINDERS.earliest(server) is None


async def test_a_day_that_has_not_begun_is_refused_and_nothing_is_stored(server: Valkey) -> None:
    tally = EVENTS.tally(NOON).incr("found", at=NOON)
    with pytest.raises(DeclarationError, match=f"sms_events: day {DAY + 1} has not begun"):
        tally.incr("found", unix_date=DAY + 1)
    with pytest.raises(DeclarationError, match="has not begun"):
        tally.incr("found", unix_date=-1)
    # In Kiribati it is tomorrow already.
    REMINDERS.tally(NOON).incr("attempted", unix_date=DAY + 1)
    with pytest.raises(DeclarationError, match="has not begun"):
        REMINDERS.tally(NOON).incr("attempted", unix_date=DAY + 2)
    await tally.store(server)
    assert (await EVENTS.read(server, DAY)).counts["found"] == 1


@pytest.mark.parametrize(("wrong", "says"), [
    ({"rotates_at": "2 o'clock"}, "time of day"), ({"identities": ["a = b"]}, "names b"), ({"sparse": ["a"]}, "sparse"),
    ({"columns": ["old", "new"]}, "columns"),
])
def test_a_family_that_is_declared_wrongly_is_refused_by_name(wrong, says) -> None:
    with pytest.raises(DeclarationError, match=f"^wrong: .*{says}"):
        DailyFamily(Keyspace("room"), "wrong", counts=("a",), held_days=1, zone=ZONE, purpose="x", **wrong)

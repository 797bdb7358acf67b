"""Answers that come from other programs: an older version, one that speaks otherwise, one that is broken."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Iterator

from keystead.engine import Valkey
from keystead.keys import Keyspace
from keystead.patterns import DailyFamily
from keystead.stats.charts import Charts
from keystead.stats.charts_kept import MOST_BYTES, pack
from keystead.stats.keys import CHARTS
from keystead.stats.rotation import Rotation
from keystead.stats.series import day_labels
from keystead.stats.tables import FamilyTables
from keystead.store import Database
from keystead.testing.clock import MovableClock

from .charting import TODAY
from .counted import ACTIVE, EVENTS, LA, catalogue
from .test_charts_kept import SEEN

START, END = TODAY - 91, TODAY - 1
PATIENCE_SECONDS = 30
QUIET = DailyFamily(
    Keyspace("quiet", tag="quiet"), "quiet", counts=("on", "off"), held_days=1, zone=LA, table="quiet_stats",
    channel=None, purpose="what nobody hears",
)
RIGHT = {
    "labels": day_labels(START, END), "tried": [0] * 90, "found": [0] * 89 + [99], "failed": [0] * 90, "lost": [0] * 90,
    "failed_breakdown": {"busy": [0] * 90}, "lost_breakdown": {}, "an_event_of_a_newer_program": [1] * 90,
}


async def hear(valkey: Valkey, charts: Charts, raw: bytes) -> None:
    """Wait until a process holds what a stranger sent to the channel of the family."""
    instance = charts._kept._families["events"]
    assert EVENTS.charts is not None and EVENTS.charts.channel is not None
    frame = START.to_bytes(4, "big") + END.to_bytes(4, "big") + len(raw).to_bytes(8, "big") + raw
    async with asyncio.timeout(PATIENCE_SECONDS):
        # Else whoever has dropped the answer waits a moment for the one that it sent itself.
        await valkey.delete(EVENTS.charts.recent_key.at(START, END).name(valkey.layout))
        while instance.held(START, END) != raw:
            await valkey.publish(EVENTS.charts.channel.at().name(valkey.layout), frame)
            await asyncio.sleep(0.05)


def strange_answers() -> Iterator[bytes]:
    yield from (b"", b"garbage", gzip.compress(b"garbage"), pack([]), pack(RIGHT)[:-9], pack({**RIGHT, "found": 5}))
    for left_out in ("labels", "found", "lost_breakdown"):
        yield pack({key: value for key, value in RIGHT.items() if key != left_out})
    yield from (pack({**RIGHT, "found": days}) for days in ([1] * 89, ["1"] * 90, [True] * 90, [None] * 90))
    yield from (pack({**RIGHT, "failed_breakdown": values}) for values in ([], {"x": [1]}, {"x": {"90": 1}}, {"x": 1}))
    yield pack({**RIGHT, "labels": day_labels(START - 1, END - 1)})
    yield zlib.compress(json.dumps(RIGHT).encode())
    yield gzip.compress(bytes(MOST_BYTES + 1), 1)


async def test_an_answer_that_does_not_fit_is_not_used(
    valkey: Valkey, database: Database, charts: Charts, clock: MovableClock
) -> None:
    await EVENTS.incr(valkey, "found", amount=7, unix_date=END - 1)
    await Rotation(valkey, database, catalogue(EVENTS), clock).run()
    for strange in strange_answers():
        await hear(valkey, charts, strange)
        shown = json.loads(gzip.decompress(await charts.historical_raw("events")))
        assert (shown["found"][-1], shown["lost_breakdown"]) == (7, {}), strange[:200]
        assert (await charts.historical("events")).counts["found"][-1] == 7


async def test_an_answer_of_a_newer_program_is_used(valkey: Valkey, charts: Charts) -> None:
    await hear(valkey, charts, pack(RIGHT))
    shown = await charts.historical("events")
    assert (shown.counts["found"][-1], shown.breakdowns["lost"]) == (99, {})
    assert await charts.historical_raw("events") == pack(RIGHT)


async def test_nonsense_among_other_answers_is_not_used(valkey: Valkey, database: Database, charts: Charts) -> None:
    await ACTIVE.add(valkey, "a", "b", day=TODAY - 1)
    instance, place = charts._kept._charts, (TODAY, "numbers", "active")
    for strange in (b"", b"1", b"1garbage", b"x" + pack([])):
        instance._shelf.put(CHARTS.template.fill(CHARTS.template.bind(place, {})), strange, None)
        assert instance.held(*place) == strange
        answer = await charts.numbers_answer("active")
        assert json.loads(gzip.decompress(answer.raw))["counts"]["total"][-1] == 2


async def test_days_without_a_channel_of_their_own_are_looked_into_as_well(
    valkey: Valkey, database: Database, clock: MovableClock
) -> None:
    await FamilyTables(catalogue(QUIET)).ensure(database)
    older = {"labels": day_labels(TODAY - 90, TODAY), "on": [5] * 90}
    name = CHARTS.template.fill(CHARTS.template.bind((TODAY, "days", "quiet"), {}))
    async with Charts.open(valkey, database, catalogue(QUIET), clock) as charts:
        for answer, shown in ((older, 0), ({**older, "off": [6] * 90}, 6)):
            charts._kept._charts._shelf.put(name, b"1" + pack(answer), None)
            assert (await charts.historical("quiet")).counts["off"][-1] == shown


async def test_views_of_another_program_are_used_if_they_are_of_our_making(
    valkey: Valkey, database: Database, clock: MovableClock
) -> None:
    assert SEEN.charts is not None
    await SEEN.viewed(valkey, "sleep", "a", day=TODAY - 1)
    await Rotation(valkey, database, catalogue(SEEN), clock).run()
    name = SEEN.charts.template.fill(SEEN.charts.template.bind((TODAY,), {}))
    async with Charts.open(valkey, database, catalogue(SEEN), clock) as charts:
        for strange in (b"", b"garbage", b"[]", b'{"values":[]}', b'{"dimension":"day","values":[]}'):
            await valkey.delete(SEEN.charts.recent_key.at(TODAY).name(valkey.layout))
            charts._kept._views["seen"]._shelf.put(name, strange, None)
            answer = await charts.views_answer("seen")
            assert json.loads(answer.raw)["values"][0]["total_views"] == 1

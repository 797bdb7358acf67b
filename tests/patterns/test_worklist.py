"""Work lists: what waits, what is held, what died; nothing in two places and nothing gone."""

import asyncio
from collections import Counter

import msgspec
import pytest

from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.keys import FlagKey, Keyspace, ListKey, Registry, SortedSetKey
from keystead.patterns.worklist import WorkList
from keystead.patterns.worklist_items import TakenItems
from keystead.telemetry import counts
from keystead.testing.clock import MovableClock

from .crash import crash_points


class Text(msgspec.Struct, frozen=True):
    uid: str
    body: str = ""


SPACE = Keyspace("tests", tag="msg")
TEXTS = WorkList(SPACE, "sms:to_send", Text, purgatory="sms:send_purgatory", purpose="texts", writers=("t",),
                 readers=("t",))
RAW = WorkList(SPACE, "raw", bytes, purpose="bytes", most_dead=2)
LANES = WorkList(SPACE, "lane:{lane}", int, tag="lane:{lane}", purpose="numbers by lane")
CLOSED = FlagKey(SPACE, "raw:closed", purpose="nothing is taken")
DONE = ListKey(SPACE, "done", bytes, purpose="what followed")
NOW = 1000.0


async def raws(valkey: Valkey, ref) -> list[bytes]:
    return await valkey.run(("LRANGE", ref.name(valkey.layout), 0, -1), list)


async def names(valkey: Valkey) -> set[str]:
    found = set()
    for node in await valkey.nodes():
        found |= {key.decode().rpartition("}")[2] for key in await node.call(("KEYS", "*"))}
    return found


async def test_items_are_served_in_order_and_finished_exactly(server: Valkey) -> None:
    await TEXTS.push(server, *(Text(str(n)) for n in range(5)))
    worker = TEXTS.worker()
    taken = await worker.take(server, 3, now=NOW)
    assert [item.value.uid for item in taken] == ["0", "1", "2"] and not taken.recovered
    assert await TEXTS.length(server) == 2 and await worker.held(server) == 3
    finished = await worker.finish(server, [taken.items[2], taken.items[0]])
    assert (finished.count, finished.lost) == (2, ())
    again = await worker.take(server, 10, now=NOW)
    assert again.recovered and again.values == [Text("1")]
    await worker.finish(server, again)
    assert (await worker.take(server, 10, now=NOW)).values == [Text("3"), Text("4")]


async def test_documented_names_are_the_keys(server: Valkey) -> None:
    await TEXTS.push(server, *(Text(str(n)) for n in range(9)))
    await TEXTS.worker().take(server, 1, now=NOW)
    await TEXTS.worker("w1").take(server, 1, now=NOW)
    [item] = await TEXTS.worker("w2").take(server, 1, now=NOW)
    await TEXTS.worker("w2").fail(server, item, error="x", now=NOW)
    await RAW.push_raw(server, b"x")
    [item] = await RAW.worker().take(server, 1, now=NOW)
    await RAW.worker().bury(server, [item], error="x", now=NOW)
    await LANES.at("7").push(server, 1)
    assert await names(server) == {
        "sms:to_send", "sms:send_purgatory", "sms:send_purgatory:w1", "sms:send_purgatory:w1:alive",
        "sms:send_purgatory:w2:alive", "sms:to_send:workers", "sms:to_send:poison", "raw:dead", "lane:7",
    }
    registry = Registry([SPACE], server.layout)
    for node in await server.nodes():
        assert all(registry.resolve(key) for key in await node.call(("KEYS", "*")))
    key = TEXTS.alive_key.at("w1").name(server.layout)
    assert 29_000 < await server.run(("PTTL", key), int) <= 30_000
    assert 6 * 86400 < await server.run(("TTL", TEXTS.poison_key.at().name(server.layout)), int) <= 7 * 86400


async def test_equal_payloads_are_separate_items(server: Valkey) -> None:
    await RAW.push_raw(server, b"x", b"y", b"x", b"x")
    worker = RAW.worker("w")
    taken = await worker.take(server, 4, now=NOW)
    assert (await worker.finish(server, taken.items[:1])).count == 1
    assert await raws(server, worker.purgatory) == [b"y", b"x", b"x"]
    assert (await worker.finish(server, [taken.items[2], taken.items[3], taken.items[0]])).count == 2
    assert await raws(server, worker.purgatory) == [b"y"]


async def test_finish_travels_in_the_callers_transaction(server: Valkey) -> None:
    await RAW.push_raw(server, b"a", b"b")
    worker = RAW.worker("w")
    taken = await worker.take(server, 2, now=NOW)
    async with server.pipeline(transaction=True) as pipeline:
        DONE.at().push_right(pipeline, b"A")
        finished = worker.finish(pipeline, taken.items[:1])
        await pipeline.execute()
    assert (await finished).count == 1
    assert await raws(server, DONE.at()) == [b"A"]
    assert await raws(server, worker.purgatory) == [b"b"]


async def test_moves_share_one_round_trip_in_a_pipeline(server: Valkey) -> None:
    worker = RAW.worker("w")
    async with server.pipeline(transaction=False) as pipeline:
        RAW.push(pipeline, b"1", b"2")
        refused = RAW.try_push(pipeline, b"3", limit=2)
        taken = worker.take(pipeline, 5, now=NOW)
        await pipeline.execute()
    assert not await refused
    assert (await taken).values == [b"1", b"2"]


async def test_push_within_a_limit_is_all_or_none(server: Valkey) -> None:
    assert await RAW.try_push(server, b"1", b"2", limit=3)
    assert not await RAW.try_push(server, b"3", b"4", limit=3)
    assert await RAW.try_push(server, b"3", limit=3)
    assert not await RAW.try_push(server, b"4", limit=3)
    assert await raws(server, RAW.queue) == [b"1", b"2", b"3"]


async def test_finish_and_take_advances_in_one_step(server: Valkey) -> None:
    await RAW.push_raw(server, b"a", b"b", b"c")
    worker = RAW.worker()
    taken = await worker.take(server, 1, now=NOW)
    for expected in (b"b", b"c"):
        taken = await worker.finish_and_take(server, taken.items, 1, now=NOW)
        assert taken.values == [expected]
    assert not (await worker.finish_and_take(server, taken.items, 1, now=NOW)).items
    assert await names(server) == set()


async def test_every_way_of_taking_is_a_sign_of_life(server: Valkey) -> None:
    """Otherwise a worker that was thought dead could take items into a purgatory that nobody looks at."""
    worker = RAW.worker("w")
    key = RAW.alive_key.at("w").name(server.layout)
    for take in (
        lambda: worker.take(server, 1, now=NOW),
        lambda: worker.take(server, 1, now=NOW, leftovers_first=False),
        lambda: worker.take_from(server, [RAW.queue], CLOSED.at(), 1, now=NOW),
        lambda: worker.finish_and_take(server, [], 1, now=NOW),
        lambda: worker.wait_and_take(server, 1, 1, now=NOW),
    ):
        await server.run(("DEL", key), int)
        await RAW.adopt(server, now=NOW)
        await RAW.push_raw(server, b"x")
        assert (await take()).items
        assert await server.run(("PTTL", key), int) > 29_000
        assert await RAW.workers_key.at().contains(server, "w")


async def test_several_lists_are_served_in_the_order_given(server: Valkey) -> None:
    high = ListKey(SPACE, "raw:high", bytes, purpose="first")
    try:
        await RAW.push_raw(server, b"low 1", b"low 2")
        await high.at().push_right(server, b"high 1", b"high 2")
        worker = RAW.worker("w")
        queues = [high.at(), RAW.queue]
        first = await worker.take_from(server, queues, CLOSED.at(), 3, now=NOW)
        assert first.values == [b"high 1", b"high 2", b"low 1"]
        again = await worker.take_from(server, queues, CLOSED.at(), 3, now=NOW)
        assert again.recovered and again.values == first.values
        more = await worker.take_from(server, queues, CLOSED.at(), 3, now=NOW, leftovers_first=False)
        assert not more.recovered and more.values == [b"low 2"]
        with pytest.raises(DeclarationError, match="give the worker a name"):
            await RAW.worker().take_from(server, queues, CLOSED.at(), 1, now=NOW)
    finally:
        SPACE.declarations.remove(high)


async def test_nothing_is_taken_while_taking_is_closed(server: Valkey) -> None:
    await RAW.push_raw(server, b"a")
    worker = RAW.worker("w")
    await CLOSED.at().raise_flag(server)
    taken = await worker.take_from(server, [RAW.queue], CLOSED.at(), 1, now=NOW)
    assert taken.closed and not taken.items
    await CLOSED.at().lower_flag(server)
    assert (await worker.take_from(server, [RAW.queue], CLOSED.at(), 1, now=NOW)).values == [b"a"]


async def test_last_try_after_crashes_waits_for_a_worker_that_holds_nothing(server: Valkey) -> None:
    """Others are served around it meanwhile, and no neighbour is there when it crashes for the last time."""
    async def take(most: int) -> TakenItems[bytes]:
        return await worker.take_from(server, [RAW.queue], CLOSED.at(), most, now=NOW, leftovers_first=False)

    worker = RAW.worker("w")
    await RAW.push_raw(server, b"bad")
    for _ in range(2):
        assert (await take(5)).values == [b"bad"]
        await worker.recover(server, now=NOW)
    assert await worker.is_suspect(server, b"bad") and not await worker.is_suspect(server, b"1")
    await RAW.queue.push_left(server, b"first")
    await RAW.push_raw(server, b"1", b"2", b"3")
    first = await take(3)
    assert first.values == [b"first", b"1", b"2"] and first.suspects_wait
    assert await raws(server, RAW.queue) == [b"bad", b"3"]
    await worker.finish(server, first)
    last = await take(3)
    assert last.values == [b"bad"] and last.alone
    await worker.recover(server, now=NOW)
    assert [letter.raw for letter in await RAW.dead_letters(server)] == [b"bad"]
    assert (await take(3)).values == [b"3"]


async def test_result_is_handed_over_once_and_only_by_the_holder(server: Valkey) -> None:
    await RAW.push_raw(server, b"a", b"b")
    worker = RAW.worker("w")
    taken = await worker.take(server, 2, now=NOW)
    await worker.finish(server, taken.items[:1])
    handed = await worker.hand_over(server, [(item, item.raw * 2) for item in taken], DONE.at())
    assert handed.count == 1 and handed.lost == (taken.items[0],)
    assert await raws(server, DONE.at()) == [b"bb"]
    assert (await worker.hand_over(server, [(taken.items[1], b"bb")], DONE.at())).count == 0
    assert await raws(server, DONE.at()) == [b"bb"]


async def test_undecodable_item_becomes_a_dead_letter_and_the_rest_goes_on(server: Valkey) -> None:
    await TEXTS.push(server, Text("1"))
    await TEXTS.push_raw(server, b"\xff\x00", b'{"uid": 5}')
    await TEXTS.push(server, Text("2"))
    before = counts.value("keys_undecodable", declaration="sms:to_send")
    taken = await TEXTS.worker("w").take(server, 10, now=NOW)
    assert taken.values == [Text("1"), Text("2")] and len(taken.spoiled) == 2
    assert counts.value("keys_undecodable", declaration="sms:to_send") == before + 2
    letters = await TEXTS.dead_letters(server)
    assert [letter.raw for letter in letters] == [b"\xff\x00", b'{"uid": 5}']
    assert "does not decode" in letters[0].error and letters[0].dead_at == NOW
    assert await TEXTS.worker("w").held(server) == 2


async def test_fields_we_do_not_know_travel_along(server: Valkey) -> None:
    raw = b'{"uid":"1","body":"x","later":[]}'
    await TEXTS.push_raw(server, raw)
    worker = TEXTS.worker("w")
    taken = await worker.take(server, 1, now=NOW)
    assert taken.values == [Text("1", "x")]
    await worker.put_back(server, taken)
    assert await raws(server, TEXTS.queue) == [raw]


@pytest.mark.parametrize("front", [True, False])
async def test_put_back_keeps_the_order(server: Valkey, front: bool) -> None:
    await RAW.push_raw(server, b"1", b"2", b"3")
    worker = RAW.worker("w")
    taken = await worker.take(server, 2, now=NOW)
    assert await worker.put_back(server, taken, front=front) == 2
    assert await raws(server, RAW.queue) == ([b"1", b"2", b"3"] if front else [b"3", b"1", b"2"])
    assert await worker.put_back(server, taken, front=front) == 0


async def test_failed_item_is_tried_again_and_then_dies_with_its_error(server: Valkey) -> None:
    await RAW.push_raw(server, b"bad", b"good")
    worker = RAW.worker("w")
    for tries in (1, 2, 3):
        [item] = (await worker.take(server, 1, now=NOW)).items
        assert item.raw == b"bad"
        failed = await worker.fail(server, item, error=f"try {tries}", now=NOW + tries)
        assert (failed.tries, failed.dead) == (tries, tries == 3)
        [item] = (await worker.take(server, 1, now=NOW)).items if tries < 3 else [None]
        if item is not None:
            await worker.put_back(server, [item])
    [letter] = await RAW.dead_letters(server)
    assert (letter.raw, letter.error, letter.dead_at, letter.attempts) == (b"bad", "try 3", NOW + 3, 3)
    assert (await worker.fail(server, item or taken_item(b"bad"), error="", now=NOW)).tries == 0
    assert "raw:poison" not in await names(server)


def taken_item(raw: bytes):
    from keystead.patterns.worklist_items import Item

    return Item(raw, raw)


async def test_dead_letters_are_bounded_and_can_be_replayed(server: Valkey) -> None:
    await RAW.push_raw(server, b"1\n2", b"2", b"3")
    worker = RAW.worker("w")
    for item in (await worker.take(server, 3, now=NOW)).items:
        assert await worker.bury(server, [item], error="no", now=NOW) == 1
    assert [letter.raw for letter in await RAW.dead_letters(server)] == [b"2", b"3"]
    await server.run(("LPUSH", RAW.dead.name(server.layout), b"no letter"), int)
    assert await RAW.replay(server, 10) == 2
    assert await raws(server, RAW.queue) == [b"2", b"3"]
    assert await raws(server, RAW.dead) == [b"no letter"]


async def test_chosen_dead_letters_are_replayed_once(server: Valkey) -> None:
    await RAW.push_raw(server, b"1\n2", b"3")
    worker = RAW.worker("w")
    for item in (await worker.take(server, 3, now=NOW)).items:
        await worker.bury(server, [item], error="no", now=NOW)
    first, second = await raws(server, RAW.dead)
    assert await RAW.replay_chosen(server, first, b"no letter", first) == 1
    assert await raws(server, RAW.queue) == [b"1\n2"]
    assert await raws(server, RAW.dead) == [second]
    assert await RAW.replay_chosen(server, first) == 0


async def test_only_dead_workers_are_adopted_and_order_is_kept(server: Valkey, valkey_server, request) -> None:
    await RAW.push_raw(server, *(b"%d" % n for n in range(8)))
    dead, living = RAW.worker("dead"), RAW.worker("living")
    await dead.take(server, 3, now=NOW)
    held = await living.take(server, 2, now=NOW)
    assert (await RAW.adopt(server, now=NOW)).workers == 0
    await server.run(("DEL", RAW.alive_key.at("dead").name(server.layout)), int)
    recovered = await RAW.adopt(server, now=NOW)
    assert (recovered.workers, recovered.items, recovered.dead) == (1, 3, 0)
    assert await raws(server, RAW.queue) == [b"0", b"1", b"2", b"5", b"6", b"7"]
    assert (await living.finish(server, held)).count == 2
    assert (await RAW.adopt(server, now=NOW)).workers == 0


async def test_paused_worker_learns_that_its_items_were_adopted(server: Valkey) -> None:
    await RAW.push_raw(server, b"a", b"b")
    paused, other = RAW.worker("paused"), RAW.worker("other")
    held = await paused.take(server, 2, now=NOW)
    await server.run(("DEL", RAW.alive_key.at("paused").name(server.layout)), int)
    await RAW.adopt(server, now=NOW)
    again = [item for _ in held for item in await other.take(server, 1, now=NOW, leftovers_first=False)]
    late = await paused.finish(server, held)
    assert late.count == 0 and late.lost == tuple(held.items)
    assert (await other.finish(server, again)).count == 2


async def test_item_that_always_comes_too_late_dies_in_the_end(server: Valkey) -> None:
    """What is counted against an item stays when a worker that had lost it tries to finish it."""
    await RAW.push_raw(server, b"slow")
    for number in range(3):
        worker = RAW.worker(f"w{number}")
        held = await worker.take(server, 1, now=NOW)
        await server.run(("DEL", RAW.alive_key.at(f"w{number}").name(server.layout)), int)
        await RAW.adopt(server, now=NOW)
        assert (await worker.finish(server, held)).lost == tuple(held.items)
    [letter] = await RAW.dead_letters(server)
    assert (letter.raw, letter.attempts) == (b"slow", 3)
    assert await RAW.length(server) == 0


async def test_many_dead_workers_are_adopted_in_bounded_steps_and_in_order(server: Valkey) -> None:
    everything = [b"%d" % number for number in range(12_000)]
    for number in range(3):
        await RAW.push_raw(server, *everything[number * 4000 : (number + 1) * 4000])
        await RAW.worker(f"w{number}").take(server, 4000, now=NOW)
        await server.run(("DEL", RAW.alive_key.at(f"w{number}").name(server.layout)), int)
    steps = [await RAW.adopt(server, now=NOW) for _ in range(3)]
    assert [step.workers for step in steps] == [2, 1, 0]
    assert await raws(server, RAW.queue) == everything


async def test_calls_with_more_values_than_lua_can_unpack_work(server: Valkey) -> None:
    everything = [b"%d" % number for number in range(9_000)]
    assert await RAW.try_push(server, *everything, limit=10_000)
    worker, held = RAW.worker(), []
    for _ in range(2):
        held += (await worker.take(server, 4500, now=NOW, leftovers_first=False)).items
    assert not (await worker.finish_and_take(server, held, 1, now=NOW)).lost
    assert await worker.held(server) == 0


async def test_sign_of_life_expires_after_its_time(valkey: Valkey, moving_clock: MovableClock) -> None:
    await RAW.push_raw(valkey, b"a", b"b")
    worker = RAW.worker("w")
    await worker.take(valkey, 1, now=NOW)
    moving_clock.advance(20)
    assert (await RAW.adopt(valkey, now=NOW)).workers == 0
    await worker.beat(valkey)
    moving_clock.advance(20)
    assert (await RAW.adopt(valkey, now=NOW)).workers == 0
    moving_clock.advance(10)
    assert (await RAW.adopt(valkey, now=NOW)).items == 1


async def test_alive_keeps_beating_and_leaves_at_the_end(server: Valkey) -> None:
    quick = WorkList(Keyspace("quick", tag="q"), "quick", bytes, alive_seconds=3.0, purpose="a test")
    await quick.push_raw(server, b"a", b"b")
    worker, mark = quick.worker("w"), quick.alive_key.at("w").name(server.layout)
    async with worker.alive(server):
        await worker.take(server, 1, now=NOW)
        first_end = await server.pexpiretime(mark)
        async with asyncio.timeout(20):
            while await server.pexpiretime(mark) <= first_end:
                await asyncio.sleep(0.05)
        assert (await quick.adopt(server, now=NOW)).workers == 0
    async with asyncio.timeout(20):
        while not (recovered := await quick.adopt(server, now=NOW)).workers:
            await asyncio.sleep(0.02)
    assert (recovered.workers, recovered.items) == (1, 1)
    assert "quick:workers" not in await names(server)


async def test_item_that_kills_its_worker_dies_and_its_neighbours_live(server: Valkey) -> None:
    """Three crashes with a batch of ten: only the item that is there each time is given up."""
    everything = [b"%d" % n for n in range(10)]
    await RAW.push_raw(server, *everything)
    worker = RAW.worker()
    done: list[bytes] = []
    crashes = 0
    await worker.recover(server, now=NOW)
    while taken := (await worker.take(server, 10, now=NOW)).items:
        if b"4" in [item.raw for item in taken]:
            crashes += 1
            await worker.recover(server, now=NOW)
            continue
        await worker.finish(server, taken)
        done += [item.raw for item in taken]
    assert crashes == 3
    assert [letter.raw for letter in await RAW.dead_letters(server)] == [b"4"]
    assert done == [raw for raw in everything if raw != b"4"]
    assert await names(server) == {"raw:dead"}


async def test_failed_items_still_come_in_batches(server: Valkey) -> None:
    """Only a crash makes a suspect: while a provider is away, retries must not crawl."""
    await RAW.push_raw(server, b"1", b"2", b"3")
    worker = RAW.worker("w")
    for item in await worker.take(server, 3, now=NOW):
        await worker.fail(server, item, error="away", now=NOW)
    assert (await worker.take(server, 3, now=NOW)).values == [b"1", b"2", b"3"]


async def test_crashes_of_equal_items_count_once_each_time(server: Valkey) -> None:
    await RAW.push_raw(server, *[b"same"] * 5)
    worker = RAW.worker()
    await worker.take(server, 5, now=NOW)
    recovered = await worker.recover(server, now=NOW)
    assert (recovered.items, recovered.dead) == (5, 0)


async def test_waiting_worker_is_woken_by_a_push(server: Valkey) -> None:
    worker = RAW.worker("w")
    waiting = asyncio.create_task(worker.wait_and_take(server, 10, 60, now=NOW))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await RAW.push_raw(server, b"a", b"b", b"c")
    async with asyncio.timeout(30):
        taken = await waiting
    assert taken.values in ([b"a", b"b", b"c"], [b"a"])
    assert await raws(server, worker.purgatory) == [item.raw for item in taken]
    assert (await worker.finish(server, taken)).count == len(taken)


async def test_wait_ends_when_its_time_is_over(server: Valkey) -> None:
    assert not (await RAW.worker("w").wait_and_take(server, 1, 0.1, now=NOW)).items
    assert not (await RAW.worker().wait_and_take(server, 1, 0.1, now=NOW)).items


async def test_waiting_worker_buries_what_does_not_decode(server: Valkey) -> None:
    waiting = asyncio.create_task(TEXTS.worker("w").wait_and_take(server, 1, 60, now=NOW))
    await asyncio.sleep(0.05)
    await TEXTS.push_raw(server, b"nonsense")
    async with asyncio.timeout(30):
        assert not (await waiting).items
    assert [letter.raw for letter in await TEXTS.dead_letters(server)] == [b"nonsense"]


async def test_many_workers_share_a_list_without_overlap(server: Valkey) -> None:
    await RAW.push_raw(server, *(b"%d" % n for n in range(500)))
    done: Counter[bytes] = Counter()

    async def work(name: str) -> None:
        worker = RAW.worker(name)
        while taken := await worker.take(server, 7, now=NOW):
            await asyncio.sleep(0)
            finished = await worker.finish(server, taken)
            assert finished.count == len(taken)
            done.update(item.raw for item in taken)

    await asyncio.gather(*(work(f"w{n}") for n in range(10)))
    assert done == Counter(b"%d" % n for n in range(500))


async def test_wrong_type_is_noticed_before_anything_moves(server: Valkey) -> None:
    await RAW.push_raw(server, b"a")
    worker = RAW.worker("w")
    await server.run(("SET", worker.purgatory.name(server.layout), "x"), str)
    with pytest.raises(Exception, match="WRONGTYPE"):
        await worker.take(server, 1, now=NOW)
    assert await raws(server, RAW.queue) == [b"a"]
    await server.run(("DEL", worker.purgatory.name(server.layout)), int)
    taken = await worker.take(server, 1, now=NOW)
    await server.run(("SET", DONE.at().name(server.layout), "x"), str)
    with pytest.raises(Exception, match="WRONGTYPE"):
        await worker.hand_over(server, [(taken.items[0], b"r")], DONE.at())
    assert await worker.held(server) == 1
    await RAW.push_raw(server, b"b")
    with pytest.raises(Exception, match="WRONGTYPE"):
        await worker.take_from(server, [RAW.queue, DONE.at()], CLOSED.at(), 5, now=NOW, leftovers_first=False)
    assert await raws(server, RAW.queue) == [b"b"]
    await server.run(("DEL", DONE.at().name(server.layout)), int)
    await server.run(("SET", RAW.poison_key.at().name(server.layout), "x"), str)
    for settle in (
        worker.finish(server, taken), worker.hand_over(server, [(taken.items[0], b"r")], DONE.at()),
        worker.finish_and_take(server, taken.items, 1, now=NOW), worker.bury(server, taken, error="x", now=NOW),
        worker.fail(server, taken.items[0], error="x", now=NOW), worker.recover(server, now=NOW),
    ):
        with pytest.raises(Exception, match="WRONGTYPE"):
            await settle
        assert await raws(server, worker.purgatory) == [b"a"]


async def test_lanes_lie_apart_and_need_their_variable(server: Valkey) -> None:
    await LANES.at("1").push(server, 1)
    await LANES.at(lane="2").push(server, 2)
    assert (await LANES.at("2").worker("w").take(server, 5, now=NOW)).values == [2]
    with pytest.raises(DeclarationError, match="has variables"):
        await LANES.push(server, 1)


async def test_crash_at_any_command_loses_and_doubles_nothing(server: Valkey) -> None:
    everything = [b"%d" % n for n in range(6)]
    async for mortal in crash_points(server):
        for node in await server.nodes():
            await node.call(("FLUSHALL",))
        await RAW.push_raw(server, *everything)
        worker = RAW.worker("w")
        try:
            while taken := await worker.take(mortal, 2, now=NOW):
                await worker.hand_over(mortal, [(item, item.raw) for item in taken], DONE.at())
        except BaseException as died:
            if not mortal.dead:
                raise died
        done = await raws(server, DONE.at())
        held, waiting = await raws(server, worker.purgatory), await raws(server, RAW.queue)
        assert done + held + waiting == everything
        if not mortal.dead:
            assert done == everything
            return


def test_declared_facts_reach_every_key() -> None:
    sms = [declaration for declaration in SPACE if declaration.pattern.startswith("sms")]
    assert len(sms) == 7
    assert all(each.writers == ("t",) and each.tag.describe() == "msg" and "texts" in each.purpose for each in sms)
    assert not any(isinstance(each, SortedSetKey) for each in sms)




async def test_a_patient_list_gives_up_later(server: Valkey) -> None:
    patient = RAW.trying(5)
    await patient.push(server, b"a")
    worker = patient.worker("one")
    for tried in range(1, 6):
        taken = await worker.take(server, 1, now=NOW)
        failed = await worker.fail(server, taken.items[0], error="no", now=NOW)
        assert (failed.tries, failed.dead) == (tried, tried == 5)
    await RAW.push(server, b"b")
    for _ in range(3):
        taken = await RAW.worker("two").take(server, 1, now=NOW)
        failed = await RAW.worker("two").fail(server, taken.items[0], error="no", now=NOW)
    assert failed.dead, "the list itself is as it was"

"""The two-tier cache: who reads the source, what is kept where, and what a purge undoes."""

import asyncio
import time

import pytest

from keystead.engine import Message, Valkey
from keystead.errors import DeclarationError, Unavailable
from keystead.keys import Keyspace, Layout, Registry
from keystead.patterns import cache as cache_module
from keystead.patterns.cache import Cache
from keystead.patterns.cache_disk import DiskTier
from keystead.patterns.cache_ear import MOST_MARKS
from keystead.patterns.cache_flight import Flight, Loaded
from keystead.patterns.cache_frames import Push, plain_pushes
from keystead.patterns.cache_process import ENTRY_BYTES, Entry, ProcessTier
from keystead.telemetry import counts
from keystead.testing.checks import check_no_undeclared_keys
from keystead.testing.clock import MovableClock

from .cache_room import (
    BOTH,
    LEVELS,
    LOCAL,
    MARKED,
    PROMPT,
    SHARED,
    SLIDING,
    SPACE,
    STALE,
    Instances,
    Page,
    Source,
    external_frames,
    prompt_frames,
    transcript_frames,
)
from .lock_room import patched


@pytest.fixture
def url(server: Valkey, request: pytest.FixtureRequest) -> str:
    cluster = server.layout is Layout.TAGGED
    return request.getfixturevalue("valkey_cluster" if cluster else "valkey_server").url


async def until(condition, seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)


def now() -> float:
    return time.time()


# -- one reader --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", [BOTH, LOCAL, PROMPT, SHARED, MARKED], ids=lambda cache: cache.template.spelling)
async def test_cold_value_is_read_from_the_source_once_for_all_instances_and_callers(server, url, cache) -> None:
    value = b"x" if cache in (LOCAL, PROMPT) else Page(1)
    source = Source(a=value)
    async with Instances() as instances:
        group = [await instances.add(cache, url) for _ in range(4)]
        slow = source.load("a", lambda: asyncio.sleep(0.05))
        got = await asyncio.gather(*(each.get("a", load=slow) for each in group for _ in range(50)))
    assert got == [value] * 200
    assert source.reads == ["a"]
    assert not await server.exists(cache.place({cache.template.names[0]: "a"}, server.layout).lock) or cache is MARKED


@pytest.mark.parametrize("cache", [BOTH, LOCAL, SHARED, MARKED], ids=lambda cache: cache.template.spelling)
async def test_absence_is_read_once_and_believed_for_five_seconds(server, url, cache, valkey_server, request) -> None:
    source = Source()
    async with Instances() as instances:
        group = [await instances.add(cache, url) for _ in range(3)]
        slow = source.load("a", lambda: asyncio.sleep(0.05))
        assert set(await asyncio.gather(*(each.get("a", load=slow) for each in group for _ in range(20)))) == {None}
        assert source.reads == ["a"]
        variable = cache.template.names[0]
        left = await cache.recent_key.at(**{variable: "a"}).remaining_seconds(server)
        assert left is not None and 0 < left <= 5
        await cache.at("a").purge(server, now=now())
        source.rows["a"] = value = b"x" if cache is LOCAL else Page(1)
        for each in group:
            each.forget("a")
            assert await each.get("a", load=source.load("a")) == value


async def test_error_of_the_loader_reaches_its_waiters_and_poisons_nothing(server, url) -> None:
    source = Source(a=OSError("no database"))
    async with Instances() as instances:
        one, two = [await instances.add(BOTH, url) for _ in range(2)]
        slow = source.load("a", lambda: asyncio.sleep(0.02))
        outcomes = await asyncio.gather(
            *(each.get("a", load=slow) for each in (one, two) for _ in range(10)), return_exceptions=True
        )
        assert [type(each) for each in outcomes] == [OSError] * 20
        assert len(source.reads) == 2  # each instance tried once
        source.rows["a"] = Page(1)
        assert await one.get("a", load=source.load("a")) == Page(1)
        assert await two.get("a", load=source.load("a")) == Page(1)
    assert len(source.reads) == 3


async def test_cancelled_caller_does_not_end_the_read_for_the_others(server, url) -> None:
    source, gate = Source(a=Page(1)), asyncio.Event()
    async with Instances() as instances:
        one = await instances.add(BOTH, url)
        first = asyncio.create_task(one.get("a", load=source.load("a", gate.wait)))
        await until(lambda: source.reads)
        second = asyncio.create_task(one.get("a", load=source.load("a")))
        await asyncio.sleep(0)
        first.cancel()
        gate.set()
        assert await second == Page(1)
        assert first.cancelled() or first.cancelling()
    assert source.reads == ["a"]


async def test_closing_frees_the_lock_and_tells_who_waits(server, url) -> None:
    source = Source(a=Page(1))
    async with Instances() as instances:
        one = await instances.add(BOTH, url)
        waiting = asyncio.create_task(one.get("a", load=source.load("a", lambda: asyncio.sleep(60))))
        await until(lambda: source.reads)
        await one.aclose()
        with pytest.raises(Unavailable):
            await waiting
    assert not await server.exists(BOTH.place({"uid": "a"}, server.layout).lock)


async def test_lock_that_nobody_frees_delays_others_only_until_it_ends(server, url) -> None:
    cache = Cache(Keyspace("t", tag="t"), "t:{uid}", Page, shared_seconds=60, lock_seconds=60, wait_seconds=60,
                  channel="ps:t", purpose="a test")
    source = Source(a=Page(1))
    async with Instances() as instances:
        group = [await instances.add(cache, url) for _ in range(3)]
        begin = time.monotonic()
        await server.set(cache.place({"uid": "a"}, server.layout).lock, b"1", px=1000)
        assert await asyncio.gather(*(each.get("a", load=source.load("a")) for each in group)) == [Page(1)] * 3
        assert 0.9 < time.monotonic() - begin < 20
    assert source.reads == ["a"]


async def test_wait_is_bounded_even_if_the_lock_is_held_again_and_again(server, url) -> None:
    cache = Cache(Keyspace("t", tag="t"), "t:{uid}", Page, shared_seconds=60, lock_seconds=30, wait_seconds=0.1,
                  channel="ps:t", purpose="a test")
    await server.set(cache.place({"uid": "a"}, server.layout).lock, b"1", ex=30)
    async with Instances() as instances:
        one = await instances.add(cache, url)
        begin = time.monotonic()
        assert await one.get("a", load=Source(a=Page(1)).load("a")) == Page(1)
        assert time.monotonic() - begin < 15
    assert await server.exists(cache.place({"uid": "a"}, server.layout).lock)  # not ours to free


# -- tiers -------------------------------------------------------------------------------------------------------------


async def test_second_read_comes_from_the_process_without_a_command(server, url) -> None:
    async with Instances() as instances:
        one = await instances.add(BOTH, url)
        await one.get("a", load=Source(a=Page(1)).load("a"))
        sent = one._fetcher._valkey.commands_sent if server.layout is Layout.PLAIN else 0
        for _ in range(5):
            assert await one.get("a", load=Source().load("a")) == Page(1)
        assert one.held("a") == b'{"number":1,"text":""}'
        if server.layout is Layout.PLAIN:
            assert one._fetcher._valkey.commands_sent == sent


async def test_instance_that_starts_later_reads_the_server_and_not_the_source(server, url) -> None:
    source = Source(a=Page(1))
    async with Instances() as instances:
        await (await instances.add(BOTH, url)).get("a", load=source.load("a"))
        late = await instances.add(BOTH, url)
        assert late.held("a") is None
        assert await late.get("a", load=source.load("a")) == Page(1)
        assert late.held("a") is not None
        assert await late.get_raw("b", load=Source(b=Page(2)).load("b")) == b'{"number":2,"text":""}'
    assert source.reads == ["a"]


async def test_fill_reaches_processes_that_did_not_ask(server, url) -> None:
    async with Instances() as instances:
        one, two = [await instances.add(LOCAL, url) for _ in range(2)]
        await one.get("a", load=Source(a=b"x").load("a"))
        await until(lambda: two.held("a") == b"x")


async def test_expiry_on_the_server_is_within_the_declared_and_jittered(server, url) -> None:
    async with Instances() as instances:
        one = await instances.add(SHARED, url)
        lefts = []
        for number in range(20):
            await one.get(f"k{number}", load=Source(x=Page(1)).load("x"))
            left = await SHARED.value_key.at(f"k{number}").remaining_seconds(server)
            assert 55 < left <= 90
            lefts.append(left)
        assert max(lefts) - min(lefts) > 3


async def test_loader_may_shorten_the_time(server, url) -> None:
    async def load():
        return Loaded(Page(1), 7)

    async with Instances() as instances:
        clock = MovableClock()
        one = await instances.add(BOTH, url, clock=clock)
        assert await one.get("a", load=load) == Page(1)
        assert await BOTH.value_key.at("a").remaining_seconds(server) <= 7
        await until(lambda: one.held("a"))
        clock.advance(7.1)
        assert one.held("a") is None


async def test_sliding_value_lives_from_its_last_use(server, url) -> None:
    async with Instances() as instances:
        one, two = [await instances.add(SLIDING, url) for _ in range(2)]
        await one.get("a", load=Source(a=b"x").load("a"))
        name = SLIDING.place({"uid": "a"}, server.layout).value
        await server.pexpire(name, 5000)
        two.forget("a")
        assert await two.get("a", load=Source().load("a")) == b"x"
        assert await server.ttl(name) > 890


async def test_stale_value_is_answered_while_one_reader_fetches_it_anew(server, url, request) -> None:
    source, gate = Source(a=Page(1)), asyncio.Event()
    clock = MovableClock()
    async with Instances() as instances:
        one, two = [await instances.add(STALE, url, clock=clock) for _ in range(2)]
        assert await one.get("a", load=source.load("a")) == Page(1)
        assert await two.get("a", load=source.load("a")) == Page(1)
        source.rows["a"] = Page(2)
        clock.advance(61)
        await server.pexpire(STALE.place({"uid": "a"}, server.layout).value, 59_000)
        slow = source.load("a", gate.wait)
        assert [await each.get("a", load=slow) for each in (one, two) for _ in range(5)] == [Page(1)] * 10
        await until(lambda: len(source.reads) == 2)
        assert await one.get("a", load=slow) == Page(1)
        gate.set()
        await until(lambda: one.held("a") == two.held("a") == b'{"number":2,"text":""}')
        assert await two.get("a", load=slow) == Page(2)
    assert len(source.reads) == 2


async def test_failed_refresh_leaves_the_stale_value(server, url) -> None:
    source = Source(a=Page(1))
    clock = MovableClock()
    async with Instances() as instances:
        one = await instances.add(STALE, url, clock=clock)
        assert await one.get("a", load=source.load("a")) == Page(1)
        source.rows["a"] = OSError("down")
        clock.advance(61)
        await server.pexpire(STALE.place({"uid": "a"}, server.layout).value, 59_000)
        assert await one.get("a", load=source.load("a")) == Page(1)
        await until(lambda: len(source.reads) == 2)
        await asyncio.sleep(0.05)
        assert await one.get("a", load=source.load("a")) == Page(1)
        assert len(source.reads) == 2  # not tried again at once
        assert not await server.exists(STALE.place({"uid": "a"}, server.layout).lock)


# -- purges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", [BOTH, LOCAL, PROMPT], ids=lambda cache: cache.template.spelling)
async def test_after_a_purge_every_instance_answers_the_new_value(server, url, cache) -> None:
    def value(number):
        return Page(number) if cache is BOTH else b"%d" % number

    source = Source(a=value(1))
    async with Instances() as instances:
        group = [await instances.add(cache, url) for _ in range(3)]
        for each in group:
            assert await each.get("a", load=source.load("a")) == value(1)
        source.rows["a"] = value(2)
        await cache.at("a").purge(server, now=now())
        await until(lambda: all(each.held("a") is None for each in group))
        assert await asyncio.gather(*(each.get("a", load=source.load("a")) for each in group)) == [value(2)] * 3
    assert source.reads == ["a", "a"]


async def test_slow_fill_cannot_undo_a_newer_purge(server, url) -> None:
    source, gate = Source(a=Page(1)), asyncio.Event()
    async with Instances() as instances:
        one, two = [await instances.add(BOTH, url) for _ in range(2)]

        async def late():
            if len(source.reads) == 1:
                await gate.wait()

        slow = asyncio.create_task(one.get("a", load=source.load("a", late)))
        await until(lambda: source.reads)
        source.rows["a"] = Page(2)
        await BOTH.at("a").purge(server, now=now())
        other = asyncio.create_task(two.get("a", load=source.load("a")))
        gate.set()
        assert await slow == Page(2)  # its first read was refused, so it read again
        assert await other == Page(2)
        assert await one.get("a", load=source.load("a")) == Page(2)
        assert await two.get("a", load=source.load("a")) == Page(2)
        assert await BOTH.value_key.at("a").get(server) == Page(2)


async def test_slow_fill_is_refused_by_the_server_even_for_a_deaf_instance(server, url) -> None:
    """The script alone decides: here nobody hears the purge in time, and clocks disagree by an hour."""
    source, gate = Source(a=b"old"), asyncio.Event()
    async with Instances() as instances:
        one = await instances.add(LOCAL, url, clock=MovableClock(now=now() + 3600))
        listener = one._shelf.ear
        slow = asyncio.create_task(one.get("a", load=source.load("a", gate.wait)))
        await until(lambda: source.reads)
        await listener.aclose()
        source.rows["a"] = b"new"
        await LOCAL.at("a").purge(server, now=now() - 3600)
        gate.set()
        assert await slow == b"new"
        assert one.held("a") is None  # deaf, so nothing may be held
    assert source.reads == ["a", "a"]


async def test_deaf_instance_does_not_wait_for_messages(server, url) -> None:
    """Another has just filled, or still reads: who hears nothing looks by itself, or reads the source."""
    source, space = Source(a=b"x", b=Page(1)), Keyspace("t", tag="t")
    with patched(cache_module, RECENT_SECONDS=60.0, POLL_BESIDE_CHANNEL_SECONDS=60.0):
        in_processes = Cache(space, "l:{uid}", bytes, local_seconds=60, lock_seconds=60, channel="ps:l", collab=True,
                             purpose="a test")
        on_the_server = Cache(space, "s:{uid}", Page, shared_seconds=60, local_seconds=60, lock_seconds=60,
                              channel="ps:s", collab=True, purpose="a test")
    async with Instances() as instances:
        good, deaf = [await instances.add(in_processes, url) for _ in range(2)]
        shared, deaf_shared = [await instances.add(on_the_server, url) for _ in range(2)]
        await deaf._shelf.ear.aclose()
        await deaf_shared._shelf.ear.aclose()
        assert await good.get("a", load=source.load("a")) == b"x"
        begin = time.monotonic()
        assert await deaf.get("a", load=source.load("a")) == b"x"
        slow = source.load("b", lambda: asyncio.sleep(0.1))
        assert await asyncio.gather(shared.get("b", load=slow), deaf_shared.get("b", load=slow)) == [Page(1)] * 2
        assert time.monotonic() - begin < 20
    assert source.reads == ["a", "a", "b"]


async def test_own_purge_is_seen_by_the_next_read_of_the_same_process(server, url) -> None:
    source = Source(a=Page(0))
    async with Instances() as instances:
        one = await instances.add(BOTH, url)
        for number in range(30):
            assert await one.get("a", load=source.load("a")) == Page(number)
            source.rows["a"] = Page(number + 1)
            await BOTH.at("a").purge(server, now=now())
            one.forget("a")


async def test_put_replaces_everywhere_and_beats_a_slow_fill(server, url) -> None:
    source, gate = Source(a=Page(1)), asyncio.Event()
    async with Instances() as instances:
        one, two = [await instances.add(BOTH, url) for _ in range(2)]
        slow = asyncio.create_task(one.get("a", load=source.load("a", gate.wait)))
        await until(lambda: source.reads)
        source.rows["a"] = Page(9)
        await BOTH.at("a").put(server, Page(9), now=now())
        await until(lambda: two.held("a") is not None)
        gate.set()
        assert await slow == Page(9)
        assert await two.get("a", load=source.load("a")) == Page(9)
        assert await BOTH.value_key.at("a").get(server) == Page(9)


async def test_purges_travel_in_one_transaction_with_other_writes(server, url) -> None:
    async with Instances() as instances:
        one = await instances.add(BOTH, url)
        for uid in "abc":
            await one.get(uid, load=Source(x=Page(1)).load("x"))
        async with server.pipeline(transaction=True) as pipeline:
            had = [BOTH.at(uid).purge(pipeline, now=now()) for uid in "abcd"]
            await pipeline.execute()
        assert [await each for each in had] == [True, True, True, False]
        await until(lambda: all(one.held(uid) is None for uid in "abc"))


async def test_purge_without_a_variable_forgets_every_value_of_it(server, url) -> None:
    async with Instances() as instances:
        one = await instances.add(LEVELS, url)
        for level in ("full", "random"):
            await one.get("a", level, load=Source(x=b"1").load("x"))
        await one.get("b", "full", load=Source(x=b"1").load("x"))
        await until(lambda: one.held("a", "random") and one.held("b", "full"))
        await LEVELS.channel.at().publish(server, Push({"uid": "a"}, None, 1))
        await until(lambda: one.held("a", "full") is None and one.held("a", "random") is None)
        assert one.held("b", "full") == b"1"


# -- bad bytes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", [SHARED, BOTH], ids=lambda cache: cache.template.spelling)
async def test_value_that_does_not_decode_is_a_miss_and_is_deleted(server, url, cache) -> None:
    name = cache.place({"uid": "a"}, server.layout).value
    before = counts.value("cache_undecodable", family=cache.template.spelling)
    await server.set(name, b"not json")
    async with Instances() as instances:
        one = await instances.add(cache, url)
        assert await one.get("a", load=Source(a=Page(1)).load("a")) == Page(1)
    assert await server.get(name) == b'{"number":1,"text":""}'
    assert counts.value("cache_undecodable", family=cache.template.spelling) == before + 1


async def test_marker_is_never_answered_as_data(server, url) -> None:
    name = MARKED.place({"sub": "a"}, server.layout).value
    await server.set(name, b"1", px=200)
    source = Source(a=Page(1))
    async with Instances() as instances:
        group = [await instances.add(MARKED, url) for _ in range(3)]
        got = await asyncio.gather(*(each.get("a", load=source.load("a")) for each in group))
    assert got == [Page(1)] * 3 and source.reads == ["a"]
    assert MARKED.value_key.codec.decode(b"1") is None


async def test_value_that_looks_like_the_marker_is_refused() -> None:
    cache = Cache(Keyspace("t"), "t:{uid}", int, shared_seconds=1, in_flight_marker=True, purpose="a test")
    assert cache.value_key.codec.encode(None) == b"1"
    with pytest.raises(DeclarationError):
        Cache(Keyspace("t"), "t:{uid}", int, local_seconds=1, in_flight_marker=True, purpose="a test")


FRAMES = {
    "external": (external_frames(), LOCAL, b"some value"),
    "prompt": (prompt_frames(), PROMPT, b"some value"),
    "transcript": (transcript_frames(), SLIDING, b"some value"),
    "plain": (plain_pushes(), BOTH, b'{"number":5,"text":""}'),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_come_back_as_they_were(name) -> None:
    codec, _, value = FRAMES[name]
    version = 1_700_000_000_123_456 if name in ("external", "plain") else 0
    fill = Push({"uid": "ä1"}, value, version)
    assert codec.decode(codec.encode(fill)) == fill
    purge = Push({"uid": "ä1"}, None, version)
    if codec.purges:
        assert codec.decode(codec.encode(purge)) == purge
    else:
        with pytest.raises(DeclarationError):
            codec.encode(purge)


@pytest.mark.parametrize("name", FRAMES)
async def test_frame_cut_at_any_byte_is_refused_counted_and_writes_nothing(valkey, valkey_server, name) -> None:
    codec, cache, value = FRAMES[name]
    whole = codec.encode(Push({"uid": "a"}, value, 1_700_000_000_000_000))
    fixed = len(whole) - len(value) if name != "transcript" else len(whole)  # the last part takes the rest, if any
    channel = cache.channel.at()
    async with Instances() as instances:
        one = await instances.add(cache, valkey_server.url)
        before = counts.value("cache_frames_refused", channel=channel.logical)
        for end in range(fixed):
            await valkey.publish(channel.logical, whole[:end])
        await until(lambda: counts.value("cache_frames_refused", channel=channel.logical) == before + fixed)
        assert one.held("a") is None
        await valkey.publish(channel.logical, whole)
        await until(lambda: one.held("a") == value)


async def test_length_larger_than_the_frame_is_refused(valkey, valkey_server) -> None:
    channel = PROMPT.channel.at()
    async with Instances() as instances:
        one = await instances.add(PROMPT, valkey_server.url)
        before = counts.value("cache_frames_refused", channel=channel.logical)
        await valkey.publish(channel.logical, b"\x01" + (2**32 - 1).to_bytes(4, "big") + b"a" * 40)
        await valkey.publish(channel.logical, b"\x07" + (1).to_bytes(4, "big") + b"a")
        await until(lambda: counts.value("cache_frames_refused", channel=channel.logical) == before + 2)
        assert one.held("a") is None


async def test_unreadable_frame_may_have_been_a_purge_so_nothing_held_is_trusted(valkey, valkey_server) -> None:
    async with Instances() as instances:
        one = await instances.add(LOCAL, valkey_server.url)
        await one.get("a", load=Source(a=b"x").load("a"))
        await until(lambda: one.held("a"))
        await valkey.publish("ps:local", b"\x00")
        await until(lambda: one.held("a") is None)


async def test_fill_older_than_a_purge_that_was_heard_is_dropped(valkey, valkey_server) -> None:
    channel = LOCAL.channel.at()
    async with Instances() as instances:
        one = await instances.add(LOCAL, valkey_server.url)
        await channel.publish(valkey, Push({"uid": "a"}, None, 2_000_000))
        await channel.publish(valkey, Push({"uid": "a"}, b"old", 1_999_999))
        await channel.publish(valkey, Push({"uid": "b"}, b"other", 1))
        await until(lambda: one.held("b"))
        assert one.held("a") is None
        await channel.publish(valkey, Push({"uid": "a"}, b"new", 2_000_000))
        await until(lambda: one.held("a") == b"new")


async def test_flood_of_messages_is_not_remembered_whole(valkey, valkey_server) -> None:
    async with Instances() as instances:
        ear = (await instances.add(LOCAL, valkey_server.url))._shelf.ear
        for number in range(MOST_MARKS + 2000):
            assert ear._is_current(f"k{number}", Push({}, None, number + 1))
        assert len(ear._marks) <= MOST_MARKS
        assert not ear._is_current(f"k{number}", Push({}, b"old", number)), "the newest are known"


async def test_gap_counts_from_the_moment_it_is_known(valkey, valkey_server) -> None:
    """Before any callback has run: neither what is held nor what was read or sent before the gap may be used."""
    source, gate = Source(a=b"x", b=b"y"), asyncio.Event()
    async with Instances() as instances:
        one = await instances.add(LOCAL, valkey_server.url)
        await one.get("a", load=source.load("a"))
        await until(lambda: one.held("a"))
        slow = asyncio.create_task(one.get("b", load=source.load("b", gate.wait)))
        await until(lambda: len(source.reads) == 2)
        listener = one._shelf.ear._listener
        fill = LOCAL.channel.codec.encode(Push({"uid": "c"}, b"old", 1))
        listener.deliver(Message(b"ps:local", fill))
        listener.note_gap()
        assert one.held("a") is None
        gate.set()
        assert await slow == b"y"
        assert one.held("c") is None
        await asyncio.sleep(0.02)
        assert one.held("c") is None


async def test_purge_behind_an_unreadable_frame_or_a_gap_is_still_heard(valkey, valkey_server) -> None:
    """What is not bound to the channel lives on through a gap, so each purge that arrives must count."""
    async with Instances() as instances:
        one = await instances.add(PROMPT, valkey_server.url)
        ear = one._shelf.ear
        listener = ear._listener
        # On the same connection, so what is heard here lies before the cache as well: its own fill cannot come later
        # than the purge that is put behind it.
        async with ear._hub.subscribe(PROMPT.channel.at()) as echo:
            for disturb in (lambda: listener.deliver(Message(b"ps:prompt", b"\x09")), listener.note_gap):
                await one.get("a", load=Source(a=b"x").load("a"))
                assert await echo.get(20) is not None, "the fill"
                await until(lambda: one.held("a"))
                disturb()
                listener.deliver(Message(b"ps:prompt", PROMPT.channel.codec.encode(Push({"uid": "a"}, None))))
                assert one.held("a") == b"x"
                await until(lambda: one.held("a") is None)
                await PROMPT.at("a").purge(valkey, now=now())
                assert await echo.get(20) is not None, "the purge"


async def test_read_that_a_gap_fell_into_is_not_kept(valkey, valkey_server) -> None:
    async with Instances() as instances:
        one = await instances.add(BOTH, valkey_server.url)
        flight = Flight(BOTH.place({"uid": "a"}, Layout.PLAIN), Source().load("a"), refresh=False,
                        generation=one._shelf.generation)
        one._shelf.ear._listener.note_gap()
        one._fetcher._keep(flight, b'{"number":1}', None)
        assert one.held("a") is None


# -- the tiers by themselves -------------------------------------------------------------------------------------------


def entry(raw: bytes | None, *, expires_at: float = 100.0, collab: bool = False) -> Entry:
    return Entry(raw, "family", expires_at, expires_at, collab)


def test_process_tier_stays_within_its_bytes_and_drops_the_least_recently_used() -> None:
    tier = ProcessTier(most_bytes=10 * (ENTRY_BYTES + 2 + 100))
    for number in range(10):
        tier.put(f"k{number}", entry(b"x" * 100))
    assert len(tier) == 10
    assert tier.get("k0", 1.0) is not None
    tier.put("new", entry(b"x" * 98))
    assert tier.get("k1", 1.0) is None and tier.get("k0", 1.0) is not None
    assert tier.used_bytes <= tier.most_bytes
    tier.put("huge", entry(b"x" * 10_000))
    assert tier.get("huge", 1.0) is None and len(tier) == 10
    for key in [key for key, _ in tier.items()]:
        tier.forget(key)
    assert tier.used_bytes == 0


async def test_families_that_share_a_tier_and_a_name_do_not_share_values(valkey, valkey_server) -> None:
    space, tier = Keyspace("t", tag="t"), ProcessTier()
    first = Cache(space, "prompts:{uid}:meta", bytes, local_seconds=60, lock=None, purpose="a test")
    second = Cache(space, "prompts:external:{uid}", bytes, local_seconds=60, lock=None, purpose="a test")
    async with Instances() as instances:
        one = await instances.add(first, valkey_server.url, process=tier)
        two = await instances.add(second, valkey_server.url, process=tier)
        assert await one.get("external", load=Source(x=b"1").load("x")) == b"1"
        assert await two.get("meta", load=Source(x=b"2").load("x")) == b"2"
        assert one.held("external") is None and two.held("meta") == b"2"
        assert len(tier) == 1


def test_process_tier_forgets_what_has_expired() -> None:
    tier = ProcessTier()
    tier.put("k", entry(b"x", expires_at=10))
    assert tier.get("k", 9.9) is not None
    assert tier.get("k", 10.0) is None and len(tier) == 0


def test_disk_tier_survives_a_restart_except_what_depends_on_the_channel(tmp_path) -> None:
    tier = DiskTier(tmp_path)
    tier.put("kept:ä", entry(b"x" * 1000))
    tier.put("absent", entry(None))
    tier.put("collab", entry(b"y", collab=True))
    assert tier.get("collab", 1.0).raw == b"y"
    again = DiskTier(tmp_path)
    assert again.get("kept:ä", 1.0).raw == b"x" * 1000
    assert again.get("absent", 1.0).raw is None
    assert again.get("collab", 1.0) is None
    assert again.get("kept:ä", 100.0) is None
    assert len(list(tmp_path.iterdir())) == len(again) == 1


def test_damaged_file_is_a_miss_whichever_byte_is_wrong(tmp_path) -> None:
    tier = DiskTier(tmp_path)
    tier.put("k", entry(b"value"))
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for place in range(len(whole)):
        tier.put("k", entry(b"value"))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert tier.get("k", 1.0) is None
        assert not path.exists()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        assert len(DiskTier(tmp_path)) == 0


def test_disk_tier_stays_within_its_bytes_and_cleans_up_unfinished_files(tmp_path) -> None:
    (tmp_path / "x.new").write_bytes(b"half")
    (tmp_path / "foreign.txt").write_bytes(b"not ours")
    tier = DiskTier(tmp_path, most_bytes=2000, most_entry_bytes=1500)
    for number in range(20):
        tier.put(f"k{number}", entry(b"x" * 300))
    assert tier.used_bytes <= 2000
    assert tier.used_bytes == sum(path.stat().st_size for path in tmp_path.glob("*.entry"))
    assert tier.get("k19", 1.0) is not None and tier.get("k0", 1.0) is None
    tier.put("large", entry(b"x" * 1600))
    assert tier.get("large", 1.0) is None
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".entry") == ["foreign.txt"]


async def test_disk_tier_answers_after_a_restart(valkey, valkey_server, tmp_path) -> None:
    source = Source(a=b"x")
    for _ in range(2):
        async with Instances() as instances:
            prompt = await instances.add(PROMPT, valkey_server.url, disk=DiskTier(tmp_path / "p"))
            local = await instances.add(LOCAL, valkey_server.url, disk=DiskTier(tmp_path / "l"))
            assert await prompt.get("a", load=source.load("a")) == b"x"
            assert await local.get("a", load=source.load("a")) == b"x"
    assert len(source.reads) == 3  # the one that depends on the channel began anew


async def test_purge_reaches_the_disk(valkey, valkey_server, tmp_path) -> None:
    async with Instances() as instances:
        disk = DiskTier(tmp_path)
        one = await instances.add(PROMPT, valkey_server.url, disk=disk)
        await one.get("a", load=Source(a=b"x").load("a"))
        await until(lambda: len(disk) == 1)
        await PROMPT.at("a").purge(valkey, now=now())
        await until(lambda: len(disk) == 0)
        assert list(tmp_path.iterdir()) == []


# -- declarations ------------------------------------------------------------------------------------------------------


def test_declarations_that_cannot_work_are_refused() -> None:
    space = Keyspace("t", tag="t")
    for wrong in (
        {}, {"local_seconds": 1, "sliding": True}, {"shared_seconds": 1, "stale_seconds": 1, "sliding": True},
        {"local_seconds": 1, "channel": "ps:{uid}"}, {"local_seconds": 1, "channel": "ps:x", "tag": "t:{uid}"},
    ):
        with pytest.raises(DeclarationError):
            Cache(space, "t:{uid}", bytes, purpose="a test", **wrong)


async def test_every_key_is_declared_and_expires(server, url, request) -> None:
    async with Instances() as instances:
        for cache in (BOTH, LOCAL, PROMPT, SHARED, SLIDING, MARKED, STALE):
            one = await instances.add(cache, url)
            value = Page(1) if cache in (BOTH, SHARED, MARKED, STALE) else b"x"
            await one.get("a", load=Source(a=value).load("a"))
            await one.get("none", load=Source().load("none"))
            await cache.at("b").purge(server, now=now())
            await cache.at("c").put(server, value, now=now())
    cluster = server.layout is Layout.TAGGED
    kit = request.getfixturevalue("valkey_cluster" if cluster else "valkey_server")
    servers = kit.primaries() if cluster else [kit]
    registry = Registry([SPACE], layout=server.layout)
    check_no_undeclared_keys(registry, *servers)
    seen = 0
    for each in servers:
        for key in each.call("KEYS", "*"):
            match = registry.resolve(key)
            left = each.call("PTTL", key)
            assert match.declaration.ttl.check(left / 1000 if left >= 0 else None) is None, key
            seen += 1
    assert seen > 15


async def test_channel_that_may_not_be_listened_to_is_told_at_once(valkey, valkey_server) -> None:
    valkey_server.call("ACL", "SETUSER", "deaf", "on", "nopass", "~*", "+@all", "resetchannels")
    try:
        async with Instances() as instances:
            with pytest.raises(Exception, match=r"NOPERM|permission"):
                await instances.add(BOTH, valkey_server.url.replace("unix://", "unix://deaf:x@", 1))
    finally:
        valkey_server.call("ACL", "DELUSER", "deaf")

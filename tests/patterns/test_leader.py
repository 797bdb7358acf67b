"""Leader: one at a time, a growing epoch, and an end before the server could choose another."""

import asyncio
import math
import time

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule
from redis.exceptions import ResponseError

from keystead.engine import Valkey, connect
from keystead.errors import DeclarationError, Invalid
from keystead.keys import Keyspace, Layout, ListKey, Registry
from keystead.patterns.leader import Following, Leader, LeaderAt, Term
from keystead.patterns.lock import LockLost

from .crash import Died, Mortal
from .machines import ServerMachine, on_both, play

ROOM = Keyspace("tests.leader", tag="scheduler")
FACTS = {"writers": ("tests",), "readers": ("tests",)}
LEADER = Leader(ROOM, "scheduler:leader", epoch="scheduler:epoch", purpose="who moves due tasks", **FACTS)
# Renews often and lasts long, so that a slow machine loses nothing.
QUICK = Leader(ROOM, "quick:{name}:leader", epoch="quick:{name}:epoch", lease_seconds=40.0, renew_seconds=0.5,
               margin_seconds=5.0, purpose="a hasty leadership", **FACTS)
# Gives up early, long before its key ends.
BRIEF = Leader(ROOM, "brief:{name}:leader", epoch="brief:{name}:epoch", lease_seconds=6.0, renew_seconds=0.5,
               margin_seconds=4.0, purpose="a brief leadership", **FACTS)
LOG = ListKey(ROOM, "scheduler:log", str, purpose="what leaders wrote", **FACTS)
REGISTRY = Registry([ROOM])
LEASE = 15.0


async def test_first_is_elected_and_the_others_follow(server: Valkey) -> None:
    leader = LEADER.at()

    term = await leader.elect(server, "a")

    assert isinstance(term, Term) and (term.epoch, term.value) == (1, "a:1")
    assert await leader.current(server) == "a:1"
    assert 0 < await server.pttl(leader.reference.name(server.layout)) <= LEASE * 1000
    following = await leader.elect(server, "b")
    assert isinstance(following, Following) and 5 < following.left_seconds <= LEASE


async def test_epoch_grows_with_every_change_and_only_then(server: Valkey) -> None:
    leader = LEADER.at()
    first = await leader.elect(server, "a")
    again = await leader.elect(server, "a")
    assert (again.epoch, again.value) == (first.epoch, first.value)
    assert await leader.resign(server, first) is True
    second = await leader.elect(server, "b")
    assert await leader.resign(server, second) is True
    third = await leader.elect(server, "a")
    assert [term.epoch for term in (first, second, third)] == [1, 2, 3]


async def test_renewing_and_resigning_compare_the_whole_value(server: Valkey) -> None:
    leader = LEADER.at()
    first = await leader.elect(server, "a")
    await leader.resign(server, first)
    second = await leader.elect(server, "a")

    assert await leader.renew(server, first) is None, "the same instance, an earlier term"
    assert await leader.resign(server, first) is False
    assert await leader.renew(server, second) is not None


async def test_instance_whose_name_begins_like_another_is_another(server: Valkey) -> None:
    assert isinstance(await LEADER.at().elect(server, "a:1"), Term)
    assert isinstance(await LEADER.at().elect(server, "a"), Following)
    assert isinstance(await LEADER.at().elect(server, "a:1"), Term)


async def test_moves_travel_in_a_pipeline(server: Valkey) -> None:
    async with server.pipeline(transaction=False) as pipe:
        one, other = LEADER.at().elect(pipe, "a"), LEADER.at().elect(pipe, "b")
        await pipe.execute()
    assert isinstance(await one, Term) and isinstance(await other, Following)


async def test_writes_of_an_earlier_leader_are_refused(server: Valkey) -> None:
    leader = LEADER.at()
    first = await leader.elect(server, "a")
    await LOG.at().push_right(leader.fenced(server, first), "1")
    await server.delete(leader.reference.name(server.layout))
    second = await leader.elect(server, "b")
    with pytest.raises(LockLost):
        await LOG.at().push_right(leader.fenced(server, first), "late")
    await LOG.at().push_right(leader.fenced(server, second), "2")
    assert await LOG.at().range(server) == ["1", "2"]


async def test_leadership_leads_renews_and_resigns(server: Valkey, no_undeclared_keys) -> None:
    if server.layout is Layout.PLAIN:
        no_undeclared_keys(REGISTRY)
    leader = QUICK.at("x")
    key = leader.reference.name(server.layout)
    async with leader.campaign(server, instance="a") as leadership:
        async with asyncio.timeout(20):
            term = await leadership.wait_until_leader()
            first_end = await server.pexpiretime(key)
            while await server.pexpiretime(key) <= first_end or leadership.term.ends_at <= term.ends_at:
                await asyncio.sleep(0.02)
        assert leadership.is_leader
        assert leadership.term is not None and leadership.term.epoch == term.epoch == 1
        await LOG.at().push_right(leadership.fenced(server), "1") if server.layout is Layout.PLAIN else None
    assert not leadership.is_leader
    assert await leader.current(server) is None


async def test_hand_over_is_immediate_when_the_leader_resigns(server: Valkey) -> None:
    leader = LEADER.at()
    async with leader.campaign(server, instance="a") as first, leader.campaign(server, instance="b") as second:
        leading, following = await whoever_leads(first, second)
        await asyncio.sleep(0.3)  # both listen
        began = time.monotonic()
        assert await leading.resign() is True
        async with asyncio.timeout(20):
            term = await following.wait_until_leader()
        assert time.monotonic() - began < LEASE / 2, "long before the lease of 15 s"
        assert term.epoch == 2 and not leading.is_leader
        assert await leading.resign() is False


async def test_vacancy_that_is_told_while_asking_is_not_missed(server: Valkey) -> None:
    """The message overtakes the answer that still speaks of the old leader."""
    leader, told = LEADER.at(), asyncio.Event()
    await leader.elect(server, "old")

    class Late(LeaderAt):
        async def elect(self, on, instance: str):
            answer = await super().elect(on, instance)
            if isinstance(answer, Following):
                async with asyncio.timeout(20):
                    await leadership._vacancy.wait()  # it listens from now on, and is not woken by that any more
                await server.delete(leader.reference.name(server.layout))
                leadership._vacancy.set()
                told.set()
            return answer

    async with Late(LEADER, leader.reference).campaign(server, instance="new") as leadership:
        began = time.monotonic()
        async with asyncio.timeout(60):
            await told.wait()
            assert (await leadership.wait_until_leader()).epoch == 2
        assert time.monotonic() - began < LEASE / 2, "long before the lease it heard of"


async def test_leadership_that_was_resigned_while_asking_is_given_back(server: Valkey) -> None:
    leader, asked, go_on = QUICK.at("x"), asyncio.Event(), asyncio.Event()

    class Slow(LeaderAt):
        async def elect(self, on, instance: str):
            answer = await super().elect(on, instance)
            asked.set()
            await go_on.wait()
            return answer

    async with Slow(QUICK, leader.reference).campaign(server, instance="a") as leadership, asyncio.timeout(20):
        await asked.wait()
        assert await leader.current(server) == "a:1"
        leadership._rests_until = math.inf
        go_on.set()
        while await leader.current(server) is not None:
            await asyncio.sleep(0.01)
        assert not leadership.is_leader


async def test_server_that_refuses_the_election_is_told_to_whoever_waits(valkey: Valkey) -> None:
    leader = LEADER.at()
    await valkey.rpush(leader.reference.name(valkey.layout), "no leader")
    async with leader.campaign(valkey) as leadership, asyncio.timeout(20):
        with pytest.raises(ResponseError, match="WRONGTYPE"):
            await leadership.wait_until_leader()
        with pytest.raises(ResponseError):
            await leadership.lead(lambda term: asyncio.sleep(60))
        assert not leadership.is_leader


async def test_lone_leader_that_resigned_stands_again(server: Valkey) -> None:
    async with QUICK.at("x").campaign(server) as leadership, asyncio.timeout(20):
        await leadership.wait_until_leader()
        await leadership.resign()
        assert not leadership.is_leader
        assert (await leadership.wait_until_leader()).epoch == 2


async def test_follower_takes_over_within_one_lease_of_a_dead_leader(server: Valkey) -> None:
    leader = QUICK.at("x")
    assert isinstance(await leader.elect(server, "dead"), Term)
    await server.pexpire(leader.reference.name(server.layout), 1000)  # the rest of its lease
    died = time.monotonic()
    async with leader.campaign(server, instance="b") as leadership, asyncio.timeout(60):
        term = await leadership.wait_until_leader()
    assert time.monotonic() - died < QUICK.lease_seconds / 2, "as soon as the rest was over"
    assert term.epoch == 2


async def test_leader_that_lost_its_key_stops_its_work_and_begins_anew_when_elected_again(server: Valkey) -> None:
    leader, begun, cancelled = QUICK.at("x"), [], []

    async def work(term: Term) -> str:
        begun.append(term.epoch)
        try:
            await asyncio.sleep(0.02 if len(begun) == 2 else 60)
        except asyncio.CancelledError:
            cancelled.append(term.epoch)
            raise
        return "done"

    async with leader.campaign(server, instance="a") as leadership, asyncio.timeout(30):
        working = asyncio.create_task(leadership.lead(work))
        while not begun:
            await asyncio.sleep(0.01)
        await server.delete(leader.reference.name(server.layout))
        assert await working == "done"
    assert (begun, cancelled) == ([1, 2], [1])


async def test_leader_that_cannot_renew_steps_down_before_its_key_ends(fault_proxy, valkey_server) -> None:
    valkey_server.call("FLUSHALL")
    proxy = await fault_proxy()
    near, far = await connect(proxy.url), await connect(valkey_server.tcp_url)
    leader = BRIEF.at("x")
    try:
        async with leader.campaign(near, instance="a") as leadership:
            async with asyncio.timeout(20):
                await leadership.wait_until_leader()
            proxy.half_open()
            while leadership.is_leader:
                await asyncio.sleep(0.005)
            assert await leader.current(far) == "a:1", "still there when the leader stopped believing"
            left = time.monotonic()
        assert time.monotonic() - left < 9, "leaving does not wait for a server that is away"
    finally:
        await proxy.restore()
        await near.aclose()
        await far.aclose()


async def test_error_of_the_work_goes_through(server: Valkey) -> None:
    async def work(term: Term) -> None:
        raise ZeroDivisionError

    async with QUICK.at("x").campaign(server) as leadership:
        with pytest.raises(ZeroDivisionError):
            await leadership.lead(work)


async def test_never_two_leaders_among_many_that_come_and_go(server: Valkey) -> None:
    leader, terms = QUICK.at("x"), []
    parts: list = []

    async def instance(number: int) -> None:
        for turn in range(2):
            async with leader.campaign(server, instance=f"{number}-{turn}") as leadership:
                parts.append(leadership)
                async with asyncio.timeout(60):
                    term = await leadership.wait_until_leader()
                assert sum(part.is_leader for part in parts) == 1
                terms.append(term.epoch)
                await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(instance(number))
    assert terms == sorted(set(terms)) and len(terms) == 12


async def test_crash_at_any_command_leaves_a_leadership_that_ends(server: Valkey) -> None:
    leader = LEADER.at()
    for at in range(1, 4):
        for after in (False, True):
            await server.flushall()
            mortal = Mortal(server, at, after=after)
            try:
                term = await leader.elect(mortal, "a")
                await leader.renew(mortal, term)
                await leader.resign(mortal, term)
            except Died:
                pass
            left = await server.pttl(leader.reference.name(server.layout))
            assert left == -2 or 0 < left <= LEASE * 1000


@pytest.mark.parametrize(("renew", "margin"), [(12, 3), (5, 0), (0, 3), (5, 15)])
def test_times_that_could_not_be_safe_are_refused(renew: float, margin: float) -> None:
    with pytest.raises(DeclarationError, match="step down before its lease ends"):
        Leader(Keyspace("t", tag="t"), "x", epoch="y", renew_seconds=renew, margin_seconds=margin, purpose="z")


def test_epoch_needs_the_variables_of_its_leadership() -> None:
    with pytest.raises(DeclarationError, match="needs its variables"):
        Leader(Keyspace("t", tag="t"), "x:{a}", epoch="y", purpose="z")


async def test_instance_needs_a_name_and_an_election_before_it_writes(valkey: Valkey) -> None:
    with pytest.raises(Invalid, match="without spaces"):
        LEADER.at().campaign(valkey, instance="a b")
    with pytest.raises(Invalid, match="has not been elected"):
        LEADER.at().campaign(valkey).fenced(valkey)


@on_both
def test_leader_behaves_as_its_model(request: pytest.FixtureRequest, place: str) -> None:
    leader, who = LEADER.at(), st.sampled_from("abc")

    class Machine(ServerMachine):
        def __init__(self, url: str, servers: list) -> None:
            super().__init__(url, servers)
            self.leader, self.epoch, self.ends_at = "", 0, math.inf
            self.terms: dict[str, Term] = {}

        @rule(who=who, remembers=st.booleans())
        def elect(self, who: str, remembers: bool) -> None:
            if not self.leader:
                self.leader, self.epoch = who, self.epoch + 1
            if self.leader == who:
                self.ends_at = self.clock.now() + LEASE
            answer = self.run(lambda: leader.elect(self.client, who))
            assert isinstance(answer, Term) == (self.leader == who)
            if isinstance(answer, Term):
                assert answer.epoch == self.epoch
                if remembers:  # else it crashed with the answer
                    self.terms[who] = answer

        @rule(who=who, times=st.integers(1, 2))
        def renew(self, who: str, times: int) -> None:
            if term := self.terms.get(who):
                valid = (self.leader, self.epoch) == (who, term.epoch)
                for _ in range(times):
                    assert (self.run(lambda: leader.renew(self.client, term)) is not None) == valid
                self.ends_at = self.clock.now() + LEASE if valid else self.ends_at

        @rule(who=who, times=st.integers(1, 2))
        def resign(self, who: str, times: int) -> None:
            if term := self.terms.get(who):
                for _ in range(times):
                    valid = (self.leader, self.epoch) == (who, term.epoch)
                    assert self.run(lambda: leader.resign(self.client, term)) == valid
                    self.leader = "" if valid else self.leader

        # Steps of five: an end is reached or five seconds away, while the server's own clock runs as the test does.
        @rule(seconds=st.sampled_from([5.0, 10.0, 20.0]))
        def time_passes(self, seconds: float) -> None:
            self.clock.advance(seconds)
            if self.leader and self.clock.now() + 1 >= self.ends_at:
                self.leader = ""
                self.run(lambda: self.client.delete(leader.reference.name(self.client.layout)))

        def teardown(self) -> None:
            assert self.run(lambda: leader.epoch.get(self.client)) in (None, self.epoch)
            super().teardown()

    play(request, place, Machine)


async def whoever_leads(first, second):
    async with asyncio.timeout(20):
        while not (first.is_leader or second.is_leader):
            await asyncio.sleep(0.005)
    return (first, second) if first.is_leader else (second, first)

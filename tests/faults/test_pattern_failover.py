"""What a replica was known to have, by WAIT, survives the loss of the primary: uses, marks, failures, epochs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.errors import Unavailable
from keystead.keys import Keyspace
from keystead.patterns import (
    Breaker,
    BreakerState,
    Failures,
    FixedWindow,
    Following,
    Gcra,
    Leader,
    Revocation,
    SlidingLog,
    Term,
    WhenAway,
)
from keystead.testing.cluster import LocalCluster

T = TypeVar("T")

ROOM = Keyspace("tests.failover", tag="failover")
CLOSED = WhenAway.CLOSED
LIMITS = (
    FixedWindow(ROOM, "window", most=3, window_seconds=3600, when_away=CLOSED, purpose="uses in an hour"),
    SlidingLog(ROOM, "log", windows=((3, 3600.0),), when_away=CLOSED, purpose="uses in any hour"),
    Gcra(ROOM, "rate", most=3, per_seconds=36000, when_away=CLOSED, purpose="uses at a rate"),
)
REVOKED = Revocation(ROOM, "revoked:{jti}", purpose="tokens that were used")
BREAKER = Breaker(ROOM, "errors", trips=Failures(1, within_seconds=3600), probe_seconds=3600, purpose="failed calls")
LEADER = Leader(ROOM, "leader", epoch="epoch", lease_seconds=600, renew_seconds=100, purpose="who leads")


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
async def test_what_a_replica_knows_of_is_not_forgotten(cluster: Valkey, valkey_cluster: LocalCluster) -> None:
    now = SystemClock().now()
    call = await BREAKER.at().ask(cluster, now=now)
    async with cluster.pipeline(transaction=False) as pipe:
        uses = [limit.at().use(pipe, now=now) for limit in LIMITS for _ in range(3)]
        first = REVOKED.use_once(pipe, "a", until=now + 3600)
        opened = BREAKER.at().record(pipe, call, went_well=False, now=now)
        elected = LEADER.at().elect(pipe, "one")
        pipe.execute_command("WAIT", 1, 5000)
        replies = await pipe.execute()
    assert replies[-1] >= 1 and all([(await use).allowed for use in uses])
    assert await first and await opened is BreakerState.OPEN and isinstance(await elected, Term)

    valkey_cluster.primary_of(LEADER.at().reference.name(cluster.layout)).kill()

    for limit in LIMITS:
        assert not (await once_there(lambda limit=limit: limit.at().use(cluster, now=now))).allowed
    assert await once_there(lambda: REVOKED.use_once(cluster, "a", until=now + 3600)) is False
    assert (await once_there(lambda: BREAKER.at().ask(cluster, now=now))).state is BreakerState.OPEN
    assert isinstance(await once_there(lambda: LEADER.at().elect(cluster, "two")), Following)
    assert await LEADER.at().current(cluster) == "one:1"


async def once_there(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer, when a replica has taken over."""
    async with asyncio.timeout(90):
        while True:
            try:
                return await ask()
            except Unavailable:
                await asyncio.sleep(0.1)

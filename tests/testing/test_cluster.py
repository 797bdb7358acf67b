import time

import pytest

from keystead.testing.cluster import LocalCluster

pytestmark = pytest.mark.cluster


def test_three_primaries_cover_all_slots_with_a_replica_each(valkey_cluster: LocalCluster) -> None:
    valkey_cluster.heal()
    primaries = valkey_cluster.primaries()
    assert len(primaries) == 3
    assert len({valkey_cluster.replica_of(primary).pid for primary in primaries}) == 3
    ranges = sorted((first, last) for first, last, *_ in primaries[0].call("CLUSTER", "SLOTS"))
    assert ranges == [(0, 5460), (5461, 10921), (10922, 16383)]


def test_killed_primary_is_replaced_and_comes_back_as_replica(valkey_cluster: LocalCluster) -> None:
    valkey_cluster.heal()
    old = valkey_cluster.primary_of("k")
    old.call("SET", "k", "v")
    assert old.call("WAIT", 1, 20_000, seconds=30) == 1
    replica = valkey_cluster.replica_of(old)
    old.kill()
    deadline = time.monotonic() + 60
    while valkey_cluster.primary_of("k") is not replica and time.monotonic() < deadline:
        time.sleep(0.02)
    assert replica.call("GET", "k") == b"v"
    valkey_cluster.heal()
    assert valkey_cluster.replica_of(replica) is old


def test_orderly_fail_over_swaps_roles(valkey_cluster: LocalCluster) -> None:
    valkey_cluster.heal()
    primary = valkey_cluster.primary_of("k")
    replica = valkey_cluster.replica_of(primary)
    valkey_cluster.fail_over(primary)
    assert valkey_cluster.primary_of("k") is replica


def test_flush_empties_every_primary(valkey_cluster: LocalCluster) -> None:
    valkey_cluster.heal()
    for number in range(30):
        valkey_cluster.primary_of(f"k{number}").call("SET", f"k{number}", 1)
    valkey_cluster.flush()
    assert [node.call("DBSIZE") for node in valkey_cluster.primaries()] == [0, 0, 0]

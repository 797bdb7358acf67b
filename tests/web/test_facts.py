"""What the server says about itself."""

import pytest

from keystead.engine import connect
from keystead.errors import Unavailable
from keystead.web.facts import facts_of_info, facts_together, read_facts


async def test_live_server_is_read(valkey):
    await valkey.set("a", 1, ex=60)
    await valkey.set("b", 1)
    await valkey.get("b")
    await valkey.get("c")
    before = await read_facts(valkey)
    facts = await read_facts(valkey)
    assert (facts.product, facts.role, facts.mode) == ("Valkey", "master", "standalone")
    assert facts.version.split(".")[0] >= "8"
    assert (facts.keys, facts.keys_with_ttl) == (2, 1)
    assert facts.memory_peak_bytes >= facts.memory_bytes > 0
    assert facts.clients >= 1 and facts.hits >= 1 and facts.misses >= 1
    assert 0 < facts.hit_rate < 1
    assert facts.commands == before.commands + 1
    assert not facts.loading


def test_redis_is_called_redis():
    facts = facts_of_info({"redis_version": "7.4.1", "redis_mode": "cluster", "role": "slave"})
    assert (facts.product, facts.version, facts.mode) == ("Redis", "7.4.1", "cluster")
    assert facts.hit_rate is None


def test_failed_writes_to_disk_are_told():
    assert facts_of_info({"aof_enabled": 1, "aof_last_write_status": "err"}).persistence_ok is False
    assert facts_of_info({"aof_enabled": 1, "aof_last_write_status": "ok"}).persistence == "append-only file"
    failed = facts_of_info({"aof_enabled": 0, "rdb_last_save_time": 1, "rdb_last_bgsave_status": "err"})
    assert (failed.persistence, failed.persistence_ok) == ("snapshots, last one failed", False)
    assert facts_of_info({}).persistence == "snapshots only"


def test_keys_of_all_databases_are_summed():
    facts = facts_of_info({"db0": {"keys": 3, "expires": 1}, "db7": {"keys": 4, "expires": 2}, "dbsize": 9})
    assert (facts.keys, facts.keys_with_ttl) == (7, 3)


def test_several_servers_count_as_one():
    sound = facts_of_info({"used_memory": 5, "connected_slaves": 1, "uptime_in_seconds": 9, "aof_enabled": 1})
    failed = facts_of_info({"used_memory": 7, "uptime_in_seconds": 4, "aof_enabled": 1, "aof_last_write_status": "err"})
    both = facts_together([sound, failed])
    assert (both.memory_bytes, both.uptime_seconds, both.replicas, both.primaries) == (12, 4, 1, 2)
    assert not both.persistence_ok


@pytest.mark.cluster
async def test_cluster_is_read_whole(cluster):
    for number in range(30):
        await cluster.set(f"k{number}", 1)
    facts = await read_facts(cluster)
    assert (facts.mode, facts.primaries, facts.replicas, facts.keys) == ("cluster", 3, 3, 30)


async def test_server_that_does_not_tell_counts_as_away(valkey, valkey_server):
    await valkey.execute_command("ACL", "SETUSER", "quiet", "on", "nopass", "~*", "+@all", "-info")
    silent = await connect(valkey_server.tcp_url.replace("://", "://quiet:x@"))
    try:
        with pytest.raises(Unavailable, match="does not say how it is"):
            await read_facts(silent)
    finally:
        await silent.aclose()
        await valkey.execute_command("ACL", "DELUSER", "quiet")

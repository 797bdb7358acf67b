"""What the server says about itself."""

from keystead.web.dashboard.keys_server import summary, tile_texts
from keystead.web.facts import facts_of_info, facts_together


def test_summary_says_what_it_is():
    alone = {"role": "master", "redis_mode": "standalone", "uptime_in_seconds": 61}
    assert summary(facts_of_info(alone)) == "Primary, up 1 min 1 s"
    assert summary(facts_of_info({**alone, "connected_slaves": 2})) == "Primary with 2 replicas, up 1 min 1 s"
    node = facts_of_info({**alone, "redis_mode": "cluster", "connected_slaves": 1})
    assert summary(facts_together([node] * 3)) == "Cluster of 3 primaries with 3 replicas, up 1 min 1 s"


def test_every_tile_has_its_text():
    texts = tile_texts(facts_of_info({
        "used_memory": 5_000_000, "used_memory_peak": 6_000_000, "maxmemory": 8_000_000, "evicted_keys": 3,
        "aof_enabled": 1, "aof_last_write_status": "err",
    }))
    assert ("Memory", "5.0 MB", "peak 6.0 MB, limit 8.0 MB") in texts
    assert ("Commands", "0", "0 keys expired, 3 evicted") in texts
    assert ("On disk", "Append-only file, last write failed", "needs attention") in texts

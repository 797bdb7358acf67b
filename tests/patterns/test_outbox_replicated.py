"""A relay that waits for replicas: what a failover may take back is not brought to another shard."""

import os
import signal
from collections.abc import Sequence

import msgspec
import pytest

from keystead.engine import NotReplicated, Valkey, connect
from keystead.keys import Keyspace
from keystead.patterns.outbox import Delivery, Outbox, OutboxEntry
from keystead.settings import ValkeySettings
from keystead.testing.cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]


class Job(msgspec.Struct, frozen=True):
    uid: str


OUT = Outbox(Keyspace("messages", tag="msg"), "outbox", Job, purpose="jobs of messages")


async def test_entry_that_no_replica_has_is_not_delivered(cluster: Valkey, valkey_cluster: LocalCluster) -> None:
    delivered: list[str] = []

    async def deliver(entries: Sequence[OutboxEntry[Job]]) -> Delivery:
        delivered.extend(entry.uid for entry in entries)
        return Delivery.ACCEPTED

    settings = ValkeySettings(replicas=1, replicas_timeout_seconds=0.3)
    careful = await connect(valkey_cluster.url, settings=settings)
    try:
        await careful.ping()
        name = OUT.outbox.name(cluster.layout)
        replica = valkey_cluster.replica_of(valkey_cluster.primary_of(name))
        os.kill(replica.pid, signal.SIGSTOP)
        try:
            await OUT.add(cluster, Job("news"))  # by somebody else, who has not been answered if it is as careful
            with pytest.raises(NotReplicated):
                await OUT.relay(careful, deliver, now=5.0)
            assert delivered == [] and await OUT.length(cluster) == 1
        finally:
            os.kill(replica.pid, signal.SIGCONT)
        valkey_cluster.heal()
        assert (await OUT.relay(careful, deliver, now=5.0)).delivered == 1
        assert delivered == ["news"] and await OUT.length(cluster) == 0
    finally:
        await careful.aclose()

"""Carrying a slot from one primary of the test cluster to another, step by step, and back again afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

from keystead.engine.embedded_process import ValkeyProcess
from keystead.keys.slots import key_slot
from keystead.testing.cluster import LocalCluster


class SlotMove:
    """One slot on its way. ``begin``, then ``carry`` keys, then ``finish``."""

    def __init__(self, cluster: LocalCluster, key: bytes | str) -> None:
        self._cluster = cluster
        self.slot = key_slot(key.encode() if isinstance(key, str) else key)
        self.source = cluster.primary_of(key)
        self.target = next(node for node in cluster.primaries() if node is not self.source)

    def begin(self) -> None:
        _begin(self.slot, self.source, self.target)

    def carry(self, *keys: bytes | str) -> None:
        port = int(str(self.target.options["port"]))
        self.source.call("MIGRATE", "127.0.0.1", port, "", 0, 5000, "KEYS", *keys)

    def finish(self) -> None:
        self._give(self.target)

    def undo(self) -> None:
        """The slot is back where it was, empty. The nodes must be up."""
        for node in (self.source, self.target):
            for key in node.call("CLUSTER", "GETKEYSINSLOT", self.slot, 1000):
                node.call("DEL", key) if node is self._owner() else None
        if self._owner() is self.target:
            _begin(self.slot, self.target, self.source)
            for key in self.target.call("CLUSTER", "GETKEYSINSLOT", self.slot, 1000):
                self.target.call("DEL", key)
            self._give(self.source)
        else:
            for node in (self.source, self.target):
                node.call("CLUSTER", "SETSLOT", self.slot, "STABLE")
        self._cluster.wait_until_well()

    def _owner(self) -> ValkeyProcess:
        for first, last, primary, *_ in self.source.call("CLUSTER", "SLOTS"):
            if first <= self.slot <= last:
                return self._cluster.node_at(int(primary[1]))
        raise AssertionError("the slot has no owner")

    def _give(self, owner: ValkeyProcess) -> None:
        others = [node for node in self._cluster.primaries() if node is not owner]
        for node in (owner, *others):
            node.call("CLUSTER", "SETSLOT", self.slot, "NODE", name_of(owner), seconds=10.0)


@contextmanager
def slot_move(cluster: LocalCluster, key: bytes | str) -> Iterator[SlotMove]:
    move = SlotMove(cluster, key)
    try:
        yield move
    finally:
        move.undo()


def name_of(node: ValkeyProcess) -> str:
    return bytes(node.call("CLUSTER", "MYID")).decode()


def _begin(slot: int, source: ValkeyProcess, target: ValkeyProcess) -> None:
    target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", name_of(source), seconds=10.0)
    source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", name_of(target), seconds=10.0)

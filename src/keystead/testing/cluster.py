"""A cluster for tests: three primaries and three replicas on loopback, from the same program as the single server."""

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hiredis

from keystead.engine.embedded_process import Option, Readiness, ValkeyProcess
from keystead.errors import Unavailable
from keystead.testing.server import free_ports

_SLOTS = 16384
_START_ATTEMPTS = 5
_PATIENCE_SECONDS = 60.0  # only a busy machine needs more than a few


class LocalCluster:
    """Six nodes. A killed primary is replaced by its replica after about two seconds.

    ``heal`` brings killed nodes back (as replicas of whoever replaced them) and waits until all is well; fixtures
    call it before each test, so a test may kill what it likes.
    """

    def __init__(self, *, shards: int = 3, replicas: int = 1, options: Mapping[str, Option] | None = None) -> None:
        self._shards = shards
        self._size = shards * (1 + replicas)
        self._options = dict(options or {})
        self.nodes: list[ValkeyProcess] = []

    @property
    def ports(self) -> list[int]:
        return [int(str(node.options["port"])) for node in self.nodes]

    @property
    def url(self) -> str:
        return "cluster://" + ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def start(self) -> None:
        """Start all nodes at once and join them. Returns when every slot is served and every replica in step."""
        for attempt in range(1, _START_ATTEMPTS + 1):
            try:
                self._start_nodes()
                self._join()
                self.wait_until_well()
                return
            except Unavailable as error:
                self.stop()
                if attempt == _START_ATTEMPTS or "bind" not in str(error):
                    raise

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()
        for node in self.nodes:
            node.stop()
            shutil.rmtree(node.directory, ignore_errors=True)
        self.nodes = []

    def node_at(self, port: int) -> ValkeyProcess:
        return self.nodes[self.ports.index(port)]

    def primaries(self) -> list[ValkeyProcess]:
        """The running nodes that take writes now."""
        return [node for node in self.nodes if node.running and self._role(node) == "master"]

    def replicas(self) -> list[ValkeyProcess]:
        return [node for node in self.nodes if node.running and self._role(node) == "slave"]

    def primary_of(self, key: bytes | str) -> ValkeyProcess:
        """The node that serves ``key`` now."""
        slot = int(self._any().call("CLUSTER", "KEYSLOT", key))
        for first, last, primary, *_ in self._any().call("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return self.node_at(int(primary[1]))
        raise Unavailable(f"no node of the test cluster serves slot {slot}")

    def replica_of(self, primary: ValkeyProcess) -> ValkeyProcess:
        replicas = self._replicas_known_to(primary)
        return self.node_at(int(replicas[0].split(b" ")[1].split(b"@")[0].split(b":")[1]))

    def fail_over(self, primary: ValkeyProcess) -> None:
        """Let the replica of ``primary`` take over in an orderly way, with nothing killed and nothing lost."""
        replica = self.replica_of(primary)
        replica.call("CLUSTER", "FAILOVER")
        self._wait(lambda: self._role(replica) == "master" and self._role(primary) == "slave", "fail-over")

    def kill_and_replace(self, primary: ValkeyProcess, *, ahead_seconds: float = 0.0) -> None:
        """Kill ``primary`` and wait until its replica took over; ``heal`` brings it back as that one's replica.

        With ``ahead_seconds`` the replica gets nothing more for so long before: what is written then is lost.
        """
        replica = self.replica_of(primary)
        if ahead_seconds:
            primary.call("ACL", "SETUSER", "default", "-psync", "-sync")
            primary.call("CLIENT", "KILL", "TYPE", "REPLICA")
            time.sleep(ahead_seconds)
        primary.kill()
        self._wait(lambda: self._role(replica) == "master" and self._serves(replica), "the replica takes over")

    def heal(self) -> None:
        """Restart what was killed and wait until every slot is served and every replica in step."""
        for node in self.nodes:
            if not node.running:
                node.start(answer_seconds=_PATIENCE_SECONDS)
        self.wait_until_well()

    def flush(self) -> None:
        for node in self.primaries():
            node.call("FLUSHALL", seconds=30.0)

    def wait_until_well(self, *, seconds: float = _PATIENCE_SECONDS) -> None:
        self._wait(self._is_well, "all nodes agree and replicas are in step", seconds)

    def _start_nodes(self) -> None:
        ports = free_ports(2 * self._size)
        for port, bus_port in zip(ports[: self._size], ports[self._size :], strict=True):
            directory = Path(tempfile.mkdtemp(prefix=f"keystead-node-{port}-"))
            standing: dict[str, Option] = {
                "bind": "127.0.0.1",
                "port": port,
                "cluster-enabled": "yes",
                "cluster-config-file": "nodes.conf",
                "cluster-port": bus_port,
                "cluster-announce-ip": "127.0.0.1",
                "cluster-node-timeout": 1500,
                "cluster-allow-replica-migration": "no",
                # A replica may be promoted however late: by default one whose primary is gone for 25 s never is again.
                "cluster-replica-validity-factor": 0,
                "repl-diskless-sync-delay": 0,
                "save": "",
                "appendonly": "yes",
                "appendfsync": "no",
                "enable-debug-command": "yes",
            }
            node = ValkeyProcess(directory, standing | self._options, remove_directory=True)
            self.nodes.append(node)
            node.spawn()
        for node in self.nodes:
            self._wait(lambda node=node: node.probe() is Readiness.READY, "the node answers")  # type: ignore[misc]

    def _join(self) -> None:
        for epoch, node in enumerate(self.nodes, start=1):
            node.call("CLUSTER", "SET-CONFIG-EPOCH", epoch)
        primaries = self.nodes[: self._shards]
        for number, node in enumerate(primaries):
            first, last = number * _SLOTS // self._shards, (number + 1) * _SLOTS // self._shards - 1
            node.call("CLUSTER", "ADDSLOTSRANGE", first, last)
        for number, node in enumerate(self.nodes):
            for other in self.nodes[:number]:  # all with all: waiting for gossip would take seconds
                node.call("CLUSTER", "MEET", "127.0.0.1", int(str(other.options["port"])), self._bus_port(other))
        self._wait(self._all_know_all, "all nodes know one another")
        for number, node in enumerate(self.nodes[self._shards :]):
            name = bytes(primaries[number % self._shards].call("CLUSTER", "MYID"))
            node.call("CLUSTER", "REPLICATE", name)

    @staticmethod
    def _bus_port(node: ValkeyProcess) -> int:
        return int(str(node.options["cluster-port"]))

    def _all_know_all(self) -> bool:
        for node in self.nodes:
            lines = bytes(node.call("CLUSTER", "NODES")).decode().splitlines()
            known = [line for line in lines if "handshake" not in line and "fail" not in line and "noaddr" not in line]
            if len(known) != self._size:
                return False
        return True

    def _is_well(self) -> bool:
        if not self._all_know_all():
            return False
        for node in self.nodes:
            facts = bytes(node.call("CLUSTER", "INFO"))
            if b"cluster_state:ok" not in facts or b"cluster_slots_ok:%d" % _SLOTS not in facts:
                return False
        replicas = known = 0
        for node in self.nodes:
            facts = bytes(node.call("INFO", "replication"))
            if b"role:slave" in facts:
                replicas += 1
                if b"master_link_status:up" not in facts or b"master_sync_in_progress:0" not in facts:
                    return False
            else:  # a replica may be in step before its primary has heard whose it is
                known += len(self._replicas_known_to(node))
        return replicas == known == self._size - self._shards

    @staticmethod
    def _replicas_known_to(primary: ValkeyProcess) -> list[bytes]:
        return [bytes(line) for line in primary.call("CLUSTER", "REPLICAS", bytes(primary.call("CLUSTER", "MYID")))]

    @staticmethod
    def _serves(node: ValkeyProcess) -> bool:
        return b"cluster_state:ok" in bytes(node.call("CLUSTER", "INFO"))

    def _any(self) -> ValkeyProcess:
        return next(node for node in self.nodes if node.running)

    @staticmethod
    def _role(node: ValkeyProcess) -> str:
        reply: Any = node.call("ROLE")
        return bytes(reply[0]).decode()

    @staticmethod
    def _wait(holds: Callable[[], bool], what: str, seconds: float = _PATIENCE_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                if holds():
                    return
                reason = ""
            except (OSError, hiredis.ReplyError) as error:  # a node that is restarting or just lost its primary
                reason = f": {error}"
            if time.monotonic() > deadline:
                raise Unavailable(f"the test cluster was not ready after {seconds:g} seconds ({what}{reason})")
            time.sleep(0.02)

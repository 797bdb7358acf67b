"""Where a suite is played: a throw-away server, or nothing at all."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Protocol

import psutil
import redis

from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer

NO_PERSISTENCE = {"appendonly": "no", "save": ""}


class Stage(Protocol):
    """What the runner asks of the ground the contestants stand on."""

    url: str

    def clear(self) -> None:
        """Leave nothing behind from the measurement before."""
        ...

    def cpu_seconds(self) -> float:
        """Processor time that the stage itself has used, so that it is not taken for a disturbance."""
        ...


class Bare:
    """No server: the contestant brings all it needs."""

    url = ""

    def clear(self) -> None:
        pass

    def cpu_seconds(self) -> float:
        return 0.0


class Servers:
    """One or more Valkey processes that were started for this run."""

    def __init__(self, url: str, ports: Iterable[int], processes: Iterable[int]) -> None:
        self.url = url
        self._processes = [psutil.Process(process) for process in processes]
        self._clients = [redis.Redis(port=port, socket_timeout=30) for port in ports]

    def clear(self) -> None:
        for client in self._clients:
            with contextlib.suppress(redis.exceptions.ReadOnlyError):  # a replica is cleared by its primary
                client.flushall()
            client.script_flush()

    def cpu_seconds(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self._processes)

    def close(self) -> None:
        for client in self._clients:
            client.close()


@contextlib.contextmanager
def bare() -> Iterator[Stage]:
    yield Bare()


@contextlib.contextmanager
def one_server() -> Iterator[Stage]:
    """A Valkey server, reached through a loopback port, persistence off."""
    server = LocalServer(options=NO_PERSISTENCE)
    server.start()
    try:
        with contextlib.closing(Servers(server.tcp_url, [server.port], [server.process.pid])) as servers:
            yield servers
    finally:
        server.stop()


@contextlib.contextmanager
def six_nodes() -> Iterator[Stage]:
    """A cluster of three primaries and three replicas on loopback, persistence off."""
    cluster = LocalCluster(options=NO_PERSISTENCE)
    cluster.start()
    try:
        pids = [node.pid for node in cluster.nodes]
        with contextlib.closing(Servers(cluster.url, cluster.ports, pids)) as servers:
            yield servers
    finally:
        cluster.stop()

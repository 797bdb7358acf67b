"""A stand-in for ``valkey-cli``, which no package of the tests brings: as much of it as the compose file calls."""

import os
import sys
import time

from keystead.engine.embedded_process import call

PORT = 6379
SLOTS = 16384


def ask(host: str, *command: str | int) -> object:
    return call((host, PORT), *command, password=os.environ.get("REDISCLI_AUTH", ""), seconds=10.0)


def facts(host: str) -> dict[str, str]:
    lines = bytes(ask(host, "CLUSTER", "INFO")).decode().split()  # type: ignore[arg-type]
    return dict(line.split(":", 1) for line in lines)


def until(well: object, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not well():  # type: ignore[operator]
        assert time.monotonic() < deadline, "the cluster does not agree"
        time.sleep(0.1)


def create(nodes: list[str], replicas: int) -> None:
    hosts = [node.partition(":")[0] for node in nodes]
    primaries = hosts[: len(hosts) // (1 + replicas)]
    for number, host in enumerate(primaries):
        first, last = SLOTS * number // len(primaries), SLOTS * (number + 1) // len(primaries) - 1
        ask(host, "CLUSTER", "ADDSLOTSRANGE", first, last)
        ask(host, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
    for host in hosts[1:]:
        ask(host, "CLUSTER", "MEET", hosts[0], PORT)
    until(lambda: all(facts(host)["cluster_known_nodes"] == str(len(hosts)) for host in hosts))
    for number, host in enumerate(hosts[len(primaries):]):
        name = bytes(ask(primaries[number % len(primaries)], "CLUSTER", "MYID")).decode()  # type: ignore[arg-type]
        ask(host, "CLUSTER", "REPLICATE", name)
    until(lambda: all(facts(host)["cluster_state"] == "ok" for host in hosts))


def main(arguments: list[str]) -> None:
    if arguments[:2] == ["--cluster", "create"]:
        where = arguments.index("--cluster-replicas")
        create(arguments[2:where], int(arguments[where + 1]))
        return
    host = os.environ.get("STANDS_FOR_LOCALHOST", "127.0.0.1")
    if arguments[:1] == ["-h"]:
        host, arguments = arguments[1], arguments[2:]
    reply = ask(host, *arguments)
    print(bytes(reply).decode() if isinstance(reply, bytes | bytearray) else reply)


if __name__ == "__main__":
    main(sys.argv[1:])

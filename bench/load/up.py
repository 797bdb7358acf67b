"""A whole ``keystead up`` in a process of its own, for loads that come from outside."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

KEYSTEAD = str(Path(sys.executable).parent / "keystead")
WAIT_SECONDS = 60.0
LINK = re.compile(rb"http://127\.0\.0\.1:(\d+)/login[^\s\x1b]*")


@dataclass(frozen=True, slots=True)
class Up:
    """Where it is reached, when it was started (by the performance counter) and how soon it said so."""

    directory: Path
    process: "subprocess.Popen[bytes]"
    link: str
    port: int
    begun_at: float
    link_seconds: float
    valkey_url: str = ""  # empty for the embedded server of the directory

    def new_link(self) -> str:
        """Another one-time link to the dashboard."""
        command = [KEYSTEAD, "login-link", "--data", str(self.directory)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def family(self) -> list[psutil.Process]:
        """Its processes, the embedded server among them."""
        return [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]

    def cpu_seconds(self) -> float:
        """What all of them have used so far."""
        return sum(sum(process.cpu_times()[:2]) for process in self.family())

    def resident_bytes(self) -> int:
        return sum(process.memory_info().rss for process in self.family())


@contextlib.contextmanager
def keystead_up(directory: Path, *arguments: str) -> Iterator[Up]:
    """Runs for as long as the block does."""
    command = [KEYSTEAD, "up", "--port", "0", "--data", str(directory), *arguments]
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        link, port = _wait_for_link(process)
        yield Up(directory, process, link, port, begin, time.perf_counter() - begin)
    finally:
        stop(process)


@contextlib.contextmanager
def keystead_apart(directory: Path) -> Iterator[Up]:
    """The other form: a Valkey server, ``keystead api`` and ``keystead worker``, one process each."""
    from keystead.testing.server import LocalServer

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    server = LocalServer(options={"appendonly": "yes", "appendfsync": "everysec"})
    server.start()
    address = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "KEYSTEAD_VALKEY_URL": server.url, "KEYSTEAD_INSTALLATION_DIRECTORY": str(directory),
                   "KEYSTEAD_MESSAGING_PUBLIC_URL": address}
    begin = time.perf_counter()
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for command in ([KEYSTEAD, "api", "--port", str(port)], [KEYSTEAD, "worker"]):
            processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL, start_new_session=True))
        wait_until_answered(f"{address}/health")
        yield Up(directory, processes[0], address, port, begin, time.perf_counter() - begin, server.url)
    finally:
        for process in processes:
            stop(process)
        server.stop()


def wait_until_answered(url: str, token: str = "") -> None:
    """Ask until there is a good answer."""
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    browser = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            with browser.open(asked, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            if time.monotonic() > deadline:
                raise SystemExit(f"{url} was not answered within {WAIT_SECONDS:.0f} s") from None
            time.sleep(0.1)


def _wait_for_link(process: "subprocess.Popen[bytes]") -> tuple[str, int]:
    assert process.stdout is not None
    seen = b""
    for line in process.stdout:
        seen += line
        found = LINK.search(line)
        if found:
            return found.group().decode(), int(found.group(1))
    raise SystemExit(f"keystead up ended without a link: {seen[-300:].decode(errors='replace').strip()}")


def stop(process: "subprocess.Popen[bytes]") -> None:
    """End it as Ctrl-C does, and by force what does not follow."""
    with contextlib.suppress(psutil.Error):
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        for left in psutil.wait_procs(family, timeout=5)[1]:
            left.kill()

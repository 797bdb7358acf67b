"""The providers of texts, push messages and email, as little of them as can be: ``python -m bench.load.provider``.

Every request is accepted and answered after a fixed time, in the shapes of the real ones: a Twilio message that is
queued, an Expo ticket for each push message, a message id of SES. It keeps nothing, so that it is never what a
measurement waits for; the sandbox, which keeps and signs everything, would be. ``GET /seen`` says what was asked.
"""

import argparse
import asyncio
import contextlib
import gzip
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from email.utils import formatdate
from typing import cast

SMS, PUSH, EMAIL = "sms", "push", "email"
CHANNELS = (SMS, PUSH, EMAIL)
LOOK_SECONDS = 0.02


class Seen:
    """What was asked, by channel: messages, the time of the first request and of the last answer (monotonic)."""

    def __init__(self) -> None:
        self.messages = dict.fromkeys(CHANNELS, 0)
        self.first_at = dict.fromkeys(CHANNELS, 0.0)
        self.last_at = dict.fromkeys(CHANNELS, 0.0)
        self.open_requests = 0
        self.most_open = 0

    def as_json(self) -> bytes:
        return json.dumps({
            "messages": self.messages, "first_at": self.first_at, "last_at": self.last_at, "most_open": self.most_open,
            "cpu_seconds": time.process_time(),
        }).encode()


class Provider(asyncio.Protocol):
    """One connection: requests one after another, with a content length."""

    def __init__(self, seen: Seen, latency_seconds: float, numbers: Iterator[int]) -> None:
        self._seen, self._latency, self._numbers = seen, latency_seconds, numbers
        self._buffer = b""
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # that of uvloop is none by descent

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            at = head.find(b"\r\ncontent-length:")
            length = int(head[at + 17:].split(b"\r\n", 1)[0]) if at >= 0 else 0
            whole = end + 4 + length
            if len(self._buffer) < whole:
                return
            path, body = head.split(b" ", 2)[1], self._buffer[end + 4:whole]
            self._buffer = self._buffer[whole:]
            self._asked(path, gzip.decompress(body) if b"content-encoding: gzip" in head else body)

    def _asked(self, path: bytes, body: bytes) -> None:
        if path == b"/seen":
            self._send(b"200 OK", self._seen.as_json())
            return
        channel = SMS if path.startswith(b"/twilio") else EMAIL if path.startswith(b"/ses") else PUSH
        messages, status, answer = self._answer(channel, body)
        seen = self._seen
        seen.first_at[channel] = seen.first_at[channel] or time.monotonic()
        seen.open_requests += 1
        seen.most_open = max(seen.most_open, seen.open_requests)
        self._loop.call_later(self._latency, self._answered, channel, messages, status, answer)

    def _answered(self, channel: str, messages: int, status: bytes, answer: bytes) -> None:
        seen = self._seen
        seen.open_requests -= 1
        seen.messages[channel] += messages
        seen.last_at[channel] = time.monotonic()
        self._send(status, answer)

    def _answer(self, channel: str, body: bytes) -> tuple[int, bytes, bytes]:
        """How many messages a request has, and what it is answered."""
        if channel == SMS:
            now = formatdate().encode()
            return 1, b"201 CREATED", (
                b'{"sid": "SM%032x", "status": "queued", "error_code": null, "error_message": null, "num_media": "0", '
                b'"date_created": "%b", "date_updated": "%b", "api_version": "2010-04-01", "direction": "outbound-api"}'
                % (next(self._numbers), now, now)
            )
        if channel == EMAIL:
            return 1, b"200 OK", b'{"MessageId": "0100bench-%032x-000000"}' % next(self._numbers)
        tickets = [{"status": "ok", "id": f"{next(self._numbers):032x}"} for _ in json.loads(body)]
        return len(tickets), b"200 OK", json.dumps({"data": tickets}).encode()

    def _send(self, status: bytes, body: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(
                b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                % (status, len(body), body)
            )


async def serve(latency_seconds: float) -> None:
    """Serve on a free port until told to stop; its address is printed."""
    seen, numbers, stop = Seen(), itertools.count(1), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    server = await loop.create_server(lambda: Provider(seen, latency_seconds, numbers), "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await until(stop)
    server.close()


async def until(*events: asyncio.Event) -> None:
    """Wait for one of the events, or until whoever started this process is gone."""
    parent = os.getppid()
    while not any(event.is_set() for event in events) and os.getppid() == parent:
        await asyncio.sleep(LOOK_SECONDS)


class Providers:
    """A process of it, as those who measure see it."""

    def __init__(self, process: "subprocess.Popen[str]", url: str) -> None:
        self.process, self.url = process, url

    def seen(self) -> dict[str, object]:
        with urllib.request.urlopen(f"{self.url}/seen", timeout=30) as answer:
            found: dict[str, object] = json.load(answer)
            return found


@contextlib.contextmanager
def providers(latency_ms: float) -> Iterator[Providers]:
    """Run it as a process of its own."""
    command = [sys.executable, "-m", "bench.load.provider", "--latency-ms", str(latency_ms)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdout is not None
    try:
        yield Providers(process, process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait()


def run(main: Callable[[], "asyncio.Future[None] | object"]) -> None:
    """Run a coroutine function on uvloop where it is installed."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ImportError):
        from uvloop import new_event_loop as factory
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())  # type: ignore[arg-type]


if __name__ == "__main__":
    flags = argparse.ArgumentParser(allow_abbrev=False)
    flags.add_argument("--latency-ms", type=float, default=50.0)
    given = flags.parse_args()
    run(lambda: serve(given.latency_ms / 1000))

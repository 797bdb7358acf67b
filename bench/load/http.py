"""A lean HTTP/1.1 load: connections that each send the next request as soon as the last answer is whole.

It parses just enough of an answer to know its status and its end, so that the generator takes a small part of the
machine that it shares with the server it measures.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import cast

# What one connection sends next.
Next = Callable[[], bytes]


def request(
    method: str, target: str, *, token: str = "", body: bytes = b"", headers: dict[str, str] | None = None
) -> bytes:
    """The bytes of a request as a usual client sends it."""
    lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", "Accept: application/json", "User-Agent: bench"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass(slots=True)
class Tally:
    """What came back: how often each status, and how long each answer took."""

    statuses: Counter[int] = field(default_factory=Counter)
    took_seconds: list[float] = field(default_factory=list)
    elapsed_seconds: float = 0.0
    first_refusal: bytes = b""

    @property
    def per_second(self) -> float:
        return len(self.took_seconds) / self.elapsed_seconds

    def percentile_ms(self, share: float) -> float:
        ordered = sorted(self.took_seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def check(self, *expected: int) -> None:
        """A run with an answer that was not asked for is not a measurement."""
        odd = {status: count for status, count in self.statuses.items() if status not in expected}
        if odd or not self.took_seconds:
            raise SystemExit(f"unexpected answers {odd}: {self.first_refusal[:300].decode(errors='replace')}")


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, following: Next, tally: Tally) -> None:
        self.tally = tally
        self.stopped = asyncio.get_running_loop().create_future()
        self._following = following
        self._transport: asyncio.Transport | None = None
        self._held = b""
        self._end = 0
        self._status = 0
        self._sent_at = 0.0
        self._stopping = False

    def stop(self) -> None:
        """No more requests after the one that is under way."""
        self._stopping = True

    def send(self) -> None:
        assert self._transport is not None
        self._sent_at = time.perf_counter()
        self._transport.write(self._following())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own is none by its class

    def data_received(self, data: bytes) -> None:
        held = self._held = self._held + data if self._held else data
        if not self._end:
            head_end = held.find(b"\r\n\r\n")
            if head_end < 0:
                return
            head = held[:head_end].lower()
            self._status = int(head[9:12])
            place = head.find(b"\r\ncontent-length:")
            length = 0 if place < 0 else int(head[place + 17:].split(b"\r\n", 1)[0])
            self._end = head_end + 4 + length
        if len(held) < self._end:
            return
        tally = self.tally
        tally.took_seconds.append(time.perf_counter() - self._sent_at)
        tally.statuses[self._status] += 1
        if self._status >= 400 and not tally.first_refusal:
            tally.first_refusal = held
        self._held, self._end = b"", 0
        if not self._stopping:
            self.send()
        elif not self.stopped.done():
            self.stopped.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._stopping:
            self.tally.statuses[0] += 1
        if not self.stopped.done():
            self.stopped.set_result(None)

    def close(self) -> None:
        self._stopping = True
        if self._transport is not None:
            self._transport.close()


async def drive(port: int, following: Next, *, connections: int, seconds: float, warm_up: float) -> Tally:
    """Load the server for ``warm_up`` and then ``seconds``; what came back in the latter."""
    loop = asyncio.get_running_loop()
    tally = Tally()
    opened = [(await loop.create_connection(lambda: Connection(following, tally), "127.0.0.1", port))[1]
              for _ in range(connections)]
    try:
        for connection in opened:
            connection.send()
        await asyncio.sleep(warm_up)
        tally.check(*(status for status in tally.statuses if 200 <= status < 300))
        fresh = Tally()
        for connection in opened:
            connection.tally = fresh
        begin = time.perf_counter()
        await asyncio.sleep(seconds)
        fresh.elapsed_seconds = time.perf_counter() - begin
        for connection in opened:
            connection.stop()
            connection.tally = Tally()
        await asyncio.wait([connection.stopped for connection in opened], timeout=10)
        return fresh
    finally:
        for connection in opened:
            connection.close()


def in_turn(requests: list[bytes]) -> Next:
    """Each in its turn, again and again."""

    def endless() -> Iterator[bytes]:
        while True:
            yield from requests

    return endless().__next__

"""A proxy that stands before a server and misbehaves on command.

::

    proxy = await fault_proxy()                  # before the test server; or FaultProxy(url) as a context manager
    client = await connect(proxy.url)
    proxy.drop_replies()                         # commands arrive, answers vanish
    await proxy.restore()                        # all is well again; connections that lost bytes are cut
"""

import asyncio
from collections import deque
from types import TracebackType
from typing import Self

from keystead.engine.address import Address, Kind, parse
from keystead.errors import Invalid

_BACKLOG_BYTES = 256 * 1024
_PIECES_PER_SECOND = 50


class FaultProxy:
    """Forwards TCP connections on a loopback port to ``upstream`` (a TCP or socket URL) until told otherwise.

    Faults act on open connections and on new ones, add up, and last until ``restore``; only the two cuts happen once.
    """

    def __init__(self, upstream: str) -> None:
        self._upstream: Address = parse(upstream)
        if self._upstream.kind not in (Kind.TCP, Kind.UNIX):
            raise Invalid("a fault proxy stands before one server: give a valkey:// or unix:// address")
        self._server: asyncio.Server | None = None
        self._links: set[_Link] = set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._port = 0
        self.accepted = 0  # connections so far
        self.dropped_bytes = 0  # of replies
        self.delay_seconds = 0.0
        self.bytes_per_second: float | None = None
        self.is_dropping = False
        self.is_half_open = False
        self.cut_after_bytes: int | None = None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def aclose(self) -> None:
        await self.refuse()
        for task in list(self._connecting):
            task.cancel()
        await asyncio.gather(*self._connecting, return_exceptions=True)
        self.cut()
        await asyncio.sleep(0)  # the loop closes aborted sockets in its next turn, and may have none after this

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def host(self) -> str:
        return "127.0.0.1"

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        """The address that goes through the proxy; TLS and log-in are the client's business."""
        return f"valkey://127.0.0.1:{self._port}"

    @property
    def connections(self) -> int:
        """How many are open now."""
        return len(self._links)

    def cut(self) -> None:
        """Close every open connection now, at both ends, whatever is under way. New ones work."""
        for link in list(self._links):
            link.abort()

    def cut_mid_reply(self, after_bytes: int) -> None:
        """Let this many more bytes of replies through, over all connections, then cut the one that was talking."""
        self.cut_after_bytes = max(after_bytes, 0)

    def delay(self, seconds: float) -> None:
        """Everything arrives this much later, in each direction. Nothing is slowed down otherwise."""
        self.delay_seconds = seconds

    def drop_replies(self) -> None:
        """Commands reach the server; what it answers never arrives."""
        self.is_dropping = True

    def throttle(self, bytes_per_second: float) -> None:
        """Each direction of each connection carries no more than this."""
        self.bytes_per_second = bytes_per_second

    def half_open(self) -> None:
        """Connections stay open and nothing moves any more, as when the other machine lost its power.

        ``restore`` lets what was held pass, as TCP would after a short outage.
        """
        self.is_half_open = True
        self._update_reading()

    async def refuse(self) -> None:
        """Refuse new connections; open ones go on."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def restore(self) -> None:
        """End every fault. Connections that lost bytes are cut, since no reply on them could be trusted."""
        self.delay_seconds = 0.0
        self.bytes_per_second = None
        self.is_dropping = False
        self.is_half_open = False
        self.cut_after_bytes = None
        for link in list(self._links):
            if link.is_damaged:
                link.abort()
            else:
                link.release()
        self._update_reading()
        if self._server is None:
            await self.start()

    def _accept(self) -> "_Side":
        self.accepted += 1
        link = _Link(self)
        self._links.add(link)
        return link.client

    def connect_upstream(self, link: "_Link") -> None:
        task = asyncio.get_running_loop().create_task(self._connect_upstream(link))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect_upstream(self, link: "_Link") -> None:
        loop = asyncio.get_running_loop()
        try:
            if self._upstream.kind is Kind.UNIX:
                await loop.create_unix_connection(lambda: link.server, str(self._upstream.path))
            else:
                await loop.create_connection(lambda: link.server, *self._upstream.hosts[0])
        except OSError:
            link.abort()

    def forget(self, link: "_Link") -> None:
        self._links.discard(link)

    def _update_reading(self) -> None:
        for link in self._links:
            link.update_reading()


class _Link:
    """One client connection and its connection to the server."""

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        self.client = _Side(self)
        self.server = _Side(self)
        self.is_damaged = False
        self.is_closed = False

    def other(self, side: "_Side") -> "_Side":
        return self.server if side is self.client else self.client

    def made(self, side: "_Side") -> None:
        if self.is_closed:
            side.abort()
        elif side is self.client:
            self.proxy.connect_upstream(self)
        self.update_reading()

    def received(self, side: "_Side", data: bytes) -> None:
        proxy = self.proxy
        if side is self.server:
            if proxy.is_dropping:
                proxy.dropped_bytes += len(data)
                self.is_damaged = True
                return
            if proxy.cut_after_bytes is not None:
                passing, proxy.cut_after_bytes = data[: proxy.cut_after_bytes], proxy.cut_after_bytes - len(data)
                if proxy.cut_after_bytes <= 0:
                    proxy.cut_after_bytes = None
                    self.client.send(passing)
                    self.close()
                    return
        side.pass_on(data)

    def close(self) -> None:
        """Let written bytes leave, then close."""
        self._end()
        self.client.close()
        self.server.abort()

    def abort(self) -> None:
        self._end()
        self.client.abort()
        self.server.abort()

    def _end(self) -> None:
        self.is_closed = True
        self.proxy.forget(self)

    def ended(self, side: "_Side") -> None:
        """One end closed by itself: let what it said arrive, then close the other."""
        if not self.is_closed:
            side.pass_on(None)

    def release(self) -> None:
        self.client.release()
        self.server.release()

    def update_reading(self) -> None:
        self.client.update_reading()
        self.server.update_reading()


class _Side(asyncio.Protocol):
    """One socket of a link. What it receives is passed on to the other side, late or in pieces if told so."""

    def __init__(self, link: _Link) -> None:
        self._link = link
        self._transport: asyncio.Transport | None = None
        self._is_full = False
        self._waiting: deque[tuple[float, bytes | None]] = deque()  # due, bytes; None is the end of the stream
        self._waiting_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._last_due = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._link.made(self)

    def data_received(self, data: bytes) -> None:
        self._link.received(self, data)

    def connection_lost(self, error: Exception | None) -> None:
        self._link.ended(self)

    def pause_writing(self) -> None:
        self._is_full = True
        self._link.update_reading()

    def resume_writing(self) -> None:
        self._is_full = False
        self._link.update_reading()

    def pass_on(self, data: bytes | None) -> None:
        proxy = self._link.proxy
        if not self._waiting and not proxy.delay_seconds and not proxy.bytes_per_second and not proxy.is_half_open:
            self._deliver(data)
            return
        rate = proxy.bytes_per_second
        size = max(1, int(rate / _PIECES_PER_SECOND)) if rate else max(1, len(data or b""))
        pieces = [data[at : at + size] for at in range(0, len(data), size)] if data else [data]
        for piece in pieces:
            due = max(asyncio.get_running_loop().time() + proxy.delay_seconds, self._last_due)
            self._last_due = due + (len(piece or b"") / rate if rate else 0.0)
            self._waiting.append((self._last_due, piece))
            self._waiting_bytes += len(piece or b"")
        self._schedule()
        self.update_reading()

    def release(self) -> None:
        """Deliver now whatever still waits."""
        self._last_due = 0.0
        self._waiting = deque((0.0, data) for _, data in self._waiting)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._schedule()

    def _schedule(self) -> None:
        if self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(self._waiting[0][0], self._due)

    def _due(self) -> None:
        self._timer = None
        if self._link.proxy.is_half_open:
            return  # release() takes over
        now = asyncio.get_running_loop().time()
        while self._waiting and self._waiting[0][0] <= now:
            _, data = self._waiting.popleft()
            self._waiting_bytes -= len(data or b"")
            self._deliver(data)
        self._schedule()
        self.update_reading()

    def _deliver(self, data: bytes | None) -> None:
        if data is None:
            self._link.abort() if self is self._link.client else self._link.close()
        else:
            self._link.other(self).send(data)

    def send(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()

    def update_reading(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        other = self._link.other(self)
        must_wait = (
            self._link.proxy.is_half_open
            or other._transport is None
            or other._is_full
            or self._waiting_bytes > _BACKLOG_BYTES
        )
        if must_wait:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

"""Connections to a provider: kept open, given up in time, and never unsure about what was not sent."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from keystead.errors import Invalid
from keystead.messaging.sending import http
from keystead.messaging.sending.http import AnswerLost, Connections, HttpAnswer, NotConnected

FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nRetry-After: 7\r\n\r\nok"
Streams = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Host:
    """Answers each request with the next of ``answers``; None: the connection ends."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers, self.asked, self.connections = list(answers), [], 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.asked.append((head.decode(), await reader.readexactly(length)))
                answer = self.answers.pop(0) if self.answers else FINE
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
                if b"length" not in answer.lower() and b"chunked" not in answer:
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(serve: Streams, **given: float) -> AsyncIterator[Connections]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/api/"
    seconds, most = given.get("seconds", 20.0), int(given.get("most_bytes", 1000))
    async with server, Connections.open(url, headers={"X-One": "1"}, seconds=seconds, most_bytes=most) as connections:
        yield connections


async def test_requests_one_after_the_other_share_a_connection() -> None:
    host = Host()
    async with serving(host.serve) as connections:
        for number in range(3):
            answer = await connections.ask("POST", f"/x?n={number}", b"body", {"X-Two": "2"})
            assert answer == HttpAnswer(200, {"content-length": "2", "retry-after": "7"}, b"ok")
        assert host.connections == 1
        await asyncio.gather(*(connections.ask("GET", "/y") for _ in range(5)))
        assert host.connections <= 5 and len(host.asked) == 8
    head, body = host.asked[1]
    assert head.startswith("POST /api/x?n=1 HTTP/1.1\r\nHost: 127.0.0.1:") and body == b"body"
    assert "\r\nX-One: 1\r\nX-Two: 2\r\nContent-Length: 4\r\n" in head


@pytest.mark.parametrize("raw, body, stays", [
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx", b"x", True),
    (b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", b"abc", True),
    (b"HTTP/1.1 201 Created\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx", b"x", False),
    (b"HTTP/1.1 201 Created\r\n\r\nuntil the end", b"until the end", False),
    (b"HTTP/1.1 201 Created\r\nContent-Length: 5000\r\n\r\n" + b"y" * 5000, b"y" * 1000, False),
])
async def test_an_answer_ends_as_it_says(raw: bytes, body: bytes, stays: bool) -> None:
    host = Host(raw)
    async with serving(host.serve) as connections:
        answer = await connections.ask("GET", "/x")
        assert (answer.status, answer.body) == (201, body)
        assert (await connections.ask("GET", "/x")).body == b"ok"
    assert host.connections == (1 if stays else 2)


@pytest.mark.parametrize("raw", [
    None, b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab",
    b"no length and no HTTP\r\n\r\n",
])
async def test_an_answer_that_breaks_off_is_lost_and_the_next_request_connects_anew(raw: bytes | None) -> None:
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write((raw or b"") if asked == 1 else FINE)
        writer.close()

    async with serving(serve) as connections:
        with pytest.raises(AnswerLost):
            await connections.ask("GET", "/x")
        assert (await connections.ask("GET", "/x")).body == b"ok"
    assert asked == 2


async def test_who_answers_too_late_is_not_asked_again_on_that_connection() -> None:
    late = asyncio.Event()
    connected = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connected
        connected += 1
        await reader.readuntil(b"\r\n\r\n")
        if connected == 1:
            await late.wait()
        writer.write(FINE)

    async with serving(serve, seconds=2.0) as connections:
        with pytest.raises(AnswerLost):
            await connections.ask("GET", "/x")
        late.set()
        assert (await connections.ask("GET", "/x")).body == b"ok"
    assert connected == 2


async def test_nobody_there_means_nothing_was_sent(unused_tcp_port: int) -> None:
    async with Connections.open(f"http://127.0.0.1:{unused_tcp_port}", seconds=20.0, most_bytes=10) as connections:
        with pytest.raises(NotConnected):
            await connections.ask("GET", "/x")


async def test_who_does_not_prove_who_it_is_gets_nothing() -> None:
    host = Host()
    server = await asyncio.start_server(host.serve, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, Connections.open(url, seconds=20.0, most_bytes=10) as connections:
        assert connections._tls is not None and connections._tls.verify_mode is ssl.CERT_REQUIRED
        with pytest.raises(NotConnected):
            await connections.ask("GET", "/x")
    assert not host.asked


async def test_what_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host()
    async with serving(host.serve) as connections:
        await connections.ask("GET", "/x")
        monkeypatch.setattr(http, "IDLE_SECONDS", 0.0)
        await connections.ask("GET", "/x")
        assert host.connections == 2 and len(connections._all) <= 1


async def test_what_comes_unasked_ends_the_connection() -> None:
    told = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(FINE)
        await told.wait()
        writer.write(FINE)

    async with serving(serve) as connections:
        await connections.ask("GET", "/x")
        told.set()
        async with asyncio.timeout(20):
            while connections._all:
                await asyncio.sleep(0.01)


async def test_a_request_has_lines_of_its_own_only() -> None:
    for headers in ({"X": "1\r\nY: 2"}, {"X\n": "1"}):
        with pytest.raises(Invalid):
            Connections("http://x", headers=headers, seconds=1.0, most_bytes=1)
    for url in ("ftp://x", "x", "http://"):
        with pytest.raises(Invalid):
            Connections(url, headers={}, seconds=1.0, most_bytes=1)

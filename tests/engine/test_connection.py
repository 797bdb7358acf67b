"""The row of waiters: order, blocks, room, silence and strange servers."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import redis.exceptions

from keystead.engine.commands import pack
from keystead.engine.connection import Connection
from keystead.engine.endpoint import Endpoint, open_connection
from keystead.engine.failures import AnswerLost, NotSent
from keystead.settings import ValkeySettings
from keystead.testing.server import LocalServer
from tests.engine.noise import no_noise
from tests.engine.peers import HELLO, PONG, Talk, read_command, serving

MIB = 1024 * 1024


async def opened(server: LocalServer, **settings: float) -> Connection:
    endpoint = Endpoint(path=str(server.socket_path))
    return await open_connection(endpoint, ValkeySettings(**settings), on_lost=lambda *_: None)  # type: ignore[arg-type]


@pytest.fixture
async def connection(valkey_server: LocalServer) -> AsyncIterator[Connection]:
    valkey_server.ensure_running()
    valkey_server.call("FLUSHALL")
    connection = await opened(valkey_server)
    yield connection
    await connection.aclose()


async def talking(talk: Talk, **settings: float) -> AsyncIterator[tuple[Connection, list[str]]]:
    """A connection to a server that logs us in and then does what ``talk`` says."""

    async def first_log_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (HELLO, PONG):
            await read_command(reader)
            writer.write(answer)
        await talk(reader, writer)

    reasons: list[str] = []
    async with serving(first_log_in) as url:
        endpoint = Endpoint(port=int(url.rpartition(":")[2]))
        connection = await open_connection(
            endpoint, ValkeySettings(**settings), on_lost=lambda _, reason: reasons.append(reason)  # type: ignore[arg-type]
        )
        yield connection, reasons
        await connection.aclose()


async def test_commands_of_one_turn_leave_together(connection: Connection) -> None:
    alone = connection.send(pack(("ECHO", "alone")))  # after the log-in, one at a time: it leaves at once
    futures = [connection.send(pack(("ECHO", n))) for n in range(30)]
    await asyncio.sleep(0)
    assert [write[0] for write in connection._writes] == [1, 30]
    assert await alone == b"alone"
    assert await asyncio.gather(*futures) == [b"%d" % n for n in range(30)]


async def test_many_commands_of_one_turn_leave_in_rows_so_that_the_server_can_begin(connection: Connection) -> None:
    before = connection.commands
    futures = [connection.send(pack(("ECHO", n))) for n in range(1000)]
    assert 1000 // 32 <= len(connection._writes) <= 1000 // 32 + 2
    assert await asyncio.gather(*futures) == [b"%d" % n for n in range(1000)]
    assert connection.commands - before == 1000
    assert connection.in_flight_bytes == 0


async def test_reply_of_a_cancelled_caller_goes_to_nobody(connection: Connection) -> None:
    futures = [connection.send(pack(("ECHO", n))) for n in range(100)]
    for unlucky in futures[::3]:
        unlucky.cancel()
    block = connection.send_block(pack(("ECHO", "a")) + pack(("ECHO", "b")), 2)
    cancelled_block = connection.send_block(pack(("ECHO", "c")) + pack(("NOSUCH",)), 2)
    cancelled_block.cancel()
    last = connection.send(pack(("ECHO", "last")))
    assert await last == b"last"
    assert await block == [b"a", b"b"]
    assert [future.result() for future in futures if not future.cancelled()] == [b"%d" % n for n in range(100) if n % 3]
    assert connection.waiting_commands == 0


async def test_error_replies_are_raised_alone_and_returned_in_blocks(connection: Connection) -> None:
    with pytest.raises(redis.exceptions.ResponseError, match="unknown command"):
        await connection.send(pack(("NOSUCH",)))
    replies = await connection.send_block(pack(("NOSUCH",)) + pack(("ECHO", "x")), 2)
    assert isinstance(replies[0], redis.exceptions.ResponseError)
    assert replies[1] == b"x"


async def test_values_of_fifty_megabytes_travel_both_ways(connection: Connection) -> None:
    value = bytes(range(256)) * (50 * MIB // 256)
    small = [connection.send(pack(("ECHO", n))) for n in range(3)]
    assert await connection.send(pack(("SET", "big", value))) == b"OK"
    assert await connection.send(pack(("GET", "big"))) == value
    assert await asyncio.gather(*small) == [b"0", b"1", b"2"]
    assert connection.in_flight_bytes == 0


async def test_commands_sent_after_the_end_were_not_sent(connection: Connection) -> None:
    sent = connection.send(pack(("ECHO", "x")))
    await asyncio.sleep(0)
    unsent = connection.send(pack(("ECHO", "y")))
    connection.abort("enough")
    with pytest.raises(AnswerLost, match="enough"):
        await sent
    with pytest.raises(NotSent):
        await unsent
    with pytest.raises(NotSent):
        await connection.send(pack(("ECHO", "z")))
    with pytest.raises(NotSent):
        await connection.send_block(pack(("ECHO", "z")), 1)
    with pytest.raises(NotSent):
        await connection.room(10)


async def test_closing_tells_those_who_wait_and_leaves_no_socket(valkey_server: LocalServer) -> None:
    with no_noise():
        connection = await opened(valkey_server)
        waiting = connection.send(pack(("BLPOP", "nothing", "0")))
        await asyncio.sleep(0.01)
        assert connection._transport is not None
        used = connection._transport.get_extra_info("socket")
        await connection.aclose()
        with pytest.raises(AnswerLost, match="closed"):
            await waiting
        assert used.fileno() == -1
        await connection.aclose()


# -- room --------------------------------------------------------------------------------------------------------------


async def test_callers_wait_for_room_in_turn_and_the_bound_holds(valkey_server: LocalServer) -> None:
    limit, size = 100_000, 30_000
    connection = await opened(valkey_server, in_flight_bytes=limit)
    order: list[int] = []
    most = 0

    async def caller(number: int) -> None:
        nonlocal most
        raw = pack(("SET", f"k{number}", b"x" * size))
        if connection.congested:
            await connection.room(len(raw))
        future = connection.send(raw)
        order.append(number)
        most = max(most, connection.in_flight_bytes)
        assert await future == b"OK"

    await asyncio.gather(*(caller(number) for number in range(200)))
    assert order == list(range(200))
    assert most <= limit + size + 100, "one command may stand above the bound, not more"
    assert most > limit - size, "the room was used"
    assert (connection.in_flight_bytes, connection._granted_bytes, connection.congested) == (0, 0, False)
    await connection.aclose()


async def test_giant_alone_is_let_through_and_the_small_follow(valkey_server: LocalServer) -> None:
    connection = await opened(valkey_server, in_flight_bytes=1000)
    first = connection.send(pack(("SET", "a", b"x" * 2000)))
    giant = pack(("SET", "giant", b"x" * MIB))

    async def send(raw: bytes) -> bytes:
        await connection.room(len(raw))
        return bytes(await connection.send(raw))

    rest = [asyncio.create_task(send(giant)), *(asyncio.create_task(send(pack(("ECHO", n)))) for n in range(5))]
    assert await first == b"OK"
    assert await asyncio.gather(*rest) == [b"OK", b"0", b"1", b"2", b"3", b"4"]
    await connection.aclose()


async def test_cancelled_while_waiting_for_room_takes_no_room(valkey_server: LocalServer) -> None:
    connection = await opened(valkey_server, in_flight_bytes=1000)
    first = connection.send(pack(("DEBUG", "SLEEP", "0.05", b"x" * 1000)))
    waiters = [asyncio.create_task(connection.room(900)) for _ in range(5)]
    await asyncio.sleep(0.01)
    waiters[0].cancel()
    waiters[2].cancel()
    await asyncio.gather(first, return_exceptions=True)
    await waiters[1]
    assert connection._granted_bytes == 0
    for each in waiters[3:]:
        each.cancel()
    await asyncio.gather(*waiters, return_exceptions=True)
    assert not connection.congested
    assert connection._granted_bytes == 0
    await connection.aclose()


async def test_cancelled_in_the_turn_room_was_given_hands_it_on(valkey_server: LocalServer) -> None:
    connection = await opened(valkey_server, in_flight_bytes=1000)
    first = connection.send(pack(("ECHO", b"x" * 1000)))
    one = asyncio.create_task(connection.room(900))
    other = asyncio.create_task(connection.room(900))
    await asyncio.sleep(0)
    await first  # its reply gave the room to the first waiter, who has not run yet
    one.cancel()
    await asyncio.gather(one, return_exceptions=True)
    async with asyncio.timeout(20):
        await other
    assert connection._granted_bytes == 0
    await connection.aclose()


async def test_those_who_wait_for_room_are_told_when_the_connection_ends(valkey_server: LocalServer) -> None:
    connection = await opened(valkey_server, in_flight_bytes=10)
    first = connection.send(pack(("ECHO", b"x" * 100)))
    waiter = asyncio.create_task(connection.room(5))
    await asyncio.sleep(0)
    connection.abort("cut")
    with pytest.raises(NotSent):
        await waiter
    with pytest.raises((AnswerLost, NotSent)):
        await first


# -- silence and strange servers ---------------------------------------------------------------------------------------


async def test_silence_ends_the_connection_after_the_timeout() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(-1)

    async for connection, reasons in talking(silent, command_timeout_seconds=0.5):
        await asyncio.sleep(0.7)
        assert reasons == [], "nobody waits, so silence is fine"
        started = asyncio.get_running_loop().time()
        with pytest.raises(AnswerLost, match=r"no answer for 0\.5 s"):
            await connection.send(pack(("GET", "x")))
        assert 0.49 <= asyncio.get_running_loop().time() - started < 20
        assert reasons == ["no answer for 0.5 s"]


async def test_reply_that_trickles_in_keeps_the_connection() -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_command(reader)
        for piece in (b"$6\r\n", b"ab", b"cd", b"ef", b"\r\n"):
            await asyncio.sleep(0.5)
            writer.write(piece)

    async for connection, _ in talking(slow, command_timeout_seconds=2.0):
        assert await connection.send(pack(("GET", "x"))) == b"abcdef"


async def test_value_that_takes_long_to_send_keeps_the_connection() -> None:
    async def slow_reader(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop, got = asyncio.get_running_loop(), 0
        began = loop.time()
        while got < 32 * MIB:
            got += len(await reader.read(MIB))
            # The first half takes three seconds; the rest fits into buffers that nobody sees.
            await asyncio.sleep(max(0.0, began + 3 * min(1, got / (16 * MIB)) - loop.time()))
        writer.write(b"+OK\r\n")

    async for connection, _ in talking(slow_reader, command_timeout_seconds=2.0):
        started = asyncio.get_running_loop().time()
        assert await connection.send(pack(("SET", "x", b"x" * (32 * MIB)))) == b"OK"
        assert asyncio.get_running_loop().time() - started > 2, "it took longer than the timeout"


async def test_reply_nobody_asked_for_ends_the_connection_without_noise() -> None:
    speak = asyncio.Event()

    async def chatty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await speak.wait()
        writer.write(b"+surprise\r\n")
        await reader.read(-1)

    with no_noise():
        async for connection, reasons in talking(chatty):
            speak.set()
            while not reasons:
                await asyncio.sleep(0.001)
            assert "nobody asked for" in reasons[0]
            with pytest.raises(NotSent):
                await connection.send(pack(("GET", "x")))


async def test_unasked_reply_never_reaches_a_command_that_was_not_written() -> None:
    async def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(-1)

    async for connection, _ in talking(quiet):
        sent, unsent = connection.send(pack(("GET", "x"))), connection.send(pack(("GET", "y")))
        connection.data_received(b"$5\r\nright\r\n$5\r\nwrong\r\n")
        assert await sent == b"right"
        with pytest.raises(NotSent):
            await unsent


@pytest.mark.parametrize("rubbish", [b"HTTP/1.1 200 OK\r\n\r\n", b"$-5\r\n", b"\x00\x00\x00"])
async def test_bytes_that_are_no_reply_end_the_connection(rubbish: bytes) -> None:
    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_command(reader)
        writer.write(b"$2\r\nok\r\n" + rubbish)
        await reader.read(-1)

    with no_noise():
        async for connection, reasons in talking(broken):
            first, second = connection.send(pack(("GET", "x"))), connection.send(pack(("GET", "y")))
            assert await first == b"ok"
            with pytest.raises(AnswerLost, match="not an answer"):
                await second
            assert len(reasons) == 1


async def test_server_that_hangs_up_with_unread_commands_is_noticed_at_once() -> None:
    async def leaving(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write_eof()
        await asyncio.sleep(60)

    async for connection, _ in talking(leaving, command_timeout_seconds=120):
        async with asyncio.timeout(30):
            with pytest.raises(AnswerLost, match="the server closed the connection"):
                await connection.send(pack(("SET", "x", b"x" * (32 * MIB))))

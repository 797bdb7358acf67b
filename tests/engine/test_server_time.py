"""The clock is set by the server's TIME."""

import asyncio
import time

import pytest

from keystead.clock import SystemClock
from keystead.engine import Valkey, connect, sync_clock
from tests.engine.peers import HELLO, PONG, read_command, serving


async def test_same_machine_has_no_offset_to_speak_of(valkey: Valkey) -> None:
    clock = SystemClock(offset_seconds=500)
    offset = await sync_clock(valkey, clock)
    assert clock.offset_seconds == offset
    assert abs(offset) < 2
    assert clock.now() == pytest.approx(time.time(), abs=4)


async def test_offset_of_a_server_that_lives_elsewhere_in_time_is_measured() -> None:
    """The slow answers are measured wrongly, by half their round trip; the quick one counts."""
    ahead, delays = 1000.25, iter([1.5, 1.5, 0.0, 1.5])

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (HELLO, PONG):
            await read_command(reader)
            writer.write(answer)
        for delay in delays:
            assert await read_command(reader) == [b"TIME"]
            now = time.time() + ahead
            await asyncio.sleep(delay)
            seconds, micros = b"%d" % int(now), b"%d" % int(now % 1 * 1e6)
            writer.write(b"*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(seconds), seconds, len(micros), micros))
        await reader.read(-1)

    async with serving(talk) as url:
        valkey = await connect(url)
        clock = SystemClock()
        assert await sync_clock(valkey, clock, samples=4) == pytest.approx(ahead, abs=0.6)
        assert clock.now() == pytest.approx(time.time() + ahead, abs=2)
        await valkey.aclose()

"""Signs of life from a thread."""

import time

import pytest

from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.jobs.heartbeat import Heartbeat
from keystead.jobs.keys import ALIVE_SECONDS, Queue

from .beside import until


async def test_a_blocked_event_loop_does_not_look_dead(server: Valkey) -> None:
    worker = Queue().work.worker("w")
    mark = worker._living().mark
    with Heartbeat(server, [worker]):
        await until(lambda: mark.is_raised(server))
        time.sleep(ALIVE_SECONDS + 1.5)
        assert await mark.is_raised(server)
        assert (await Queue().work.adopt(server, now=1.0)).workers == 0
    await until(lambda: _gone(server, mark))


async def _gone(server: Valkey, mark) -> bool:
    return not await mark.is_raised(server)


async def test_a_client_made_by_hand_is_refused(server: Valkey) -> None:
    server.address = None
    with pytest.raises(DeclarationError, match=r"a client that connect\(\) made"):
        Heartbeat(server, [])

"""The sign of life: while all is well, once for all processes, and not when somebody should look."""

import asyncio

import pytest

from keystead.clock import SystemClock
from keystead.errors import Invalid
from keystead.jobs import Inspection, JobBook, Worker
from keystead.operations import Alerts
from keystead.operations import heartbeat as module
from keystead.operations.delivery import UNDELIVERED
from keystead.operations.heartbeat import Heartbeat
from keystead.operations.keys import HEARTBEAT

from .receiver import receiving


async def again(valkey, heartbeat) -> bool:
    """The next minute."""
    await HEARTBEAT.at().lower_flag(valkey)
    return await heartbeat.beat()


async def test_an_address_is_called_while_all_is_well_and_no_longer(valkey, database, monkeypatch):
    clock = SystemClock()
    alerts = Alerts(valkey, clock)
    async with receiving() as receiver:
        first, second = (Heartbeat(valkey, clock, alerts, receiver.url, database) for _ in range(2))
        assert not await first.beat(), "nobody works"
        worker = Worker(valkey, JobBook(), clock=clock)
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(worker.run())
            while not any(one.alive for one in await Inspection(valkey, clock).workers()):
                await asyncio.sleep(0.05)
            assert await again(valkey, first) and not await second.beat(), "one process calls for all"
            assert len(receiver.requests) == 1

            await alerts.raise_(UNDELIVERED, "webhook", "nobody took it", "critical")
            assert not await again(valkey, first), "alerts reach nobody, so somebody must miss us"
            await alerts.clear(UNDELIVERED, "webhook")
            await alerts.raise_("queue_stuck", "jobs hot", "12 wait", "critical")
            assert await again(valkey, first), "of other trouble alerts tell"

            async def away(database):
                return "the database does not answer"

            with monkeypatch.context() as patched:
                patched.setattr(module, "sql_trouble", away)
                assert not await again(valkey, first)
            receiver.status = 500
            assert not await again(valkey, first)
            worker.stop()
        assert len(receiver.requests) == 3
    assert not await again(valkey, first), "nobody listens there, which breaks nothing"


async def test_it_goes_on_while_the_server_is_away(valkey, valkey_server, database):
    heartbeat = Heartbeat(valkey, SystemClock(), Alerts(valkey, SystemClock()), "http://127.0.0.1:9/", database)
    valkey_server.call("ACL", "SETUSER", "default", "-set")
    try:
        assert not await heartbeat.beat()
    finally:
        valkey_server.call("ACL", "SETUSER", "default", "+set")


@pytest.mark.parametrize("url", ["ftp://example.com", "example.com", "http://", "http://[x"])
def test_an_address_that_is_none_is_refused(valkey_server, url):
    with pytest.raises(Invalid, match="heartbeat_url"):
        Heartbeat(None, SystemClock(), None, url, None)

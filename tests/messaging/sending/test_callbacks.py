"""Callbacks are queued with the change that they follow from."""

import asyncio

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.jobs import JobRef, decode_data_raw, job_list
from keystead.keys import Layout
from keystead.messaging.sending.callbacks import callbacks_relay, queue_job
from keystead.messaging.sending.keys import JOBS_OUTBOX
from keystead.patterns import Writes


async def test_a_callback_is_queued_and_none_is_none(server: Valkey) -> None:
    writes = Writes(server.layout)
    queue_job(writes, None, {"x": 1}, 5.0)
    assert not writes
    queue_job(writes, JobRef("after", {"of": 1}), {"sent": True}, 5.0, uid="sms_1:sent")
    names, _ = writes.packed(server.layout)
    place = job_list() if server.layout is Layout.PLAIN else JOBS_OUTBOX.outbox.at("hot").outbox
    assert place.name(server.layout) in names
    async with server.pipeline(transaction=True) as block:
        queue_job(block, JobRef("after", {"of": 1}), {"sent": True}, 5.0, uid="sms_1:sent")
        await block.execute()
    stop = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(callbacks_relay(server, SystemClock()).work(stop))
        while not (found := await job_list().range(server)):
            await asyncio.sleep(0.01)
        stop.set()
    [record] = found
    assert (record.name, record.uid, record.kwargs["of"]) == ("after", "sms_1:sent", 1)
    assert decode_data_raw(record.kwargs["data_raw"]) == {"sent": True}


def test_callbacks_share_the_slot_of_the_messages() -> None:
    writes = Writes(Layout.TAGGED)
    queue_job(writes, JobRef("after", {}, "slow"), None, 5.0)
    names, _ = writes.packed(Layout.TAGGED)
    assert {name.partition(b"}")[0] for name in names} == {b"{msg:0"}

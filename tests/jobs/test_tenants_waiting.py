"""Since when tenants wait."""

import uuid

from keystead.engine import Valkey
from keystead.jobs import FairJobs, Jobs
from keystead.jobs.keys import FAIR
from keystead.jobs.models import JobRecord
from keystead.jobs.tenants_waiting import waiting_since
from keystead.testing.clock import MovableClock

NOW = 1_800_000_000.0


async def test_the_first_in_line_tells_since_when_a_tenant_waits(server: Valkey):
    clock = MovableClock(now=NOW)
    jobs = FairJobs(Jobs(server, clock=clock))
    await jobs.enqueue("loud", "t.note", {})
    clock.advance(60)
    await jobs.enqueue("loud", "t.note", {})
    await jobs.enqueue("quiet", "t.note", {})
    await jobs.enqueue("later", "t.note", {}, delay_seconds=900)
    assert await waiting_since(server, ["loud", "quiet", "later", "nobody"]) == {"loud": NOW, "quiet": NOW + 60}
    assert await waiting_since(server, []) == {}


async def test_an_id_that_tells_no_time_is_left_out(valkey: Valkey):
    other = str(uuid.UUID(int=FAIR.keys.number, version=4))
    await FAIR.produce(valkey, "odd", other, JobRecord("t.note", {}, NOW, other), now=NOW)
    assert await waiting_since(valkey, ["odd"]) == {}

"""Queues as a room would declare them, for the tests of the fair queue."""

from keystead.keys import Keyspace, Layout, Registry
from keystead.patterns.fairqueue import FairQueue
from keystead.patterns.fairqueue_keys import Keepalives

NAMES = tuple(f"reporting:{name}" for name in (
    "ReportRequests", "TaskRequests", "TaskRwrRequests", "TaskRetries", "TaskCleanup", "GeneratorRequests",
    "GeneratorResponses", "ReportCallbackRequests"))
PARKS = {
    "signature": "reporting:parkhashes:{tenant_id}:{conn_type}:{app_id}:{user_id}:{selection_hash}",
    "session": "reporting:parkhashes:rdr-{session_id}",
}

ROOM = Keyspace("reporting")
KEEPALIVES = Keepalives(ROOM, NAMES, writers=("reporting",), readers=("reporting",))
QUEUES = [
    FairQueue(ROOM, name, item=bytes, shard="{tenant_id}", keepalives=KEEPALIVES, fields=("request_id", "sig"),
              parks=PARKS if name.endswith("TaskRequests") else {}, quantum=8, cap=3, lease_seconds=60, max_attempts=2,
              mark_seconds=86400, purpose="test work", writers=("reporting",), readers=("reporting",))
    for name in NAMES
]
REQUESTS, TASKS = QUEUES[0], QUEUES[1]
REGISTRIES = {layout: Registry([ROOM], layout) for layout in (Layout.PLAIN, Layout.TAGGED)}

"""Names of the room's keys: as documented on one server, together in a slot on a cluster."""

import pytest

from keystead.jobs.keys import JOBS, Queue
from keystead.keys import Layout, Registry, key_slot


@pytest.mark.parametrize(("raw", "pattern"), [
    (b"jobs:hot", "jobs:hot"), (b"jobs:hot:1", "jobs:hot:{category}"),
    (b"jobs:processing:w1", "jobs:processing:{worker}"),
    (b"rjobs", "rjobs"), (b"rjobs:hash", "rjobs:hash"), (b"rjobs:purgatory", "rjobs:purgatory"),
    (b"rjobs:last", "rjobs:last"), (b"rjobs:version", "rjobs:version"), (b"rjobs:names", "rjobs:names"),
    (b"jobs:queue:mail:recurring", "jobs:queue:{queue}:recurring"),
    (b"jobs:queue:mail:recurring:last", "jobs:queue:{queue}:recurring:last"),
    (b"tasks:scheduled", "tasks:scheduled"), (b"tasks:payload", "tasks:payload"),
    (b"tasks:processing", "tasks:processing"),
    (b"tasks:queue:default", "tasks:queue:default"), (b"tasks:active:t1", "tasks:active:{task_id}"),
    (b"scheduler:leader", "scheduler:leader"), (b"asynq:{default}:pending", "asynq:*"),
    (b"jobs:queue:mail", "jobs:queue:{queue}"), (b"jobs:queue:mail:2", "jobs:queue:{queue}:{category}"),
    (b"jobs:progress:events:u1", "jobs:progress:events:{uid}"), (b"jobs:unique:a:b", "jobs:unique:{key}"),
])
def test_every_documented_key_is_known(raw: bytes, pattern: str) -> None:
    match = Registry([JOBS], layout=Layout.PLAIN).resolve(raw)
    assert match is not None and match.declaration.pattern == pattern


@pytest.mark.parametrize("name", ["", "mail"])
def test_the_keys_of_a_queue_share_a_slot(name: str) -> None:
    queue = Queue(name)
    recurring = queue.recurring
    references = [
        queue.work.queue, queue.work.worker("w").purgatory, queue.work.dead, queue.category(1), queue.job("u"),
        queue.dependents("u"), queue.batch("b"), queue.unique("k"), queue.delayed, queue.waiting, queue.cancelled,
        queue.paused, recurring.next, recurring.last, recurring.names, recurring.hash, recurring.version,
        recurring.purgatory,
    ]
    assert len({key_slot(reference.name(Layout.TAGGED)) for reference in references}) == 1


def test_named_queues_spread_over_a_cluster() -> None:
    slots = {key_slot(Queue(name).work.queue.name(Layout.TAGGED)) for name in ("", "mail", "video", "text")}
    assert len(slots) == 4

"""Names of the room's keys: known to the registry, and in the slot of what they are written with."""

import pytest

from keystead.jobs.keys import JOBS, Queue
from keystead.keys import Layout, Registry, key_slot
from keystead.store.keys import STORE, sent_mark


@pytest.mark.parametrize(("raw", "pattern"), [
    (b"files:purgatory", "files:purgatory"),
    (b"store:outbox:sent:u1", "store:outbox:sent:{uid}"),
    (b"store:outbox:sent:mail:u1", "store:outbox:sent:{queue}:{uid}"),
])
def test_every_documented_key_is_known(raw: bytes, pattern: str) -> None:
    match = Registry([JOBS, STORE], layout=Layout.PLAIN).resolve(raw)
    assert match is not None and match.declaration.pattern == pattern


@pytest.mark.parametrize("name", ["", "mail"])
def test_the_mark_of_a_job_lies_beside_its_queue(name: str) -> None:
    queue = Queue(name)
    references = [sent_mark(name, "u"), queue.work.queue, queue.category(1), queue.delayed, queue.job("u")]
    assert len({key_slot(reference.name(Layout.TAGGED)) for reference in references}) == 1

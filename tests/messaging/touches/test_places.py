"""Places are read whole, page by page, whatever leaves meanwhile."""

from keystead.engine import Valkey
from keystead.messaging.touches.keys import TO_LOG
from keystead.messaging.touches.models import LogEntry
from keystead.messaging.touches.places import PAGE, find, purgatories, read


def entry(number: int) -> LogEntry:
    return LogEntry("user_touches", "insert", {"number": number})


async def test_every_element_is_found_and_spoiled_ones_are_left_out(server: Valkey):
    await TO_LOG.push(server, *map(entry, range(PAGE + 20)))
    await TO_LOG.push_raw(server, b"nonsense")
    found = await find(server, TO_LOG.queue, lambda one: one.fields["number"] % 2 == 0)
    assert sorted(one.fields["number"] for one in found.values()) == list(range(0, PAGE + 20, 2))


async def test_what_leaves_at_the_front_hides_nothing(server: Valkey):
    await TO_LOG.push(server, *map(entry, range(2 * PAGE)))
    seen = set()
    async for _, one in read(server, TO_LOG.queue):
        if len(seen) == 10:
            await server.lpop(TO_LOG.queue.name(server.layout), 300)
        seen.add(one.fields["number"])
    assert seen >= set(range(300, 2 * PAGE))


async def test_purgatories_of_all_workers_are_known(server: Valkey):
    await TO_LOG.push(server, entry(1), entry(2))
    await TO_LOG.worker("w").take(server, 1, now=1.0)
    assert [await place.length(server) for place in await purgatories(server, TO_LOG)] == [0, 1]

"""What a worker does for the room."""

from ..jobs.beside import at_work, until
from .room import Room


async def test_a_worker_counts_who_joined_when_the_process_could_not(room: Room) -> None:
    members = [await room.users.ensure("google", f"g-{number}") for number in range(3)]
    await room.valkey.flushall()  # as if none of the counts had been reached
    assert all(member.created for member in members)
    relayed = await room.outbox.relay()
    assert relayed == 3
    async with at_work(room.valkey, room.book) as worker:
        await until(lambda: worker.tally.done >= relayed)
    assert (await room.counted())[:3] == (3, 3, 3)

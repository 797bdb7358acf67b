"""The keys of the room itself."""

from keystead.engine import Valkey
from keystead.stats.keys import ROTATION_RUN, RotationRun


async def test_a_run_is_a_hash_that_can_be_read_at_night(valkey: Valkey) -> None:
    await ROTATION_RUN.at().set(valkey, RotationRun(started_at=1.5, stop_reason="list_exhausted", days=3))
    assert await valkey.hgetall("stats:rotation:job") == {
        b"started_at": b"1.5", b"stop_reason": b"list_exhausted", b"days": b"3", b"late": b"0", b"problems": b"0",
    }

"""A day on its way out, for whatever is kept by day."""

from keystead.engine import Valkey
from keystead.keys import IntegerKey, Keyspace, RecordKey
from keystead.patterns.rotation import Rotation, RotationState

ROOM = Keyspace("room", tag="room")
EARLIEST = IntegerKey(ROOM, "x:earliest", purpose="a test")
STATE = RecordKey(ROOM, "x:rotation", RotationState, purpose="a test")
DAY_KEY = IntegerKey(ROOM, "x:{unix_date}", purpose="a test")
ASIDE = IntegerKey(ROOM, "x:{unix_date}:rotating", purpose="a test")


async def test_only_one_day_is_under_way_and_a_day_without_keys_rotates_too(server: Valkey) -> None:
    rotation = Rotation(EARLIEST.at(), STATE.at())
    moved = [(DAY_KEY.at(5), ASIDE.at(5))]
    assert await rotation.begin(server, 5, "a", moved) is None, "nothing was ever recorded"
    await EARLIEST.at().set(server, 5)
    assert await rotation.begin(server, 5, "a", moved) == "a"
    assert await rotation.begin(server, 6, "b", [(DAY_KEY.at(6), ASIDE.at(6))]) is None
    assert await rotation.state(server) == RotationState(6, 5, "a")
    assert await rotation.end(server, 5, "a", [ASIDE.at(5)])
    assert await rotation.begin(server, 6, "b", [(DAY_KEY.at(6), ASIDE.at(6))]) == "b", "the next one"

"""Scripts know the day of any instant of the last days, also where the clocks change."""

from datetime import datetime

import msgspec
import pytest

from keystead.engine import Valkey
from keystead.messaging.links.script_names import ScriptNames
from keystead.messaging.links.stats import LINKS_COUNTED

from .room import LOS_ANGELES


@pytest.mark.parametrize(("month", "day"), [(3, 9), (11, 2)])
async def test_days_begin_when_the_calendar_says(valkey: Valkey, month: int, day: int) -> None:
    names, now = ScriptNames(valkey), datetime(2026, month, day, 12, tzinfo=LOS_ANGELES).timestamp()
    told = msgspec.msgpack.decode(names.packed(now))[11:]
    days = list(zip(told[::2], told[1::2], strict=True))
    for ago in range(0, 5 * 86400, 1800):
        at = now - ago
        found = next((day for begun, day in days if at >= begun), days[-1][1])
        assert found == max(LINKS_COUNTED.day_of(at), days[-1][1])


async def test_they_are_made_anew_when_a_day_begins_and_when_a_clock_goes_back(valkey: Valkey) -> None:
    names, midnight = ScriptNames(valkey), datetime(2026, 3, 3, tzinfo=LOS_ANGELES).timestamp()
    before = names.packed(midnight - 1)
    assert names.packed(midnight - 3600) is before
    after = names.packed(midnight)
    assert after != before
    assert names.packed(midnight - 1) == before


async def test_keys_are_those_of_the_layout(server: Valkey) -> None:
    tag = b"{lnk}" if server.layout.name == "TAGGED" else b""
    assert all(key.startswith(tag) for key in ScriptNames(server).keys)

"""Messages under fire, in short; ``make chaos-messaging`` is the whole of it."""

import pytest

from .messaging_chaos import Chaos


@pytest.mark.slow
async def test_every_touch_ends_once_whoever_is_killed(tmp_path):
    chaos = Chaos(tmp_path, touches=60, kills=6, seed=1)
    report = await chaos.run()
    assert report.holds, "\n".join(report.lines())
    assert report.accepted == 60 and sum(report.kills.values()) == 6

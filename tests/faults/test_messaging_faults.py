"""Messages under fire, in short; ``make chaos-messaging`` is the whole of it."""

import pytest

from .messaging_chaos import Chaos


@pytest.mark.slow
async def test_every_touch_ends_once_whoever_is_killed(tmp_path):
    chaos = Chaos(tmp_path, touches=60, kills=6, seed=1)
    report = await chaos.run()
    assert report.holds, "\n".join(report.lines())
    assert report.accepted == 60 and sum(report.kills.values()) == 6


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
async def test_every_touch_ends_once_when_a_replica_takes_over(tmp_path):
    chaos = Chaos(tmp_path, touches=40, kills=5, seed=2, lanes=2)
    report = await chaos.run()
    assert report.holds, "\n".join(report.lines())
    assert report.accepted == 40 and sum(report.kills.values()) == 5
    assert report.kills["primary ahead of its replica"] >= 1

"""Who came back, by the day they joined."""

import pytest

from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.keys import Keyspace, Registry
from keystead.patterns.by_day import LATE
from keystead.patterns.cohorts import Cohorts

ZONE = "America/Los_Angeles"
MEMBERS = Keyspace("members", tag="members")
RETENTION = Cohorts(MEMBERS, "stats:retention", zone=ZONE, table="retention_stats", personal=True,
                    purpose="who came back")
DAY = 19331
NOON = 1670270400.0  # 2022-12-05 12:00 in Los Angeles


def sizes(*pairs: tuple[int, int]) -> dict[int, tuple[int, int]]:
    return dict(zip(RETENTION.periods, pairs, strict=True))


def test_it_is_declared_under_the_documented_keys() -> None:
    registry = Registry([MEMBERS])
    assert {"stats:retention:{period}:{retained}:{unix_date}", "stats:retention:{period}:{retained}:earliest",
            "stats:retention:late"} <= {declaration.pattern for declaration in registry}
    assert registry.resolve(b"stats:retention:7day:true:19331") is not None
    assert registry.resolve(b"stats:retention:8day:true:19331") is None
    assert (RETENTION.name, RETENTION.last_due(DAY)) == ("retention", DAY - 183)


async def test_a_member_waits_in_every_period_and_comes_back_for_those_that_passed(server: Valkey) -> None:
    assert await RETENTION.join(server, "u1", at=NOON) == 1
    assert await RETENTION.join(server, "u2", day=DAY) == 1
    assert await RETENTION.sizes(server, DAY) == sizes(*[(0, 2)] * 5)
    assert await RETENTION.active(server, "u1", joined_day=DAY, day=DAY) == 1, "on the day itself"
    assert await RETENTION.active(server, "u1", joined_day=DAY, day=DAY + 29) == 2
    assert await RETENTION.sizes(server, DAY) == sizes((1, 1), (1, 1), (1, 1), (0, 2), (0, 2))
    assert await RETENTION.active(server, "u1", joined_day=DAY, day=DAY + 182) == 2
    assert await RETENTION.active(server, "u1", joined_day=DAY, day=DAY + 182) == 0, "once is enough"
    assert await RETENTION.join(server, "u1", day=DAY) == 0, "known, and stays among those who came back"
    assert await RETENTION.sizes(server, DAY) == sizes(*[(1, 1)] * 5)


async def test_activity_of_strangers_and_outside_the_window_changes_nothing(server: Valkey) -> None:
    await RETENTION.join(server, "u1", day=DAY)
    assert await RETENTION.active(server, "stranger", joined_day=DAY, day=DAY + 5) == 0
    assert await RETENTION.active(server, "u1", joined_day=DAY - 1, day=DAY + 5) == 0
    assert await RETENTION.active(server, "u1", joined_day=DAY, day=DAY + 183) == 0
    assert await RETENTION.active(server, "u1", joined_day=DAY, day=DAY - 1) == 0
    assert await RETENTION.sizes(server, DAY) == sizes(*[(0, 1)] * 5)
    assert await RETENTION.earliest(server) == DAY


async def test_a_cohort_that_is_gone_counts_apart(server: Valkey) -> None:
    await RETENTION.join(server, "u1", day=DAY)
    await RETENTION.active(server, "u1", joined_day=DAY, day=DAY)
    assert await RETENTION.begin_rotation(server, DAY, "rot_1") == "rot_1"
    assert await RETENTION.join(server, "u2", day=DAY) == LATE
    assert await RETENTION.active(server, "u1", joined_day=DAY, day=DAY + 90) == LATE
    assert await RETENTION.sizes(server, DAY) == sizes((1, 0), *[(0, 1)] * 4), "still there while it is stored"
    assert await RETENTION.end_rotation(server, DAY, "rot_1")
    assert await RETENTION.earliest(server) == DAY + 1
    assert await RETENTION.late(server) == {str(DAY): 1}


def test_periods_that_make_no_sense_are_refused() -> None:
    for periods in ((), (7, 1), (1, 1), (-1,), (0, 183)):
        with pytest.raises(DeclarationError, match="periods"):
            Cohorts(Keyspace("x"), "stats:x", periods=periods, zone=ZONE, purpose="a test")

"""The kept pace of a demonstration's clock: never backwards, never behind the real time."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.clock import REAL_PACE, Pace
from keystead.errors import Invalid
from keystead.pace import PACE_FILE, RESERVED_SECONDS, Kept, keeping, next_pace, read_pace

_times = st.floats(0, 4e9)
_speeds = st.floats(1, 3600)


async def test_real_time_leaves_no_file(tmp_path: Path) -> None:
    async with keeping(tmp_path, 1.0) as pace:
        assert pace is REAL_PACE
    assert list(tmp_path.iterdir()) == []
    assert read_pace(tmp_path) is REAL_PACE


async def test_a_restart_goes_on_where_the_clock_stood(tmp_path: Path) -> None:
    async with keeping(tmp_path, 3600) as first:
        assert read_pace(tmp_path) == first
        began = first.shows(time.time())
    ended = json.loads((tmp_path / PACE_FILE).read_text())["reached_at"]
    async with keeping(tmp_path, 2) as second:
        assert second.speed == 2
        assert second.shown_at >= ended >= began
        # Exactly from where it ended, but for the real time in between.
        assert second.shown_at - ended < 60
    async with keeping(tmp_path, 1.0) as third:
        assert third.speed == 1.0
        assert third.shown_at >= second.shown_at


async def test_a_kill_makes_the_clock_leap_and_never_go_back(tmp_path: Path) -> None:
    async with keeping(tmp_path, 600) as pace:
        left_behind = (tmp_path / PACE_FILE).read_text()
        shown = pace.shows(time.time())
    (tmp_path / PACE_FILE).write_text(left_behind)  # as if the end had not been written
    async with keeping(tmp_path, 600) as after:
        assert after.shown_at >= shown
        assert after.shown_at - shown <= RESERVED_SECONDS * 600 + 60


@given(_times, _times, _speeds, _speeds, st.floats(0, 1e8), st.floats(0, 1e6))
def test_time_never_goes_back_and_is_never_behind(
    real_at: float, ahead: float, speed: float, next_speed: float, ran: float, rested: float
) -> None:
    pace = Pace(speed, real_at, real_at + ahead)
    stopped_at = real_at + ran
    kept = Kept(pace, pace.shows(stopped_at), stopped_at)
    begun_at = stopped_at + rested
    again = next_pace(kept, next_speed, begun_at)
    assert again.shows(begun_at) >= kept.reached_at
    assert again.shows(begun_at) >= begun_at
    assert again.shows(begun_at + 10) >= begun_at + 10 - 1e-3


@pytest.mark.parametrize("speed", [0.0, 0.5, -1.0, 1e9, float("nan"), float("inf")])
async def test_a_speed_that_makes_no_sense_is_refused(tmp_path: Path, speed: float) -> None:
    with pytest.raises(Invalid, match=r"clock\.speed"):
        async with keeping(tmp_path, speed):
            pass


def test_a_damaged_file_is_told_and_not_guessed(tmp_path: Path) -> None:
    (tmp_path / PACE_FILE).write_text("{")
    with pytest.raises(Invalid, match="time would go back"):
        read_pace(tmp_path)

"""The clock: the machine's time plus what was measured."""

import time

from keystead.clock import Pace, SystemClock, clock_seconds, real, real_seconds
from keystead.testing.clock import MovableClock


def test_an_unmeasured_clock_shows_the_machines_time() -> None:
    before = time.time()
    assert before <= SystemClock().now() <= time.time()


def test_the_offset_shifts_every_reading() -> None:
    clock = SystemClock()
    clock.offset_seconds = 3600
    assert 3599 < clock.now() - time.time() < 3601


def test_a_clock_with_a_pace_runs_faster_from_its_origin() -> None:
    pace = Pace(speed=60, real_at=1000.0, shown_at=5000.0)
    assert (pace.shows(1000.0), pace.shows(1001.0), pace.shows(1060.5)) == (5000.0, 5060.0, 8630.0)
    clock = SystemClock(pace=Pace(60, time.time() - 100, 0.0))
    assert 6000 <= clock.now() < 7000


def test_the_offset_is_of_real_seconds() -> None:
    clock = SystemClock(pace=Pace(60, time.time(), 0.0))
    clock.offset_seconds = 100
    assert 5900 < clock.now() < 7000
    assert 99 < real(clock).now() - time.time() < 101


def test_what_lasts_in_real_time_is_not_hurried() -> None:
    plain = SystemClock()
    assert real(plain) is plain
    assert abs(real(SystemClock(pace=Pace(600, 0.0, 0.0))).now() - time.time()) < 5


def test_waits_are_told_in_real_seconds() -> None:
    fast, by_hand = SystemClock(pace=Pace(60, 0.0, 0.0)), MovableClock(now=0)
    assert (real_seconds(fast, 30.0), real_seconds(SystemClock(), 30.0), real_seconds(by_hand, 30.0)) == (0.5, 30, 30)
    assert (clock_seconds(fast, 15.0), clock_seconds(by_hand, 15.0)) == (900.0, 15.0)

"""The clock: the machine's time plus what was measured."""

import time

from keystead.clock import SystemClock


def test_an_unmeasured_clock_shows_the_machines_time() -> None:
    before = time.time()
    assert before <= SystemClock().now() <= time.time()


def test_the_offset_shifts_every_reading() -> None:
    clock = SystemClock()
    clock.offset_seconds = 3600
    assert 3599 < clock.now() - time.time() < 3601

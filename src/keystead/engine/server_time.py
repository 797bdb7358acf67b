"""The server's clock, so that hosts agree on the time."""

import time

from keystead.clock import SystemClock
from keystead.engine.client import Valkey


async def sync_clock(valkey: Valkey, clock: SystemClock, *, samples: int = 5) -> float:
    """Set ``clock`` by the server's TIME and return the offset in seconds.

    Of several samples the one with the shortest round trip counts; the server read its clock at the middle of it,
    so the error is at most half that round trip.
    """
    best_round_trip = float("inf")
    offset = 0.0
    for _ in range(samples):
        before = time.time()
        started = time.monotonic()
        seconds, microseconds = await valkey.call(("TIME",), repeat=True)
        round_trip = time.monotonic() - started
        if round_trip < best_round_trip:
            best_round_trip = round_trip
            offset = int(seconds) + int(microseconds) / 1e6 - (before + round_trip / 2)
    clock.offset_seconds = offset
    return offset

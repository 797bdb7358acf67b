"""How fast a walk may go without the server's other clients noticing.

The server does one thing at a time, so what others feel is how long one of our batches holds it. The throttle keeps
that short: it watches how long batches take, the way to the server not counted, makes them smaller when they are slow,
larger again when they are quick, and asks for a pause after a slow one.
"""

LARGEST_BATCH_KEYS = 500
SMALLEST_BATCH_KEYS = 16
SLOW_BATCH_SECONDS = 0.05
QUICK_BATCH_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 2.0
# After a slow batch the walk rests this many times as long as the batch took, so it uses a fifth of the time at most.
PAUSE_FACTOR = 4


class Throttle:
    """Decides the size of the next batch and the pause before it."""

    def __init__(self, largest_batch_keys: int = LARGEST_BATCH_KEYS) -> None:
        self.batch_keys = largest_batch_keys
        self.slow_batches = 0
        self._largest = largest_batch_keys

    def took(self, seconds: float) -> float:
        """Tell how long the last batch took; returns how long to rest before the next one."""
        if seconds > SLOW_BATCH_SECONDS:
            self.slow_batches += 1
            self.batch_keys = max(SMALLEST_BATCH_KEYS, self.batch_keys // 2)
            return min(LONGEST_PAUSE_SECONDS, seconds * PAUSE_FACTOR)
        if seconds < QUICK_BATCH_SECONDS:
            self.batch_keys = min(self._largest, self.batch_keys * 2)
        return 0.0

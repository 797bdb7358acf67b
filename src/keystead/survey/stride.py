"""How fast a walk may go without the server's other clients noticing.

A server does one thing at a time. What others feel of a walk is how long one of its pages holds the server, and what a
walk can feel of others is how long the server lets a PING wait. Pages that hold it long become smaller and are followed
by a rest; a server that answers late is left alone for a while, and for good if it stays so.
"""

KEYS_PER_SECOND = 100_000
# Such a page holds the server about half a millisecond. The longer the way to it, the larger a page may be.
PAGE_KEYS = 64
LARGEST_PAGE_KEYS = 512
NEAR_SECONDS = 0.001
SMALLEST_PAGE_KEYS = 16
SLOW_PAGE_SECONDS = 0.02
QUICK_PAGE_SECONDS = 0.006
# After a slow page the walk rests this many times as long as the page took, so it uses a fifth of the time at most.
REST_FACTOR = 4
LONGEST_REST_SECONDS = 2.0
PING_EVERY_SECONDS = 0.2
CREDIT_SECONDS = 0.2
# A PING that takes this much longer than the quickest one did means that the server is busy with something else.
LATE_SECONDS = 0.025
GIVE_UP_SECONDS = 30.0


class Stride:
    """Decides the size of the next page and the rest before it. All times come from the caller's clock.

    ``late_seconds`` is how much later than at its best the server may answer before the walk holds back, and
    ``give_up_seconds`` how long it may stay so before ``gave_up`` says that the walk should end.
    """

    def __init__(
        self,
        keys_per_second: float = KEYS_PER_SECOND,
        *,
        late_seconds: float = LATE_SECONDS,
        give_up_seconds: float = GIVE_UP_SECONDS,
        page_keys: int = PAGE_KEYS,
    ) -> None:
        self.page_keys = page_keys
        self.gave_up = False
        self.slow_pages = 0
        self.late_pings = 0
        self.trip_seconds = 0.0
        self._rate = keys_per_second
        self._page_keys = page_keys
        self._late = late_seconds
        self._give_up = give_up_seconds
        self._late_since: float | None = None
        self._free_at = 0.0
        self._rest_until = 0.0
        self._pinged_at = float("-inf")

    def wants_ping(self, now: float) -> bool:
        return now - self._pinged_at >= PING_EVERY_SECONDS

    def pinged(self, seconds: float, now: float) -> None:
        """Tell how long a PING took: the way there and back, and what the server was busy with."""
        first = self._pinged_at == float("-inf")
        self._pinged_at = now
        if first or seconds < self.trip_seconds:
            self.trip_seconds = seconds
        if seconds - self.trip_seconds <= self._late:
            self._late_since = None
            return
        self.late_pings += 1
        self._late_since = now if self._late_since is None else self._late_since
        self.gave_up = now - self._late_since >= self._give_up
        self._rest_until = now + min(LONGEST_REST_SECONDS, seconds * REST_FACTOR)
        self._pinged_at = float("-inf") if self.gave_up else now - PING_EVERY_SECONDS

    def took(self, seconds: float, keys: int, now: float) -> None:
        """Tell how long a page of so many keys took, and that they count against the rate."""
        held = max(0.0, seconds - self.trip_seconds)
        # A walk that was held up may make up for a moment of it.
        self._free_at = max(self._free_at, now - CREDIT_SECONDS) + keys / self._rate
        if held > SLOW_PAGE_SECONDS:
            self.slow_pages += 1
            self.page_keys = max(SMALLEST_PAGE_KEYS, self.page_keys // 2)
            self._rest_until = max(self._rest_until, now + min(LONGEST_REST_SECONDS, held * REST_FACTOR))
        elif held < QUICK_PAGE_SECONDS:
            far = min(LARGEST_PAGE_KEYS // PAGE_KEYS, max(1, int(self.trip_seconds / NEAR_SECONDS)))
            self.page_keys = min(far * self._page_keys, self.page_keys * 2)

    def rest_seconds(self, now: float) -> float:
        """How long to wait before asking anything more."""
        return max(0.0, self._rest_until - now, self._free_at - now)

"""The job that makes touches into messages, and hands these to their channels."""

from collections.abc import Callable
from typing import Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import BatchJob, Step
from keystead.messaging.touches.dispatcher_plan import Planner
from keystead.messaging.touches.keys import SEND_LOCK, TO_SEND
from keystead.messaging.touches.models import Touch
from keystead.messaging.touches.outlets import Outlets
from keystead.messaging.touches.stats import SEND_RUN

BATCH_ITEMS: Final = 400
MOST_WAITING: Final = 1000
CONGESTED_SECONDS: Final = 0.1  # a channel may carry away thousands in a second


class Dispatcher(BatchJob[Touch]):
    """Takes touches four hundred at a time. Each leaves the queue in one step with all that follows from it, or stays:
    so nobody is written to twice because a dispatcher was taken for dead."""

    source, lock, runs = TO_SEND, SEND_LOCK, SEND_RUN
    batch_items = BATCH_ITEMS
    slice_items = BATCH_ITEMS
    congested_seconds = CONGESTED_SECONDS

    def __init__(
        self, valkey: Valkey, clock: Clock, planner: Planner, outlets: Outlets, *,
        most_waiting: int = MOST_WAITING, stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(valkey, clock, stopping=stopping)
        self._planner, self._outlets, self._most = planner, outlets, most_waiting

    async def is_congested(self) -> bool:
        """Whether a channel has too much waiting already, in whatever lane."""
        async with self.valkey.pipeline(transaction=False) as pipeline:
            lengths = [place.length(pipeline) for outlet in self._outlets.values() for place in outlet.waiting]
            await pipeline.execute()
        return any([await length > self._most for length in lengths])

    async def process_slice(self, values: list[Touch], step: Step) -> None:
        points = set()
        for plan in await self._planner.plan(values):
            touch, outcome = plan.touch, plan.outcome
            step.settle(touch, plan.writes)
            step.count("attempted")
            step.count(f"attempted_{touch.channel}")
            step.count("stale" if outcome == "stale" else f"{outcome}_{touch.channel}")
            points.add(touch.touch_point_event_slug)
        step.count("touch_points", len(points))

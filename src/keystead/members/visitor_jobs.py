"""Batch jobs that write down what devices did."""

from collections.abc import Callable

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.jobs import BatchJob, GiveUp, Step
from keystead.members.attribution import Attribution, Recorded
from keystead.members.keys import CLICK_LOCK, CLICK_RUNS, CLICKS, LINK_LOCK, LINK_RUNS, LINKS
from keystead.members.models import VisitorClick, VisitorLink


class LinkJob(BatchJob[VisitorLink]):
    """Writes down who was seen on which device, a hundred in each transaction."""

    source, lock, runs = LINKS, LINK_LOCK, LINK_RUNS
    slice_items = 100

    def __init__(
        self, valkey: Valkey, clock: Clock, attribution: Attribution, *, stopping: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__(valkey, clock, stopping=stopping)
        self._attribution = attribution

    async def process_slice(self, values: list[VisitorLink], step: Step) -> None:
        _count(step, await self._attribution.record_links(values), "updated")


class ClickJob(BatchJob[VisitorClick]):
    """Writes down clicks on links of campaigns, a hundred in each transaction."""

    source, lock, runs = CLICKS, CLICK_LOCK, CLICK_RUNS
    slice_items = 100

    def __init__(
        self, valkey: Valkey, clock: Clock, attribution: Attribution, *, stopping: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__(valkey, clock, stopping=stopping)
        self._attribution = attribution

    async def process_slice(self, values: list[VisitorClick], step: Step) -> None:
        try:
            recorded = await self._attribution.record_clicks(values)
        except Invalid as error:  # the others of the slice are then tried without it
            raise GiveUp(str(error)) from None
        _count(step, recorded, "repeated")


def _count(step: Step, recorded: Recorded, known: str) -> None:
    step.count("attempted", recorded.inserted + recorded.known + recorded.lost)
    step.count("inserted", recorded.inserted)
    step.count(known, recorded.known)
    step.count("lost", recorded.lost)

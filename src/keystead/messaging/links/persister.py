"""Stores links whose message was delivered, with the clicks on them."""

from collections.abc import Callable
from typing import Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import BatchJob, Step
from keystead.messaging.links.keys import PERSIST_LOCK, TO_PERSIST
from keystead.messaging.links.models import DEFAULTS, BufferedLink
from keystead.messaging.links.moving import Moving, in_batches, read_moving
from keystead.messaging.links.rows import LinkStored, Storing, store_links
from keystead.messaging.links.stats import LINKS_COUNTED, PERSIST_RUN
from keystead.patterns import Writes
from keystead.settings import LinksSettings
from keystead.store import Database
from keystead.telemetry import logger

_BY_CLICKS: Final = ("persisted_without_clicks", "persisted_with_one_click", "persisted_with_multiple_clicks")
_log = logger("links")


class Persister(BatchJob[str]):
    """A link leaves the buffer in the step that follows its commit, and only if it is a row then.

    One whose message has no row yet waits ten minutes more, as long as the sweep for leaked links does not take it.
    """

    source, lock, runs = TO_PERSIST, PERSIST_LOCK, PERSIST_RUN
    batch_items, slice_items = 400, 48
    again_seconds = 600.0

    def __init__(
        self, valkey: Valkey, clock: Clock, database: Database, *, settings: LinksSettings = DEFAULTS,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(valkey, clock, stopping=stopping)
        self._database, self._settings = database, settings

    async def process_slice(self, values: list[str], step: Step) -> None:
        moving = await read_moving(self.valkey, values)
        step.count("attempted", len(moving))
        for each in moving:
            if each.link is None:
                step.count("lost")
                self._lost(each, step)
        for batch in in_batches([each for each in moving if each.link is not None]):
            now = self.clock.now()
            async with self._database.transaction() as sql:
                links = [(each.link, each.clicks) for each in batch if each.link is not None]
                outcomes = await store_links(self._database, sql, links, now)
            for each in batch:
                if each.link is not None:
                    self._settle(each, each.link, outcomes[each.code], step, now)

    def _settle(self, moving: Moving, link: BufferedLink, storing: Storing, step: Step, now: float) -> None:
        if storing.link in (LinkStored.STORED, LinkStored.THERE):
            self._stored(moving, link, storing.clicks, step, now)
            return
        _log.warning("a link could not be stored yet", reason=storing.link.value, age_seconds=now - link.created_at)
        step.count("integrity_error")
        step.counts.update(dict.fromkeys(_BY_CLICKS, -1))
        writes = Writes(self.valkey.layout)
        again_at = now + self._settings.persist_again_seconds
        if again_at < link.created_at + self._settings.leak_seconds:  # later it belongs to the sweep
            TO_PERSIST.due.add(writes, moving.code, again_at)
        LINKS_COUNTED.tally().incr("persists_failed", "integrity", at=now).store(writes)
        step.settle(moving.code, writes)

    def _stored(self, moving: Moving, link: BufferedLink, clicks: int, step: Step, now: float) -> None:
        step.count("persisted")
        if step.counts["integrity_error"] == 0:
            step.count(_BY_CLICKS[min(clicks, 2)])
        page, made_at = link.page_identifier, link.created_at
        tally = LINKS_COUNTED.tally().incr("persisted", page, at=made_at)
        tally.incr("persisted_clicks", f"{page}:{clicks}", clicks, at=made_at)
        tally.incr("persist_click_failed", amount=len(moving.clicks) - clicks, at=now)
        writes = moving.forget(self.valkey.layout)
        tally.store(writes)
        step.settle(moving.code, writes)

    def _lost(self, moving: Moving, step: Step) -> None:
        _log.error("a link to be stored had gone from the buffer")
        writes = moving.forget(self.valkey.layout)
        LINKS_COUNTED.tally().incr("persists_failed", "lost", at=self.clock.now()).store(writes)
        step.settle(moving.code, writes)

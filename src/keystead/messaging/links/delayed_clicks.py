"""Stores clicks that came while their link was being stored."""

from collections.abc import Callable, Sequence

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import BatchJob, Step
from keystead.messaging.links.keys import BUFFER, CHILD_OF, CLICK_UID, CODE, DELAYED, DELAYED_CLICK, DELAYED_LOCK
from keystead.messaging.links.models import DEFAULTS, DelayedClick
from keystead.messaging.links.rows import known_clicks, link_pages, store_delayed
from keystead.messaging.links.stats import DELAYED_CLICKS_RUN, LINKS_COUNTED
from keystead.patterns import Writes
from keystead.settings import LinksSettings
from keystead.store import Database
from keystead.telemetry import logger

_log = logger("links")


class DelayedClicks(BatchJob[str]):
    """A click whose link is still in the buffer waits on, and so does a login whose click waits itself."""

    source, lock, runs = DELAYED, DELAYED_LOCK, DELAYED_CLICKS_RUN
    batch_items, slice_items = 1000, 100
    again_seconds = 600.0

    def __init__(
        self, valkey: Valkey, clock: Clock, database: Database, *, settings: LinksSettings = DEFAULTS,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(valkey, clock, stopping=stopping)
        self._database, self._settings = database, settings

    async def process_slice(self, values: list[str], step: Step) -> None:
        step.count("attempted", len(values))
        clicks = await self._read(values)
        for uid in values:
            if uid not in clicks:
                self._fail(uid, None, "lost", step)
        waiting = await self._still_waiting(list(clicks.values()))
        if waiting:
            _log.warning("delayed clicks wait on for their links", clicks=len(waiting))
        for uid in waiting:
            self._put_off(uid, step)
        due = [click for uid, click in clicks.items() if uid not in waiting]
        if due:
            await self._store(due, step)

    async def _read(self, uids: Sequence[str]) -> dict[str, DelayedClick]:
        """The clicks of these uids that can be read."""
        async with self.valkey.pipeline(transaction=False) as pipeline:
            answers = {uid: DELAYED_CLICK.at(uid).get(pipeline) for uid in uids if CLICK_UID.accepts(uid)}
            if not answers:
                return {}
            await pipeline.execute()
        found = {uid: await answer for uid, answer in answers.items()}
        return {uid: click for uid, click in found.items() if click is not None and CODE.accepts(click.link_code)}

    async def _still_waiting(self, clicks: Sequence[DelayedClick]) -> set[str]:
        """Those whose link is not in the database yet, and those whose parent is neither there nor among the others."""
        if not clicks:
            return set()
        codes = {click.link_code for click in clicks}
        parents = {click.parent_uid for click in clicks if CLICK_UID.accepts(click.parent_uid)}
        async with self.valkey.pipeline(transaction=False) as pipeline:
            scores = {code: BUFFER.at().score(pipeline, code) for code in codes}
            delayed = {uid: DELAYED_CLICK.at(uid).exists(pipeline) for uid in parents}
            await pipeline.execute()
        buffered = {code for code, score in scores.items() if await score is not None}
        waiting = {click.uid for click in clicks if click.link_code in buffered}
        here = {click.uid for click in clicks} - waiting
        elsewhere = {uid for uid, answer in delayed.items() if await answer} - here
        if elsewhere:  # it may be a row that its worker has not taken note of yet
            async with self._database.reading() as sql:
                elsewhere -= await known_clicks(sql, elsewhere)
        return waiting | {click.uid for click in clicks if click.parent_uid in elsewhere}

    async def _store(self, clicks: Sequence[DelayedClick], step: Step) -> None:
        now = self.clock.now()
        async with self._database.transaction() as sql:
            links = await link_pages(sql, {click.link_code for click in clicks})
            stored, known = await store_delayed(self._database, sql, clicks, links, now)
        for click in clicks:
            if click.uid in stored:
                step.count("persisted")
                who = f"vis={bool(click.visitor_uid)}:user={bool(click.user_sub)}"
                what = f"{click.track_type.value}:{links[click.link_code][1]}:{who}"
                self._settle(click.uid, click, "delayed_clicks_persisted", what, step)
            else:
                self._fail(click.uid, click, "duplicate" if click.uid in known else "lost", step)

    def _fail(self, uid: str, click: DelayedClick | None, reason: str, step: Step) -> None:
        step.count(reason)
        self._settle(uid, click, "delayed_clicks_failed", reason, step)

    def _settle(self, uid: str, click: DelayedClick | None, event: str, breakdown: str, step: Step) -> None:
        """The click waits no longer, and its parent may be asked for in the database from now on."""
        now, writes = self.clock.now(), Writes(self.valkey.layout)
        if CLICK_UID.accepts(uid):
            DELAYED_CLICK.at(uid).delete(writes)
        if click is not None and CLICK_UID.accepts(click.parent_uid):
            CHILD_OF.at(click.parent_uid).delete(writes)
        LINKS_COUNTED.tally().incr("delayed_clicks_attempted", at=now).incr(event, breakdown, at=now).store(writes)
        step.settle(uid, writes)

    def _put_off(self, uid: str, step: Step) -> None:
        step.count("delayed")
        now, writes = self.clock.now(), Writes(self.valkey.layout)
        DELAYED.due.add(writes, uid, now + self._settings.delayed_again_seconds)
        tally = LINKS_COUNTED.tally().incr("delayed_clicks_attempted", at=now).incr("delayed_clicks_delayed", at=now)
        tally.store(writes)
        step.settle(uid, writes)

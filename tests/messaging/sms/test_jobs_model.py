"""Random lives of texts beside a plain model: after every step the same texts wait in the same state."""

import asyncio
from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keystead.engine import connect
from keystead.messaging.sms.statuses import Category, Status, is_out_of_order
from keystead.testing.server import LocalServer

from .room import Room

WAIT, AGE = 900.0, 12 * 3600.0


@dataclass(frozen=True)
class Text:
    status: Status
    date: float
    heard_at: float
    queued_at: float
    due: float
    failures: int = 0
    changes: int = 0


@dataclass(frozen=True, order=True)
class Event:
    sid: str
    status: Status
    at: float
    date: float | None = None
    polled: bool = False


@dataclass
class Model:
    """What is documented, in the plainest words."""

    now: float
    texts: dict[str, Text] = field(default_factory=dict)
    provider: dict[str, tuple[Status, float]] = field(default_factory=dict)
    news: list[Event] = field(default_factory=list)
    early: list[tuple[float, Event]] = field(default_factory=list)
    recovery: list[str] = field(default_factory=list)
    jobs: list[tuple[str, str, int, int, float]] = field(default_factory=list)
    succeeded: list[str] = field(default_factory=list)
    over: list[str] = field(default_factory=list)

    def send(self) -> None:
        sid = f"SM{len(self.provider)}"
        self.provider[sid] = Status.ACCEPTED, self.now
        self.texts[sid] = Text(Status.ACCEPTED, float(int(self.now)), self.now, self.now, self.now + WAIT)

    def reconcile(self) -> None:
        # What is due at the same time comes in the order of its bytes.
        due = sorted((at, event.sid, event.status.value, repr(event.at), event) for at, event in self.early
                     if at <= self.now)
        self.news += [event for *_, event in due]
        self.early = [(at, event) for at, event in self.early if at > self.now]
        news, self.news = self.news, []
        for event in news:
            self._apply(event)

    def _apply(self, event: Event) -> None:
        text = self.texts.get(event.sid)
        if text is None:
            if not event.polled and self.now - event.at < 60 and (self.now + 2, event) not in self.early:
                self.early.append((self.now + 2, event))
            return
        if is_out_of_order(event=event.status, event_updated=event.date, event_at=event.at, stored=text.status,
                           stored_updated=text.date, stored_at=text.heard_at):
            return
        if event.status.category is Category.PENDING:
            if event.status is not text.status:
                self.texts[event.sid] = replace(
                    text, status=event.status, heard_at=self.now, due=self.now + WAIT, changes=text.changes + 1,
                    date=text.date if event.date is None else event.date,
                )
            return
        del self.texts[event.sid]
        kind = "ok" if event.status.category is Category.SUCCEEDED else "final"
        self.jobs.append((kind, event.sid, 0, 0, text.queued_at))

    def find_stale(self) -> None:
        for sid, text in sorted(self.texts.items(), key=lambda pair: pair[1].due):
            if text.due <= self.now:
                after = replace(text, due=self.now + WAIT, failures=text.failures + 1, changes=text.changes + 1)
                self.texts[sid] = after
                self.jobs.append(("stuck", sid, after.failures, after.changes, text.queued_at))

    def run_jobs(self) -> None:
        jobs, self.jobs = self.jobs, []
        for kind, sid, failures, changes, queued_at in jobs:
            if kind == "ok":
                self.succeeded.append(sid)
            elif kind == "final":
                self.over.append(sid)
            elif sid in self.texts and self.texts[sid].changes == changes:
                if failures >= 4 or self.now - queued_at > AGE:
                    del self.texts[sid]
                    self.over.append(sid)
                else:
                    self.texts[sid] = replace(self.texts[sid], changes=changes + 1)
                    self.recovery.append(sid)

    def recover(self) -> None:
        for sid in dict.fromkeys(self.recovery):
            status, updated = self.provider[sid]
            self.news.append(Event(sid, status, self.now, float(int(updated)), polled=True))
        self.recovery = []


STATUSES = [Status(word) for word in ("accepted", "queued", "sending", "sent", "delivered", "undelivered", "canceled")]
ONE = st.integers(0, 3)
STEPS = st.lists(st.one_of(
    *(st.just((name,)) for name in ("send", "reconcile", "find_stale", "run_jobs", "recover", "quarter")),
    st.tuples(st.just("tell"), ONE, st.sampled_from(STATUSES)),
    st.tuples(st.just("becomes"), ONE, st.sampled_from(STATUSES)),
    st.tuples(st.just("advance"), st.sampled_from([0.5, 3, 61, 450, 900, 901, 40_000])),
), max_size=30)


async def walk(url: str, steps: list[tuple]) -> None:  # type: ignore[type-arg]
    valkey = await connect(url)
    await valkey.flushall()
    room = Room(valkey)
    model = Model(room.clock.now())
    for step in (("send",), *steps):
        await take(room, model, step)
        shown = {
            sid: Text(record.message_resource_status, record.message_resource_date_updated or 0.0,
                      record.message_resource_last_updated_at, record.send_initially_queued_at,
                      (await room.due())[sid], record.num_failures, record.num_changes)
            for sid, record in (await room.pending()).items()
        }
        assert shown == model.texts, step
        assert sorted(success.result.message_resource.sid for success in room.succeeded) == sorted(model.succeeded)
        over = [failure.sms.message_resource.sid for failure, settled in room.failed if settled.is_over]  # type: ignore[union-attr]
        assert sorted(over) == sorted(model.over), step
    assert len(set(model.over) & set(model.succeeded)) == 0
    await room.check_all()
    await valkey.aclose()


async def take(room: Room, model: Model, step: tuple) -> None:  # type: ignore[type-arg]
    match step:
        case ("send",):
            if len(model.provider) < 4:
                await room.queue(f"Hello {len(model.provider)}")
                await room.send()
                model.send()
        case ("tell", which, status):
            sid = f"SM{which}"
            await room.tell(sid, status.value)
            model.news.append(Event(sid, status, model.now))
        case ("becomes", which, status):
            if (sid := f"SM{which}") in model.provider:
                model.provider[sid] = status, model.now
                held = room.provider.messages[sid]
                held.status, held.updated_at = status, model.now
        case ("advance", seconds):
            room.clock.advance(seconds)
            model.now = room.clock.now()
        case ("quarter",):
            for each in (("advance", 900), ("find_stale",), ("run_jobs",), ("recover",), ("reconcile",)):
                await take(room, model, each)
        case (name,):
            await getattr(room, name)()
            getattr(model, name)()


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_texts_live_as_the_model_says(valkey_server: LocalServer, steps: list[tuple]) -> None:  # type: ignore[type-arg]
    valkey_server.ensure_running()
    asyncio.run(walk(valkey_server.url, steps))


def test_early_news_of_the_same_moment_is_taken_in_the_order_of_its_bytes(valkey_server: LocalServer) -> None:
    """A walk that chance finds seldom: the order differs from that in which it came."""
    valkey_server.ensure_running()
    asyncio.run(walk(valkey_server.url, [
        ("tell", 1, Status.SENDING), ("tell", 1, Status.QUEUED), ("reconcile",), ("send",), ("advance", 3),
        ("reconcile",),
    ]))

"""Links beside a plain model: random operations of everybody at once, and after each the whole state is compared."""

import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from keystead.messaging.links import AbandonOutcome, ClickOutcome, PersistOutcome, Style, TrackType
from keystead.messaging.links.delayed_clicks import DelayedClicks
from keystead.messaging.links.keys import BUFFER, CHILD_OF, DELAYED, LEAKED, LINK_CLICKS, TO_PERSIST
from keystead.messaging.links.leaks import Leaks
from keystead.messaging.links.models import DEFAULTS
from keystead.messaging.links.persister import Persister
from keystead.messaging.links.stats import LINKS_COUNTED
from keystead.store import Database

from ...patterns.machines import ServerMachine, on_both, play
from .room import Room

HELD = ("", "one")  # workers that take links and then die
TRIES = 3
TOUCHES = ("tch_1", "tch_2")
any_place = st.integers(min_value=0, max_value=9)


@dataclass
class ModelLink:
    touch: str
    created_at: float
    due_at: float | None = None
    held_by: str | None = None
    place: str = "buffer"  # buffer, database or nowhere
    crashes: int = 0


@dataclass
class ModelClick:
    code: str
    parent: str | None
    place: str  # buffer, delayed, database or nowhere
    due_at: float = 0.0


@dataclass
class Model:
    links: dict[str, ModelLink] = field(default_factory=dict)
    clicks: dict[str, ModelClick] = field(default_factory=dict)
    touches: set[str] = field(default_factory=set)

    def clicks_of(self, code: str, place: str) -> list[str]:
        return [uid for uid, click in self.clicks.items() if (click.code, click.place) == (code, place)]

    def move(self, code: str, place: str) -> None:
        """A link leaves the buffer, and its clicks with it."""
        self.links[code].place, self.links[code].due_at, self.links[code].held_by = place, None, None
        for uid in self.clicks_of(code, "buffer"):
            self.clicks[uid].place = place

    def click(self, code: str, parent: str | None) -> ClickOutcome:
        link = self.links[code]
        if link.place == "nowhere":
            return ClickOutcome.UNKNOWN_LINK
        if parent is not None:
            before = self.clicks.get(parent)
            if before is None or before.code != code or before.parent is not None or before.place == "nowhere":
                return ClickOutcome.PARENT_NOT_FOUND
            if any(click.parent == parent for click in self.clicks.values()):
                return ClickOutcome.PARENT_HAS_CHILD
            if before.place == "delayed":
                return ClickOutcome.DELAYED
        if link.place == "database":
            return ClickOutcome.DIRECT_TO_DB
        return ClickOutcome.BUFFERED if link.held_by is None else ClickOutcome.DELAYED


class LinksMachine(ServerMachine):
    template: ClassVar[Path]
    number: ClassVar[int] = 0
    starts_at = 1_772_481_600.0

    @initialize()
    def open(self) -> None:
        type(self).number += 1
        path = self.template.with_name(f"model{self.number}.db")
        shutil.copyfile(self.template, path)
        self._opened = Database.open(f"sqlite:///{path}")
        self.model = Model()

        async def begin() -> Room:
            made = Room(self.client, await self._opened.__aenter__())
            made.clock = self.clock
            made.links = type(made.links)(self.client, made.database, self.clock)
            await made.people()
            return made

        self.room = self.run(begin)

    def teardown(self) -> None:
        if hasattr(self, "_opened"):
            self.run(lambda: self._opened.__aexit__(None, None, None))
        super().teardown()

    def code(self, place: int) -> str:
        codes = list(self.model.links)
        return codes[place % len(codes)]

    # -- what people and messages do ----------------------------------------------------------------------------------

    @rule(touch=st.sampled_from(TOUCHES), style=st.sampled_from(Style))
    def create(self, touch: str, style: Style) -> None:
        link = self.run(lambda: self.room.link(touch, style=style))
        self.model.links[link.code] = ModelLink(touch, self.clock.now())

    @rule(touch=st.sampled_from(TOUCHES))
    def deliver(self, touch: str) -> None:
        if touch not in self.model.touches:
            self.model.touches.add(touch)
            self.run(lambda: self.room.touch(touch))

    @precondition(lambda self: self.model.links)
    @rule(place=any_place)
    def persist(self, place: int) -> None:
        code = self.code(place)
        link = self.model.links[code]
        expected = PersistOutcome.QUEUED
        if link.place != "buffer":
            expected = PersistOutcome.NOT_IN_BUFFER
        elif link.held_by is not None:
            expected = PersistOutcome.PERSISTING
        elif link.due_at is not None:
            expected = PersistOutcome.ALREADY_QUEUED
        else:
            link.due_at = self.clock.now() + DEFAULTS.persist_seconds
        assert self.run(lambda: self.room.links.persist(code)) is expected

    @precondition(lambda self: self.model.links)
    @rule(place=any_place)
    def abandon(self, place: int) -> None:
        code = self.code(place)
        link, clicks = self.model.links[code], self.model.clicks_of(code, "buffer")
        found = self.run(lambda: self.room.links.abandon(code))
        if link.place != "buffer":
            assert found.outcome is AbandonOutcome.UNKNOWN
        elif link.held_by is not None:
            assert found.outcome is AbandonOutcome.PERSISTING
        else:
            assert (found.outcome, found.clicks) == (AbandonOutcome.ABANDONED, len(clicks))
            self.model.move(code, "nowhere")

    @precondition(lambda self: self.model.links)
    @rule(place=any_place, parent=st.none() | any_place)
    def click(self, place: int, parent: int | None) -> None:
        code, uids = self.code(place), list(self.model.clicks)
        before = None if parent is None else uids[-1 - parent % len(uids)] if uids else "utlc_never-made"
        expected = self.model.click(code, before)
        kind = TrackType.ON_CLICK if before is None else TrackType.POST_LOGIN
        found = self.run(lambda: self.room.links.click(
            code, track_type=kind, parent_uid=before, visitor_uid="v_device", limited=False
        ))
        assert found.outcome is expected
        assert (found.target is None) is (self.model.links[code].place == "nowhere")
        where = {ClickOutcome.BUFFERED: "buffer", ClickOutcome.DELAYED: "delayed",
                 ClickOutcome.DIRECT_TO_DB: "database"}.get(expected)
        if where is not None:
            self.model.clicks[found.click_uid] = ModelClick(
                code, before, where, self.clock.now() + DEFAULTS.delayed_seconds
            )

    # -- what workers do ----------------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 600, 1800, 12 * 3600]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(worker=st.sampled_from(HELD))
    def take_and_die(self, worker: str) -> None:
        self.run(lambda: TO_PERSIST.worker(worker).take(self.client, 100, now=self.clock.now()))
        if not any(link.held_by == worker for link in self.model.links.values()):
            due = [link for link in self.model.links.values()
                   if link.due_at is not None and link.held_by is None and link.due_at <= self.clock.now()]
            # One on its last try is taken alone.
            due.sort(key=lambda link: link.due_at or 0)
            last = [link.crashes >= TRIES - 1 for link in due]
            if any(last) and len(due) > 1:
                due = due[: max(1, last.index(True))]
            for link in due:
                link.held_by = worker

    @rule()
    def adopt(self) -> None:
        async def dies() -> None:
            await TO_PERSIST.alive_key.at("one").delete(self.client)
            await TO_PERSIST.adopt(self.client, now=self.clock.now())

        self.run(dies)
        self._crashed("one")

    @rule()
    def store_links(self) -> None:
        self._crashed("")
        now = self.clock.now()
        self.run(lambda: Persister(self.client, self.clock, self.room.database).run())
        for code, link in self.model.links.items():
            if link.due_at is None or link.held_by is not None or link.due_at > now:
                continue
            link.crashes = 0
            if link.touch in self.model.touches:
                self.model.move(code, "database")
            else:
                again_at = now + DEFAULTS.persist_again_seconds
                link.due_at = again_at if again_at < link.created_at + DEFAULTS.leak_seconds else None

    @rule()
    def store_clicks(self) -> None:
        self.run(lambda: DelayedClicks(self.client, self.clock, self.room.database).run())
        now = self.clock.now()
        due = {uid: click for uid, click in self.model.clicks.items()
               if click.place == "delayed" and click.due_at <= now}
        for click in due.values():
            link, parent = self.model.links[click.code], self.model.clicks.get(click.parent or "")
            if link.place == "buffer" or (
                parent is not None and parent.place == "delayed" and click.parent not in due
            ):
                click.due_at = now + DEFAULTS.delayed_again_seconds
            else:
                click.place = link.place

    @rule()
    def sweep(self) -> None:
        self.run(lambda: Leaks(self.client, self.clock, self.room.database).run())
        for code, link in self.model.links.items():
            if link.place == "buffer" and link.held_by is None and (
                link.created_at <= self.clock.now() - DEFAULTS.leak_seconds
            ):
                self.model.move(code, "database" if link.touch in self.model.touches else "nowhere")

    def _crashed(self, worker: str) -> None:
        for link in self.model.links.values():
            if link.held_by == worker:
                link.held_by, link.crashes = None, link.crashes + 1
                if link.crashes >= TRIES:  # a dead letter; the link itself stays until the sweep
                    link.due_at, link.crashes = None, 0

    # -- what holds all the time --------------------------------------------------------------------------------------

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "room"):
            self.run(self._compare)

    async def _compare(self) -> None:
        model, client = self.model, self.client
        in_buffer = {code: link for code, link in model.links.items() if link.place == "buffer"}
        assert dict(await BUFFER.at().range(client)) == {code: link.created_at for code, link in in_buffer.items()}
        assert dict(await TO_PERSIST.due.range(client)) == {
            code: link.due_at for code, link in in_buffer.items() if link.due_at is not None and link.held_by is None
        }
        for worker in HELD:
            held = await TO_PERSIST.worker(worker).held(client)
            assert {code for code, _ in held} == {code for code, link in in_buffer.items() if link.held_by == worker}
        assert not await LEAKED.at().exists(client)
        for code in model.links:
            listed = [click.uid for click in await LINK_CLICKS.at(code).range(client)]
            assert listed == model.clicks_of(code, "buffer")
        delayed = {uid: click for uid, click in model.clicks.items() if click.place == "delayed"}
        assert dict(await DELAYED.due.range(client)) == {uid: click.due_at for uid, click in delayed.items()}
        await self._compare_keys(set(in_buffer), delayed)
        rows = await self.room.stored_clicks()
        assert {uid: row["parent"] for uid, row in rows.items()} == {
            uid: click.parent for uid, click in model.clicks.items() if click.place == "database"
        }
        assert set(await self.room.stored_links()) == {
            code for code, link in model.links.items() if link.place == "database"
        }
        await self._check_counts()

    async def _compare_keys(self, in_buffer: set[str], delayed: dict[str, ModelClick]) -> None:
        """No record is left behind of what is gone."""
        def of(pattern: str, names: Any) -> set[str]:
            return {pattern + name for name in names}

        first = {uid for uid, click in self.model.clicks.items() if click.place == "buffer" and click.parent is None}
        found = {raw.decode().removeprefix("{lnk}") async for raw in self._keys()}
        prefix = BUFFER.pattern
        expected = of(f"{prefix}:", in_buffer) | of(f"{prefix}:on_clicks_by_uid:", first)
        assert {key for key in found if key.startswith(f"{prefix}:") and ":clicks:" not in key} == expected
        records = f"{DELAYED.due_key.pattern}:utlc_"
        assert {key for key in found if key.startswith(records)} == of(f"{DELAYED.due_key.pattern}:", delayed)
        children = {click.parent for click in delayed.values() if click.parent is not None}
        head = CHILD_OF.pattern.partition("{")[0]
        assert {key for key in found if key.startswith(head)} == of(head, children)

    async def _keys(self) -> AsyncIterator[bytes]:
        for server in self.servers:
            for raw in server.call("KEYS", "*touch_links:*"):
                yield raw

    async def _check_counts(self) -> None:
        today = LINKS_COUNTED.day_of(self.clock.now())
        for day in await LINKS_COUNTED.read_range(self.client, today - 9, today):
            for event, values in day.breakdowns.items():
                assert sum(values.values()) == day.counts[event], event
            for identity in LINKS_COUNTED.identities:
                assert identity.check(day.counts) is None, day


@on_both
def test_links_and_clicks_are_always_where_the_model_says(
    request: pytest.FixtureRequest, place: str, sqlite_template: Path
) -> None:
    LinksMachine.template = sqlite_template
    play(request, place, LinksMachine, examples=8, steps=30)

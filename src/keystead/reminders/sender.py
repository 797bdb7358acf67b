"""Sending: a reminder whose time has come becomes a touch, with links of its own. At most one for each day."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from keystead.clock import Clock
from keystead.dates import UnixDate, day_starts_at
from keystead.engine import Valkey
from keystead.jobs import ROOMS_QUEUE, BatchJob, JobRef, RetryLater, Step
from keystead.members import zone_of
from keystead.messaging.links import ABANDON_JOB, PERSIST_JOB, Links, LinkWanted, Style
from keystead.messaging.touches import Touch, Touches
from keystead.patterns import Once, Tally, Writes
from keystead.reminders.keys import QUEUED, SEND_LOCK, SENT
from keystead.reminders.models import DueReminder
from keystead.reminders.plans import (
    Choice,
    FactsProvider,
    OneEvent,
    PersonFacts,
    Plan,
    Situation,
    nothing_known,
    time_of_day,
)
from keystead.reminders.readers import Reader, Readers
from keystead.reminders.stats import SEND_RUN
from keystead.reminders.stats import SENT as COUNTED
from keystead.store import Database

STALE_SECONDS: Final = 3600.0
FULL_SECONDS: Final = 5.0
DEFAULT_NAME: Final = "there"
UNSUBSCRIBE_LIST: Final = "daily reminders"


@dataclass(frozen=True, slots=True)
class _Letter:
    """A reminder that is about to be sent."""

    due: DueReminder
    reader: Reader
    choice: Choice
    facts: PersonFacts
    touch_uid: str


class Sender(BatchJob[DueReminder]):
    """Sends what is due. Any number may run at once.

    The touch has a uid that follows from reminder and day, so one that is sent again after a crash is known to the
    touches, and only what it was counted as is made up for.
    """

    source = QUEUED
    lock = SEND_LOCK
    runs = SEND_RUN
    batch_items = 400
    slice_items = 100

    def __init__(
        self, valkey: Valkey, database: Database, clock: Clock, touches: Touches, links: Links, public_url: str, *,
        plan: Plan | None = None, facts: FactsProvider = nothing_known, stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """``public_url`` begins the links. ``facts`` tells of streaks and goals; without it they are left out."""
        super().__init__(valkey, clock, stopping=stopping)
        self._readers, self._touches, self._links = Readers(database), touches, links
        self._url, self._plan, self._facts = public_url.rstrip("/"), plan or OneEvent(), facts

    async def is_congested(self) -> bool:
        """No links are made for touches that would be refused."""
        return not await self._touches.has_room(self.batch_items)

    async def process_slice(self, values: list[DueReminder], step: Step) -> None:
        now = self.clock.now()
        readers = await self._readers.of([value.uid for value in values])
        letters: list[_Letter] = []
        due = await self._not_repeated(values, step)
        facts = await self._facts([readers[value.uid].sub for value in due if value.uid in readers])
        for value in due:
            reader = readers.get(value.uid)
            if reader is None:
                self._settle(step, value, self._tally(value).incr("sends_lost", unix_date=value.unix_date), "lost")
            elif min(step.due_at(value), _latest_at(value, reader)) < now - STALE_SECONDS:
                skipped = self._tally(value).incr("skipped_sending", reader.channel, unix_date=value.unix_date)
                self._settle(step, value, skipped, "stale")
            else:
                letters.append(self._letter(value, reader, facts.get(reader.sub, PersonFacts()), now))
        await self._send(letters, step, now)
        changed = {letter.reader.user_id: letter.choice.engaged for letter in letters
                   if letter.choice.engaged is not None and letter.choice.engaged != letter.reader.was_engaged}
        await self._readers.store_engaged(changed)

    async def _not_repeated(self, values: Sequence[DueReminder], step: Step) -> list[DueReminder]:
        """Those that were dealt with and edited since are finished: nothing is sent of them, and nothing counted."""
        asked = (SENT.at(value.unix_date).contains(self.valkey, value.uid) for value in values)
        left: list[DueReminder] = []
        for value, repeated in zip(values, await asyncio.gather(*asked), strict=True):
            if repeated:
                step.settle(value, Writes(self.valkey.layout))
            else:
                left.append(value)
        return left

    def _letter(self, value: DueReminder, reader: Reader, facts: PersonFacts, now: float) -> _Letter:
        situation = Situation(now, zone_of(reader.timezone), reader.joined_at, reader.was_engaged, facts)
        return _Letter(value, reader, self._plan.choose(situation), facts, touch_uid(value))

    async def _send(self, letters: Sequence[_Letter], step: Step, now: float) -> None:
        codes = await self._make_links(letters)
        touches = [self._touch(letter, codes[letter.touch_uid], now) for letter in letters]
        sent = await self._touches.queue_many(touches) if touches else []
        for letter, done in zip(letters, sent, strict=True):
            made = codes[letter.touch_uid]
            if done is not Once.DONE:
                await self._links.abandon_all(list(made.values()))
            if done is not Once.FULL:
                counted = self._tally(letter.due).incr("links", amount=len(made), unix_date=letter.due.unix_date)
                counted.incr("sent", letter.reader.channel, unix_date=letter.due.unix_date)
                self._settle(step, letter.due, counted, letter.reader.channel)
                step.count("links", len(made))
        if Once.FULL in sent:
            # Others were faster than us. What we did send is known by its uid when it comes again.
            raise RetryLater(FULL_SECONDS, counts=False)

    async def _make_links(self, letters: Sequence[_Letter]) -> dict[str, dict[str, str]]:
        """The codes of each letter, by what they are for."""
        wanted: list[tuple[str, str, LinkWanted]] = []
        for letter in letters:
            uid = letter.touch_uid
            if letter.reader.channel == "sms":
                wanted.append((uid, "url", LinkWanted(uid, "home", style=Style.SHORT)))
            elif letter.reader.channel == "email":
                wanted.append((uid, "url", LinkWanted(uid, "home")))
                wanted.append((uid, "unsubscribe_url", LinkWanted(
                    uid, "unsubscribe", None, "unsubscribe", {"list": UNSUBSCRIBE_LIST}, Style.LONG
                )))
        made = await self._links.create_many([each for _, _, each in wanted])
        codes: dict[str, dict[str, str]] = {letter.touch_uid: {} for letter in letters}
        for (uid, purpose, _), link in zip(wanted, made, strict=True):
            codes[uid][purpose] = link.code
        return codes

    def _touch(self, letter: _Letter, codes: Mapping[str, str], now: float) -> Touch:
        """The touch; what becomes of its links follows from what becomes of it."""
        made = {"codes": list(codes.values())}
        return self._touches.make(
            letter.reader.sub, letter.choice.slug, channel=letter.reader.channel,
            parameters=self._parameters(letter, codes, now), uid=letter.touch_uid,
            any_hour=True,  # they chose the hour themselves
            success=JobRef(PERSIST_JOB, made, ROOMS_QUEUE) if codes else None,
            failure=JobRef(ABANDON_JOB, made, ROOMS_QUEUE) if codes else None,
        )

    def _parameters(self, letter: _Letter, codes: Mapping[str, str], now: float) -> dict[str, Any]:
        reader, facts = letter.reader, letter.facts
        short = reader.channel == "sms"  # every character counts, and phones make a link of it all the same
        base = self._url.partition("://")[2] if short else self._url
        found: dict[str, Any] = {
            "name": reader.given_name or DEFAULT_NAME, "time_of_day": time_of_day(now, zone_of(reader.timezone)),
            "url": f"{base}/{'a' if short else 'l'}/{codes['url']}" if "url" in codes else self._url,
        }
        if "unsubscribe_url" in codes:
            found["unsubscribe_url"] = f"{self._url}/l/{codes['unsubscribe_url']}"
        if facts.streak is not None:
            found["streak"] = f"{facts.streak} day{'' if facts.streak == 1 else 's'}"
        if facts.goal_days is not None:
            found["goal"] = f"{facts.days_this_week} of {facts.goal_days}"
            found["goal_simple"] = f"{facts.days_this_week}/{facts.goal_days}"
        if letter.choice.starts_over:
            found["ss_reset"] = True
        return found

    def _tally(self, value: DueReminder) -> Tally:
        return COUNTED.tally().incr("sends_attempted", unix_date=value.unix_date)

    def _settle(self, step: Step, value: DueReminder, counted: Tally, outcome: str) -> None:
        writes = Writes(self.valkey.layout)
        SENT.at(value.unix_date).add(writes, value.uid)
        counted.store(writes)
        step.settle(value, writes)
        step.count("attempted")
        step.count(outcome)


def touch_uid(due: DueReminder) -> str:
    """The uid of the touch that a reminder becomes on a day."""
    return f"tch_{hashlib.sha256(f'{due.uid}:{due.unix_date}'.encode()).hexdigest()[:32]}"


def _latest_at(value: DueReminder, reader: Reader) -> float:
    """The latest time that can have been chosen: an hour after the window. One that failed is due again and again, and
    must not be sent at night for that."""
    midnight = day_starts_at(UnixDate(value.unix_date), zone_of(reader.timezone))
    return midnight + reader.end_time + STALE_SECONDS

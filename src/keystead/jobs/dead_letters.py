"""The dead letters of a queue: by error, tried again, or dropped."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from keystead.engine import Script, Valkey
from keystead.jobs.inspection_views import HOT, ErrorGroup, JobView, view_of
from keystead.jobs.keys import OPEN_SECONDS, UNIQUE_SECONDS, Queue
from keystead.jobs.models import JobOptions, JobRecord
from keystead.jobs.records import changed
from keystead.keys import KeyReference, Undecodable
from keystead.keys.executor import Argument

REVIVE = Script("keystead.jobs", "scripts/revive.lua")
DROP = Script("keystead.jobs", "scripts/drop.lua")

STEP_LETTERS: Final = 100  # looked at together, and moved in one atomic step
GROUPED_LETTERS: Final = 100_000
GROUP_WORDS: Final = 8
_NO_OPTIONS: Final = JobOptions()

Choice = Callable[[JobView], bool]
_Seen = tuple[int, bytes, JobView]  # a letter's place, its bytes, and what they say


def every(letter: JobView) -> bool:
    """Chooses every dead letter."""
    return True


def by_uid(uids: Iterable[str]) -> Choice:
    """Chooses the dead letters of these jobs."""
    wanted = frozenset(uids)
    return lambda letter: letter.uid in wanted


def by_error(text: str) -> Choice:
    """Chooses the dead letters of one group, or all whose error begins with the text."""
    return lambda letter: group_of(letter.error) == text or letter.error.startswith(text)


def group_of(error: str) -> str:
    """The words that errors of one kind share: the first few, without those that hold a number or a quotation."""
    words = error.split()[:GROUP_WORDS]
    return " ".join("…" if any(letter.isdigit() or letter in "'\"`" for letter in word) else word for word in words)


class DeadLetters:
    """The dead letters of one queue, oldest first."""

    def __init__(self, valkey: Valkey, queue: Queue) -> None:
        self._valkey, self._queue = valkey, queue

    async def page(self, first: int, most: int) -> list[JobView]:
        """Some letters by their place."""
        return [view for _, view in await self._read(first, most)]

    async def groups(self) -> list[ErrorGroup]:
        """The newest hundred thousand letters by what their errors begin with, most frequent first."""
        length = await self._queue.work.dead.length(self._valkey)
        groups: dict[str, _Gathered] = {}
        first = max(0, length - GROUPED_LETTERS)
        for start in range(first, length, STEP_LETTERS):
            for _, view in await self._read(start, min(STEP_LETTERS, length - start)):
                groups.setdefault(group_of(view.error), _Gathered(view)).add(view)
        shown = self._queue.name or HOT
        found = [group.as_group(error, shown) for error, group in groups.items()]
        return sorted(found, key=lambda group: (-group.count, group.error))

    async def retry(self, choice: Choice) -> int:
        """Queue the chosen ones again, with all their tries; says how many.

        Each hundred is one atomic step, so none is lost or doubled, whoever else does the same. A job that is kept is
        queued again in its state. One that belongs to a batch that has not ended counts there again; one with a unique
        key takes it, unless another job has it by now: then both run. Letters that come while this runs are left.
        """
        return await self._step_by_step(choice, self._revive)

    async def drop(self, choice: Choice) -> int:
        """Forget the chosen ones for good; says how many."""
        return await self._step_by_step(choice, self._drop)

    async def _step_by_step(self, choice: Choice, move: Callable[[list[_Seen]], Awaitable[int]]) -> int:
        left, first, count = await self._queue.work.dead.length(self._valkey), 0, 0
        while left > 0:
            letters = await self._read(first, min(STEP_LETTERS, left))
            if not letters:
                break
            chosen = [(first + at, raw, view) for at, (raw, view) in enumerate(letters) if choice(view)]
            moved = await move(chosen) if chosen else 0
            count += moved
            first += len(letters) - moved
            left -= len(letters)
        return count

    def _revive(self, chosen: list[_Seen]) -> Awaitable[int]:
        queue = self._queue
        keys: list[KeyReference] = [queue.work.dead, queue.work.queue, queue.cancelled]
        arguments: list[Argument] = [OPEN_SECONDS * 1000, UNIQUE_SECONDS * 1000]
        for place, letter, view in chosen:
            record = view.record or JobRecord("", {}, 0.0)
            options = record.options or _NO_OPTIONS
            keys += (queue.job(record.uid or "-"), queue.batch(options.batch or "-"),
                     queue.unique(options.unique or "-"))
            arguments += (
                str(place), letter, _fresh(view), record.uid,
                record.name if options.keep_seconds and record.uid else "", repr(record.queued_at),
                str(int(bool(options.batch))), str(int(bool(options.unique and record.uid))),
            )
        return REVIVE(self._valkey, keys=keys, args=arguments, decode=int)

    def _drop(self, chosen: list[_Seen]) -> Awaitable[int]:
        arguments = [part for place, letter, _ in chosen for part in (str(place), letter)]
        return DROP(self._valkey, keys=[self._queue.work.dead], args=arguments, decode=int)

    async def _read(self, first: int, most: int) -> list[tuple[bytes, JobView]]:
        raws: list[bytes] = await self._valkey.run(
            ("LRANGE", self._queue.work.dead.name(self._valkey.layout), first, first + most - 1), list, repeat=True
        )
        return [(raw, self._view(raw)) for raw in raws]

    def _view(self, raw: bytes) -> JobView:
        try:
            letter = self._queue.work.dead_key.codec.decode(raw)
        except Undecodable as error:
            # Not written by us. Tried again as it is, it comes back with a reason that says more.
            shown, says = self._queue.name or HOT, f"no dead letter: {error.reason}"
            return JobView("dead", shown, None, raw, problem=error.reason, error=says)
        return replace(
            view_of("dead", self._queue, letter.raw), error=letter.error, dead_at=letter.dead_at,
            attempts=letter.attempts,
        )


@dataclass(slots=True)
class _Gathered:
    sample: JobView
    count: int = 0
    times: list[float] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)

    def add(self, view: JobView) -> None:
        self.count += 1
        self.sample = view
        self.names[view.name or "?"] += 1
        if view.dead_at is not None:
            self.times = [min(view.dead_at, *self.times), max(view.dead_at, *self.times)] if self.times \
                else [view.dead_at, view.dead_at]

    def as_group(self, error: str, queue: str) -> ErrorGroup:
        first, last = self.times or (0.0, 0.0)
        return ErrorGroup(error, queue, self.count, first, last, dict(self.names.most_common()), self.sample)


def _fresh(view: JobView) -> bytes:
    """The job as it was before its tries. Its start, where its rate is limited, is to be reserved anew."""
    record = view.record
    if record is None or not (record.attempt or record.slot):
        return view.raw
    return changed(view.raw, attempt=0, slot=0.0)

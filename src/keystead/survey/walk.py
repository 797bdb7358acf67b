"""Walks every key of a server: names, types, expiries and sizes, and never a value.

One SCAN step and the questions about the keys of the step before travel together, so a page costs one round trip. What
the server does not let us ask is left out and said; what it held when it went away is kept and marked.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from keystead.engine import ErrorReply, KeyMoved, Lookout, Valkey, run_of
from keystead.errors import Invalid, Unavailable
from keystead.keys import Reply
from keystead.survey.sparing import get_to_know, hold_back
from keystead.survey.stride import Stride

# Longer names are counted and not asked about: three questions would send the name three times.
LONGEST_NAME_BYTES = 1024 * 1024
# A page of names larger than this makes the next ones smaller.
LARGE_PAGE_BYTES = 4 * 1024 * 1024
UNKNOWN_TTL = -3

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Page:
    """Some keys and what the server said of them, each list in the order of ``keys``.

    ``types`` are the server's own words, empty where it did not tell. ``ttls_ms`` is -1 for a key that never expires
    and ``UNKNOWN_TTL`` where the server did not tell. ``memory_bytes`` is 0 where it did not tell.
    """

    keys: list[bytes]
    types: list[str]
    ttls_ms: list[int]
    memory_bytes: list[int]


@dataclass(frozen=True, slots=True)
class _Question:
    """One fact about a key: the command around its name, in the protocol's form, and what lacks without it."""

    name: str
    front: bytes
    lacks: str


_TYPE = _Question("TYPE", b"*2\r\n$4\r\nTYPE\r\n", "types are unknown")
_PTTL = _Question("PTTL", b"*2\r\n$4\r\nPTTL\r\n", "expiries are unknown")
_MEMORY = _Question("MEMORY USAGE", b"*3\r\n$6\r\nMEMORY\r\n$5\r\nUSAGE\r\n", "memory is unknown")


@dataclass(slots=True)
class _Asked:
    """Questions under way. ``elsewhere_seconds`` is how long nobody waited for their answers."""

    names: list[bytes]
    asked: list[bytes]
    questions: tuple[_Question, ...]
    scans: bool
    count: int
    answers: "asyncio.Future[tuple[list[Reply], float]]"
    elsewhere_seconds: float = 0.0


class Walk:
    """One walk over all keys. ``pages`` may be asked for once; the other attributes hold what is known so far.

    It ends after ``most_keys`` that fit, and after the server went over ``most_scanned`` to find them.
    ``keys`` is how many were given out, ``total`` how many there are as far as the servers can tell; ``partial`` says
    why the walk ended early, and is empty if it did not. ``notes`` are what the servers did not let us ask.
    """

    def __init__(
        self,
        look: Lookout,
        *,
        match: str | bytes | None = None,
        most_keys: int | None = None,
        most_scanned: int | None = None,
        memory: bool = True,
        stride: Stride | None = None,
        progress: Progress | None = None,
    ) -> None:
        if most_keys is not None and most_keys < 1:
            raise Invalid("a sample needs at least one key")
        self.keys = 0
        self.scanned = 0
        self.total = 0
        self.partial = ""
        self.notes: list[str] = list(look.notes)
        self.hidden_keys = 0
        self.complete = False
        self.stride = stride or Stride()
        self._look = look
        self._match = match
        self._most = most_keys
        self._most_scanned = most_scanned
        self._progress = progress
        self._questions = [_TYPE, _PTTL, _MEMORY] if memory else [_TYPE, _PTTL]

    async def pages(self) -> AsyncGenerator[Page, None]:
        """The keys, page after page. A key that is there all the time comes at least once, perhaps twice.

        Ends early, with ``partial`` set, if a server goes away, restarts or stays slow. Raises ``Unavailable`` only
        if the walk cannot even begin.
        """
        sizes = [await self._size(node) for node in self._look.nodes]
        self.total = sum(sizes)
        self._tell()
        whole = 0
        for node, size in zip(self._look.nodes, sizes, strict=True):
            most = self._most
            if most is not None and self.total:
                most = max(1, round(most * size / self.total))
            try:
                async for page in self._of_node(node, most):
                    yield page
                whole += 1
            except (Unavailable, ErrorReply) as error:
                if isinstance(error, ErrorReply) and not self.scanned:
                    raise Unavailable(f"the server does not let us walk its keys: {error}") from error
                self._ended(f"a server went away: {error}")
            if self.stride.gave_up:
                self._ended("the server answers slowly, so the walk was ended to spare it")
                break
        self.complete = not self.partial
        if self.hidden_keys:
            self.notes.append(f"{self.hidden_keys:,} keys may not be asked about by this user")

    def _ended(self, why: str) -> None:
        self.partial = self.partial or f"{why} ({self.keys:,} of about {self.total:,} keys were seen)"

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(min(self.scanned, self.total), self.total)

    async def _size(self, node: Valkey) -> int:
        try:
            return int(await node.call(("DBSIZE",), repeat=True))
        except ErrorReply:  # a user who may not ask
            return 0

    async def _of_node(self, node: Valkey, most: int | None) -> AsyncIterator[Page]:
        identity = await run_of(node)
        await get_to_know(node, self.stride)
        given = 0
        asked: _Asked | None = await self._ask(node, b"0", [])
        try:
            while asked is not None:
                page, cursor, names = self._take(asked, await asked.answers)
                given += len(page.keys)
                self.keys += len(page.keys)
                self._tell()
                asked, problem = None, None
                if self._goes_on(cursor, names, given, most):
                    try:
                        await hold_back(node, self.stride)
                        if not self.stride.gave_up:
                            # The server works on the next page while whoever walks looks at this one.
                            asked = await self._ask(node, cursor, names)
                    except (Unavailable, ErrorReply) as error:
                        problem = error
                if page.keys:
                    began = time.monotonic()
                    yield page
                    if asked is not None:
                        asked.elsewhere_seconds = time.monotonic() - began
                if problem is not None:
                    raise problem
        finally:
            if asked is not None:
                asked.answers.cancel()
        if await run_of(node) != identity:
            raise Unavailable("it restarted or was replaced while its keys were walked, so some may be missing")

    def _goes_on(self, cursor: bytes | None, names: list[bytes], given: int, most: int | None) -> bool:
        if self.stride.gave_up or (most is not None and given >= most):
            return False
        if self._most_scanned is not None and self.scanned >= self._most_scanned and not names:
            return False
        return cursor is not None or bool(names)

    async def _ask(self, node: Valkey, cursor: bytes | None, names: list[bytes]) -> _Asked:
        """Send the questions about ``names`` and for the next names, and come back before they are answered."""
        asked = [name for name in names if len(name) <= LONGEST_NAME_BYTES]
        raw = b"".join(_packed(asked, self._questions))
        count = self.stride.page_keys
        if cursor is not None:
            raw += _scan(cursor, count, self._match)
        replies = len(asked) * len(self._questions) + (cursor is not None)
        answers = asyncio.ensure_future(_timed(node, raw, replies))
        await asyncio.sleep(0)  # now they leave
        return _Asked(names, asked, tuple(self._questions), cursor is not None, count, answers)

    def _take(self, asked: _Asked, answered: tuple[list[Reply], float]) -> tuple[Page, bytes | None, list[bytes]]:
        """What came back: the facts of the names that were asked about, the next cursor, and the next names."""
        answers, took = answered
        now = time.monotonic()
        # An answer that waited for us says nothing of the server.
        held = took if took > 1.2 * asked.elsewhere_seconds + 0.001 else self.stride.trip_seconds
        self.stride.took(held, asked.count if asked.scans else 0, now)
        following: bytes | None = None
        found: list[bytes] = []
        if asked.scans:
            reply = answers.pop()
            if isinstance(reply, Exception):
                raise reply
            following, found = (None if reply[0] == b"0" else bytes(reply[0])), list(dict.fromkeys(reply[1]))
            self.scanned += max(asked.count, len(found))
            if sum(map(len, found)) > LARGE_PAGE_BYTES:
                self.stride.page_keys = max(1, asked.count // 8)
        page = self._read(asked.asked, answers, asked.questions)
        if len(asked.asked) < len(asked.names):
            self._too_long(page, [name for name in asked.names if len(name) > LONGEST_NAME_BYTES])
        return page, following, found

    def _too_long(self, page: Page, names: list[bytes]) -> None:
        for name in names:
            page.keys.append(name)
            page.types.append("")
            page.ttls_ms.append(UNKNOWN_TTL)
            page.memory_bytes.append(0)
        self._note(f"names of more than {LONGEST_NAME_BYTES // 1024:,} KiB were counted and not asked about")

    def _note(self, says: str) -> None:
        if says not in self.notes:
            self.notes.append(says)

    # -- reading answers --------------------------------------------------------------------------------------------

    def _read(self, names: list[bytes], answers: list[Reply], questions: tuple[_Question, ...]) -> Page:
        count = len(names)
        step = len(questions)
        columns = {question: answers[place::step] for place, question in enumerate(questions)}
        types = self._types(columns.get(_TYPE), count)
        ttls = self._numbers(_PTTL, columns.get(_PTTL), count, UNKNOWN_TTL)
        memory = self._numbers(_MEMORY, columns.get(_MEMORY), count, 0)
        if "none" in types or -2 in ttls:  # went away between two steps
            there = [place for place in range(count) if types[place] != "none" and ttls[place] != -2]
            return Page([names[at] for at in there], [types[at] for at in there], [ttls[at] for at in there],
                        [memory[at] for at in there])
        return Page(names, types, ttls, memory)

    def _types(self, column: list[Reply] | None, count: int) -> list[str]:
        if column is None:
            return [""] * count
        try:
            return [_KNOWN_TYPES[reply] for reply in column]
        except KeyError:  # an error, or the type of a module
            return [("none" if self._is_gone(_TYPE, reply) else "") if isinstance(reply, Exception)
                    else reply.decode(errors="replace") if isinstance(reply, bytes) else str(reply)
                    for reply in column]

    def _numbers(self, question: _Question, column: list[Reply] | None, count: int, unknown: int) -> list[int]:
        if column is None:
            return [unknown] * count
        try:
            sum(column)
            return column
        except TypeError:  # an error, or None for a key that is gone
            for reply in column:
                if isinstance(reply, Exception):
                    self._is_gone(question, reply)
            return [reply if isinstance(reply, int) else unknown for reply in column]

    def _is_gone(self, question: _Question, error: Exception) -> bool:
        """Whether a refusal means that the key moved away. A question that is never answered is asked no more."""
        says = str(error)
        if isinstance(error, KeyMoved):
            return True
        if _is_about_the_key(says):
            self.hidden_keys += question is self._questions[0]
        elif question in self._questions:
            self._questions.remove(question)
            self._note(f"{question.lacks}: the server does not let us use {question.name} ({says})")
        return False


_KNOWN_TYPES = {name.encode(): name for name in ("string", "hash", "list", "set", "zset", "stream", "none")}


def _is_about_the_key(says: str) -> bool:
    """Whether a refusal concerns one key and not the command; servers of different age say it differently."""
    lower = says.lower()
    return "permission" in lower and "run the" not in lower and "key" in lower


def _packed(names: Sequence[bytes], questions: Sequence[_Question]) -> list[bytes]:
    """All questions about all names. Written out as the protocol has it: objects for a million keys cost seconds."""
    form = b"".join(question.front + b"%b" for question in questions)
    times = len(questions)
    if times == 3:
        return [form % (tail, tail, tail) for tail in [b"$%d\r\n%b\r\n" % (len(name), name) for name in names]]
    return [form % ((b"$%d\r\n%b\r\n" % (len(name), name),) * times) for name in names]


def _scan(cursor: bytes, count: int, match: str | bytes | None) -> bytes:
    words = [b"SCAN", cursor, b"COUNT", b"%d" % count]
    if match is not None:
        words += [b"MATCH", match.encode(errors="surrogateescape") if isinstance(match, str) else match]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


async def _timed(node: Valkey, raw: bytes, replies: int) -> tuple[list[Reply], float]:
    began = time.monotonic()
    answers = await node.call_packed(raw, replies, repeat=True)
    return answers, time.monotonic() - began

"""An instance's ear on the channel of a family, and how far what it hears can be trusted."""

import asyncio
import math
from collections.abc import Callable

from keystead.engine import CutOff, Listener, Valkey
from keystead.errors import DeclarationError, Unavailable
from keystead.keys import ChannelRef, Undecodable
from keystead.keys.template import Template
from keystead.patterns.cache_frames import Push
from keystead.telemetry import counts, logger

RETRY_SECONDS = 0.2
MOST_MARKS = 10_000

counts.describe("cache_frames_refused", "messages on a cache channel that did not decode")
counts.describe("cache_fills_outdated", "fills that arrived after a newer purge and were dropped")
counts.describe("cache_gaps", "times that a cache channel may have lost messages")

_log = logger("patterns")


class Ear:
    """Listens to a family's channel. ``on_push`` gets each push with its key, None for a purge of several.

    ``generation`` grows whenever messages may have been missed; ``on_gap`` is called then. A message that does not
    decode counts as missed: it may have been a purge. ``drops``: what waits when a gap is noticed is of no use.
    """

    def __init__(
        self, valkey: Valkey, channel: ChannelRef[Push], template: Template, *, trust_seconds: float,
        drops: bool, on_push: Callable[[str | None, Push], None], on_gap: Callable[[], None],
    ) -> None:
        self._hub = valkey.hub()
        self._channel = channel
        self._template = template
        self._trust_seconds = trust_seconds
        self._on_push, self._on_gap = on_push, on_gap
        self._drops = drops
        self._listener: Listener | None = None
        self._gaps = 0
        self._trusted_until = -math.inf
        self._marks: dict[str, tuple[int, int]] = {}  # key: last purge, last fill; the latest heard last
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self.generation = 0

    async def start(self) -> None:
        """Begin to listen; returns when the server has confirmed, or could not within the time of trust.

        Raises the server's refusal, if it will not let us listen.
        """
        self._task = asyncio.get_running_loop().create_task(self._listen(), name="keystead cache channel")
        self._task.add_done_callback(self._ended)
        waiting = asyncio.get_running_loop().create_task(self._ready.wait())
        try:
            await asyncio.wait((waiting, self._task), timeout=self._trust_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if self._task.done() and not self._task.cancelled():
            self._task.result()

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def hears(self) -> bool:
        """Whether the channel was heard recently enough, without a gap, to use what depends on it."""
        now = asyncio.get_running_loop().time()
        if now < self._trusted_until and self._listener is not None and self._listener.gaps == self._gaps:
            return True
        listener = self._listener
        if listener is None or listener.closed:
            return False
        if listener.gaps != self._gaps:
            self._note_gap()
        if listener.waiting:
            return False  # a purge may be among them
        # Until then silence cannot have lasted longer than is trusted, so the hub need not be asked again.
        self._trusted_until = now + self._trust_seconds - self._hub.silent_seconds
        return now < self._trusted_until

    def last_fill(self, key: str) -> int:
        """The version of the last fill of a value that was heard lately."""
        return self._marks.get(key, (0, 0))[1]

    async def _listen(self) -> None:
        while True:
            try:
                async with self._hub.subscribe(self._channel, on_gap=self._check_gap) as listener:
                    self._listener, self._gaps = listener, 0
                    self._note_gap(counted=self._ready.is_set())
                    self._ready.set()
                    async for message in listener:
                        if listener.gaps != self._gaps:
                            self._note_gap()
                            if self._drops:
                                continue
                        self._receive(message.payload)
                return  # the client is being closed
            except CutOff:
                _log.warning("cache fell behind its channel", channel=self._channel.logical)
            except Unavailable as error:
                _log.warning("cache channel out of reach", channel=self._channel.logical, reason=str(error))
            finally:
                self._listener = None
                self._note_gap(counted=False)
            await asyncio.sleep(RETRY_SECONDS)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """What depends on the channel is not used any more; someone should know why."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("cache channel given up", channel=self._channel.logical, reason=str(error))

    def _check_gap(self) -> None:
        if self._listener is not None and self._listener.gaps != self._gaps:
            self._note_gap()

    def _note_gap(self, *, counted: bool = True) -> None:
        if self._listener is not None and self._listener.gaps != self._gaps:
            self._gaps = self._listener.gaps
            if self._drops:
                self._listener.drop_waiting()  # a fill from before the gap may have been purged in it
        self._trusted_until = -math.inf
        self.generation += 1
        if counted:
            counts.add("cache_gaps", channel=self._channel.logical)
        self._on_gap()

    def _receive(self, payload: bytes) -> None:
        try:
            push = self._channel.codec.decode(payload)
            key = self._key(push)
        except (Undecodable, DeclarationError):
            counts.add("cache_frames_refused", channel=self._channel.logical)
            self._note_gap()
            return
        if key is not None and not self._is_current(key, push):
            counts.add("cache_fills_outdated", channel=self._channel.logical)
            push = Push(push.arguments, None, push.version)  # the value is not to be had; who waits asks again
        self._on_push(key, push)

    def _key(self, push: Push) -> str | None:
        names = self._template.names
        if len(push.arguments) < len(names) and push.raw is None and push.arguments.keys() <= set(names):
            return None
        return self._template.fill(self._template.bind((), push.arguments))

    def _is_current(self, key: str, push: Push) -> bool:
        """Note the version; False for a fill that is older than a purge that was heard."""
        purged, filled = self._marks.get(key, (0, 0))
        if push.raw is not None and push.version and push.version < purged:
            return False
        self._marks.pop(key, None)  # so that it becomes the last
        if push.raw is None:
            self._marks[key] = max(purged, push.version), filled
        else:
            self._marks[key] = purged, push.version
        if len(self._marks) > MOST_MARKS:
            del self._marks[next(iter(self._marks))]
        return True

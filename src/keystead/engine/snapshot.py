"""All keys of a server at one moment: writes held for an instant, and the data streamed out afterwards.

A server gives a replica its whole data as an RDB file, fixed at the moment when the server answers ``FULLRESYNC``:
it has forked by then, and whatever is written later is not in it. ``Held`` keeps writes away from all primaries at
once, so that the files of a whole cluster, and whatever the caller does meanwhile elsewhere, speak of the same
moment.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, Self

from keystead.engine.client import Valkey
from keystead.engine.cluster import ClusterValkey
from keystead.engine.commands import pack
from keystead.engine.endpoint import Endpoint
from keystead.engine.failures import ErrorReply
from keystead.errors import Invalid, KeysteadError, Unavailable

CHUNK_BYTES: Final = 1024 * 1024
LONGEST_HOLD_SECONDS: Final = 8.0  # less than clients wait before they take a connection for dead
SILENCE_SECONDS: Final = 120.0  # the server says something every second while it saves
_LINE_BYTES: Final = 64 * 1024


class NotPermitted(KeysteadError):
    """The server does not let this user hold writes or have a snapshot; or it is a service that never does."""


class Moved(Unavailable):
    """What was to be one moment was none: the hold ran out, a primary was replaced. Trying again may help."""


class Held:
    """Writes of all clients wait, on every node given, until ``release`` or until the time is over.

    The server itself ends the hold at its time, also if this process dies. Keys do not expire meanwhile. ``seconds`` is
    counted from before the first node was asked, so ``still_holds`` errs on the safe side.
    """

    def __init__(self, nodes: Sequence[Valkey], seconds: float) -> None:
        if not 0.05 <= seconds <= LONGEST_HOLD_SECONDS:
            raise Invalid(f"writes may be held for 0.05 to {LONGEST_HOLD_SECONDS:g} seconds, not {seconds:g}")
        self._nodes, self._seconds = nodes, seconds
        self._begun_at = self._ended_at = 0.0

    @property
    def held_seconds(self) -> float:
        """For how long writes waited, at most."""
        return (self._ended_at or asyncio.get_running_loop().time()) - self._begun_at

    @property
    def still_holds(self) -> bool:
        return self.held_seconds < self._seconds

    async def __aenter__(self) -> Self:
        self._begun_at = asyncio.get_running_loop().time()
        milliseconds = max(1, round(self._seconds * 1000))
        try:
            asked = await asyncio.gather(
                *(node.call(("CLIENT", "PAUSE", milliseconds, "WRITE")) for node in self._nodes),
                return_exceptions=True,
            )
            for problem in asked:
                if isinstance(problem, ErrorReply):
                    raise NotPermitted(f"the server does not let us hold writes: {problem}") from problem
                if isinstance(problem, BaseException):
                    raise problem
        except BaseException:
            await self.release()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.release()

    async def release(self) -> None:
        """Let writes go on. Cancelled or not, every node is told."""
        if self._ended_at:
            return
        telling = asyncio.ensure_future(asyncio.gather(
            *(node.call(("CLIENT", "UNPAUSE"), repeat=True) for node in self._nodes), return_exceptions=True
        ))
        try:
            await asyncio.shield(telling)
        except asyncio.CancelledError:
            await asyncio.wait({telling})  # whoever cancels us closes the connections next
            raise
        finally:
            # A node that cannot be told goes on by itself when the time is over.
            self._ended_at = asyncio.get_running_loop().time()


class Snapshot:
    """The data of one server as replicas get it. Made by ``open``; ``begin`` fixes its moment, ``chunks`` reads it."""

    def __init__(self, endpoint: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._endpoint, self._reader, self._writer = endpoint, reader, writer
        self.bytes = 0  # of the file, once ``size`` answered
        self.offset = -1

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, node: Valkey) -> AsyncIterator[Self]:
        """Log in on a connection of its own. ``NotPermitted`` if this user may not have a snapshot."""
        endpoint = await node._find()
        seconds = node.settings.connect_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                reader, writer = await _connected(endpoint)
        except (OSError, TimeoutError) as error:
            reason = getattr(error, "strerror", None) or "it did not answer"
            raise Unavailable(f"{endpoint.display} cannot be reached for a snapshot: {reason}") from error
        snapshot = cls(endpoint, reader, writer)
        try:
            async with asyncio.timeout(seconds):
                await snapshot._log_in()
            yield snapshot
        except TimeoutError as error:
            raise Unavailable(f"{endpoint.display} did not answer in time") from error
        finally:
            writer.transport.abort()  # the server has nothing more to tell, and a replica says nothing either

    async def begin(self, not_before: int, seconds: float) -> None:
        """Fix the moment; the snapshot holds everything that was written by then.

        ``not_before``: the replication offset while writes were held. A save that was begun earlier for another replica
        is not taken (``Moved``), nor one that was not begun within ``seconds`` because the server saves something else.
        """
        self._send("PSYNC", "?", "-1")
        try:
            async with asyncio.timeout(seconds):
                line = await self._line()
        except TimeoutError:
            raise Moved(f"{self._endpoint.display} was busy with another save; try again later") from None
        words = line.split()
        if len(words) != 3 or words[0] != b"+FULLRESYNC":
            raise NotPermitted(f"{self._endpoint.display} does not give a snapshot: {_said(line)}")
        self.offset = int(words[2])
        if self.offset < not_before:
            raise Moved(f"{self._endpoint.display} was saving for a replica already; try again when that is over")

    async def size(self) -> int:
        """How many bytes will come. Waits until the server has saved."""
        line = await self._line(SILENCE_SECONDS)
        if not line.startswith(b"$") or line.startswith(b"$EOF:"):
            raise Unavailable(f"{self._endpoint.display} did not send its snapshot: {_said(line)}")
        self.bytes = int(line[1:])
        return self.bytes

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes of the RDB file, after ``size``. ``Unavailable`` if they end too early."""
        left = self.bytes
        while left:
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    chunk = await self._reader.read(min(left, CHUNK_BYTES))
            except (OSError, TimeoutError) as error:
                raise Unavailable(f"{self._endpoint.display} stopped sending its snapshot") from error
            if not chunk:
                raise Unavailable(f"{self._endpoint.display} ended the connection with {left:,} bytes to go")
            left -= len(chunk)
            yield chunk

    async def _log_in(self) -> None:
        endpoint = self._endpoint
        if endpoint.password is not None:
            await self._ask("AUTH", *filter(None, (endpoint.username,)), endpoint.password)
        # A replica that wants the file alone: nothing that is written meanwhile is kept for it. It does not say that it
        # can take a file without a length, so the server saves at once and does not wait for further replicas.
        await self._ask("REPLCONF", "rdb-only", "1")

    async def _ask(self, *words: str) -> None:
        self._send(*words)
        line = await self._line()
        if line.startswith(b"-"):
            raise NotPermitted(f"{self._endpoint.display} does not give a snapshot: {_said(line)}")

    def _send(self, *words: str) -> None:
        self._writer.write(pack(words))

    async def _line(self, silence_seconds: float | None = None) -> bytes:
        """The next line that says something; the server sends empty ones so that nobody thinks it is dead."""
        while True:
            try:
                async with asyncio.timeout(silence_seconds):
                    line = await self._reader.readline()
            except TimeoutError:
                if silence_seconds is None:
                    raise
                raise Unavailable(f"{self._endpoint.display} said nothing for {silence_seconds:g} s") from None
            except (OSError, ValueError) as error:
                raise Unavailable(f"{self._endpoint.display} ended the connection of its snapshot") from error
            if not line:
                raise Unavailable(f"{self._endpoint.display} ended the connection of its snapshot; its log says why")
            if line.strip():
                return line.strip()


async def replication_offset(node: Valkey) -> int:
    """How far a primary has written; ``Moved`` if it is none any more."""
    facts = await server_facts(node, "replication")
    if facts.get("role") != "master":
        raise Moved("a primary was replaced meanwhile; try again")
    return int(facts.get("master_repl_offset", "0"))


async def wait_until_idle(node: Valkey, seconds: float) -> bool:
    """Wait until a server saves nothing; says whether that came to pass."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        facts = await server_facts(node, "persistence")
        busy = ("rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled")
        if all(facts.get(name, "0") == "0" for name in busy):
            return True
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.1)


async def server_facts(node: Valkey, section: str) -> dict[str, str]:
    """A section of what the server tells of itself."""
    return _facts(await node.call(("INFO", section), repeat=True))


async def primaries(valkey: Valkey) -> list[Valkey]:
    """Every server that takes writes now."""
    if isinstance(valkey, ClusterValkey):
        await valkey.topology.refresh()
    return await valkey.nodes()


def _facts(raw: Any) -> dict[str, str]:
    return dict(line.split(":", 1) for line in bytes(raw).decode(errors="replace").splitlines() if ":" in line)


async def _connected(endpoint: Endpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if endpoint.path is not None:
        return await asyncio.open_unix_connection(endpoint.path, limit=_LINE_BYTES)
    tls_host = (endpoint.tls_host or endpoint.host) if endpoint.tls else None
    return await asyncio.open_connection(
        endpoint.host, endpoint.port, ssl=endpoint.tls, server_hostname=tls_host, limit=_LINE_BYTES
    )


def _said(line: bytes) -> str:
    return line[:200].decode(errors="replace").lstrip("-+")

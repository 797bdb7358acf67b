"""Following a command through a cluster: redirects, slots on their way, failovers, until it ran or time is up."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import redis.exceptions

from keystead.engine.client import MOST_REPEATS, NOT_YET, says_demoted
from keystead.engine.commands import pack
from keystead.engine.connection import Reply
from keystead.engine.failures import AnswerLost, NotSent, ServerAway
from keystead.engine.replicated import replicate_taken
from keystead.engine.topology import NODE_PATIENCE_SECONDS, Node, Topology
from keystead.engine.wire import FIRST_PAUSE_SECONDS
from keystead.settings import ValkeySettings
from keystead.telemetry import counts

# Errors that say where or when to ask instead; the command was not run.
REDIRECTS = (
    redis.exceptions.AskError,  # also MOVED, which redis-py derives from it
    redis.exceptions.TryAgainError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.ReadOnlyError,
    *NOT_YET,
)
MOST_HOPS = 4  # redirects in a row that are followed at once; then two nodes disagree and need a moment
_LONGEST_PAUSE_SECONDS = 0.25
_ASKING = pack(("ASKING",))

counts.describe("cluster_redirects", "commands that a node sent on to another one")


@dataclass(slots=True)
class Unit:
    """Commands that travel together: one command, or all from MULTI to EXEC. ``slot`` is None without a key."""

    slot: int | None
    raw: bytes
    length: int
    replies: list[Reply] = field(default_factory=list)

    @property
    def refusal(self) -> Exception | None:
        """The reply that says: not here, or not now. What it belongs to was not run."""
        return next((reply for reply in self.replies if is_redirect(reply)), None)


class Follower:
    """The rare path of a cluster client."""

    def __init__(self, topology: Topology, settings: ValkeySettings) -> None:
        self._topology = topology
        self._settings = settings

    async def follow(
        self,
        units: Sequence[Unit],
        *,
        repeat: bool,
        alone: bool = False,
        error: Exception | None = None,
        by: Node | None = None,
        wait_seconds: float | None = 0.0,
    ) -> None:
        """Send units of one slot until they ran, and fill in their replies; server errors stand among these.

        ``error`` is what a first try at ``by`` came to. ``alone`` sends on a connection of its own, and several units
        then count as refused only if all that have a key were. Raises ``ServerAway`` when the outage limit is over,
        and ``AnswerLost`` unless it may ``repeat``. ``wait_seconds`` is how long the server itself may take.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.outage_seconds
        slot = next((unit.slot for unit in units if unit.slot is not None), None)
        pause, hops, losses = FIRST_PAUSE_SECONDS, 0, 0
        while True:
            if isinstance(error, AnswerLost):
                counts.add("wire_answers_lost")
                self._topology.refresh_soon()
                losses += 1
                if not repeat or losses > MOST_REPEATS:
                    raise error
            self._topology.check_open()
            if isinstance(error, redis.exceptions.AskError) and hops < MOST_HOPS:
                counts.add("cluster_redirects")
                hops += 1
            elif error is not None:
                self._topology.refresh_soon()
                if loop.time() + pause > deadline:
                    raise ServerAway(self._story(slot, error)) from error
                await asyncio.sleep(pause)
                pause, hops = min(pause * 2, _LONGEST_PAUSE_SECONDS), 0
            asking = isinstance(error, redis.exceptions.AskError) and not isinstance(error, redis.exceptions.MovedError)
            started = loop.time()
            try:
                by = self._next(slot, error, by)
                await self._exchange(by, units, asking, alone, wait_seconds)
                error = _refusal(units)
                if error is None:
                    return
                if loop.time() - started > self._settings.outage_seconds / 2:
                    # A blocking command that waited in peace and was sent away: the trouble begins only now.
                    deadline = loop.time() + self._settings.outage_seconds
            except (NotSent, AnswerLost, ServerAway) as problem:
                error = problem

    def _next(self, slot: int | None, error: Exception | None, by: Node | None) -> Node:
        if isinstance(error, redis.exceptions.MovedError):
            return self._topology.moved(error, by)
        if isinstance(error, redis.exceptions.AskError):
            return self._topology.redirected(error, by)
        node = self._topology.owners[slot] if slot is not None else self._topology.any_node()
        if node is None:
            raise ServerAway("no node serves it")
        return node

    async def _exchange(
        self, node: Node, units: Sequence[Unit], asking: bool, alone: bool, wait_seconds: float | None
    ) -> None:
        # ASKING opens the door of the importing node for the next command, or for the whole MULTI block.
        raw = b"".join(_ASKING + unit.raw if asking else unit.raw for unit in units)
        length = sum(unit.length + asking for unit in units)
        if alone:
            most = None if wait_seconds is None else wait_seconds + self._settings.command_timeout_seconds
            async with node.dedicated.borrow() as connection:
                try:
                    async with asyncio.timeout(most):
                        replies = await connection.send_block(raw, length)
                except TimeoutError:
                    raise AnswerLost(f"the answer was lost: nothing came for {most:g} s") from None
                await replicate_taken(connection, raw, replies)
        else:
            connection = node.wire.connection or await node.wire.ready(
                len(raw), asyncio.get_running_loop().time() + NODE_PATIENCE_SECONDS
            )
            if connection.congested:
                await connection.room(len(raw))
            replies = await connection.send_block(raw, length)
        for unit in units:
            unit.replies = replies[asking : asking + unit.length]
            replies = replies[asking + unit.length :]

    def _story(self, slot: int | None, error: Exception) -> str:
        reason = str(error) or self._topology.last_problem or "the connection broke"
        return f"the cluster cannot serve {'this command' if slot is None else f'slot {slot}'}: {reason}"


def is_redirect(reply: Reply) -> bool:
    return isinstance(reply, REDIRECTS) or says_demoted(reply)


def _refusal(units: Sequence[Unit]) -> Exception | None:
    refusals = [unit.refusal for unit in units]
    if sum(refusal is not None for refusal in refusals) < max(1, sum(unit.slot is not None for unit in units)):
        return None
    return next(refusal for refusal in refusals if refusal is not None)

"""The client: redis-py's whole command API over one shared, self-pipelining connection."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import redis.asyncio
import redis.exceptions
from redis.asyncio.connection import ConnectionPool
from redis.client import EMPTY_RESPONSE

from keystead.engine.address import Address
from keystead.engine.commands import (
    OWN_PIPELINE,
    Plan,
    blocks,
    full_name,
    longest_wait_seconds,
    multi,
    pack,
    plan,
    transaction_replies,
)
from keystead.engine.connection import Connection
from keystead.engine.dedicated import Dedicated
from keystead.engine.endpoint import Endpoint
from keystead.engine.failures import AnswerLost, NotSent, ServerAway
from keystead.engine.hub import Hub
from keystead.engine.lanes import Laned, LaneHub
from keystead.engine.pipeline import Pipeline
from keystead.engine.replicated import replicate_taken
from keystead.engine.scripts import Script
from keystead.engine.wire import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, Wire
from keystead.errors import Invalid
from keystead.keys.executor import Argument, Command, Reply
from keystead.keys.layout import Layout
from keystead.settings import ValkeySettings
from keystead.telemetry import counts

T = TypeVar("T")

# The server did not run the command and will later: safe to send again whatever the command.
NOT_YET = (redis.exceptions.BusyLoadingError, redis.exceptions.MasterDownError)
RECOVERABLE = (NotSent, AnswerLost, *NOT_YET, redis.exceptions.ReadOnlyError)
MOST_REPEATS = 3  # a command that breaks the connection each time would break it for everyone else as well


class Valkey(Laned, redis.asyncio.Redis):  # type: ignore[misc]  # two of redis-py's own bases disagree
    """A server, as all tasks of a process share it.

    Every redis-py idiom works: commands, pipelines, WATCH, ``pubsub()``, ``lock()``. Replies are bytes. Commands of
    concurrent tasks travel together; blocking commands get a connection of their own. A command whose reply was lost
    is sent again only if that is harmless, otherwise ``ReplyLost`` says that it may have been applied.
    """

    def __init__(
        self,
        find: Callable[[], Awaitable[Endpoint]],
        *,
        pool: ConnectionPool,
        settings: ValkeySettings | None = None,
        layout: Layout = Layout.PLAIN,
        follows_primary: bool = False,
    ) -> None:
        super().__init__(connection_pool=pool)
        self.settings = settings or ValkeySettings()
        self._layout = layout
        self._follows_primary = follows_primary
        self._wires = [Wire(find, self.settings) for _ in range(max(1, self.settings.wires))]
        self._wire = self._wires[0]
        self._turn = 0
        self._dedicated = Dedicated(find, self.settings)
        self._plans: dict[str, Plan] = {}
        self._hub: Hub | None = None
        self._find = find
        self._loaded_scripts: set[str] = set()
        self._loaded_at = 0
        self.address: Address | None = None  # set by connect(); a thread with a loop of its own connects to it anew

    # -- life -------------------------------------------------------------------------------------------------------

    async def open(self) -> "Valkey":
        """Connect now; raises at once what is wrong with the address, the password or the server."""
        for wire in self._wires:
            await wire.open()
        return self

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        if self._whole is not None:
            return
        if self._hub is not None:
            await self._hub.aclose()
        for wire in self._wires:
            await wire.aclose()
        await self._dedicated.aclose()
        await self.connection_pool.aclose()

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def facts(self) -> dict[str, str]:
        """What the server said of itself when we logged in: ``server``, ``version``, ``role``, ``mode``."""
        return self._wire.connection.facts if self._wire.connection else {}

    @property
    def in_flight_bytes(self) -> int:
        return sum(wire.connection.in_flight_bytes for wire in self._wires if wire.connection)

    @property
    def commands_sent(self) -> int:
        return sum(wire.commands for wire in self._wires)

    def hub(self) -> Hub:
        """All subscriptions of this process; opened when first listened to, closed with the client."""
        if self._whole is not None:
            return LaneHub(self._whole.hub(), self._layout)  # type: ignore[return-value]
        if self._hub is None:
            self._hub = Hub(self._find, self.settings, layout=self.layout)
        return self._hub

    async def nodes(self) -> "list[Valkey]":
        """The servers that hold keys: this one, or every primary of a cluster."""
        return [self]

    # -- one command ------------------------------------------------------------------------------------------------

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        how = self._plans.get(args[0]) or self._plan(args)
        if not how.plain:
            return how.shape(await self._special(args, how), options)
        # The same as ``call``, written out: one coroutine less is a fifth of what a command costs.
        raw = pack(args)
        connection = self._pick().connection
        try:
            if connection is None or connection.congested:
                reply = await self._patiently(raw, None, how.repeat)
            else:
                try:
                    reply = await connection.send(raw)
                except RECOVERABLE as error:
                    reply = await self._patiently(raw, None, how.repeat, error, connection)
        except redis.exceptions.ResponseError:
            if EMPTY_RESPONSE in options:
                return options[EMPTY_RESPONSE]
            raise
        return reply if how.callback is None else how.shape(reply, options)

    def run(self, command: Command, decode: Callable[[Reply], T], *, repeat: bool = False) -> Awaitable[T]:
        return self._run(command, decode, repeat)

    async def _run(self, command: Command, decode: Callable[[Reply], T], repeat: bool) -> T:
        return decode(await self.call(command, repeat=repeat))

    def run_block(
        self, commands: Sequence[Command], decode: Callable[[list[Reply]], T], *, repeat: bool = False
    ) -> Awaitable[T]:
        return self._run_block(commands, decode, repeat)

    async def _run_block(
        self, commands: Sequence[Command], decode: Callable[[list[Reply]], T], repeat: bool
    ) -> T:
        return decode(transaction_replies(await self.call_block(multi(commands), repeat=repeat)))

    def run_script(self, script: Script, rest: tuple[Argument, ...], decode: Callable[[Reply], T]) -> Awaitable[T]:
        return self._run_script(script, rest, decode)

    async def _run_script(self, script: Script, rest: tuple[Argument, ...], decode: Callable[[Reply], T]) -> T:
        raw, repeat = pack(("EVALSHA", script.sha, *rest)), script.header.repeat
        connection = self._pick().connection
        try:
            # Written out for the same reason as in ``execute_command``.
            if connection is None or connection.congested:
                reply = await self._patiently(raw, None, repeat)
            else:
                try:
                    reply = await connection.send(raw)
                except RECOVERABLE as error:
                    reply = await self._patiently(raw, None, repeat, error, connection)
        except redis.exceptions.NoScriptError:
            # The text runs the script and loads it for the next caller, in the same round trip.
            reply = await self.call(("EVAL", script.text, *rest), repeat=repeat)
        return decode(reply)

    @property
    def loaded_scripts(self) -> set[str]:
        """Hashes of scripts that this client has seen run since it last lost a connection."""
        generation = sum(wire.generation for wire in self._wires)
        if generation != self._loaded_at:
            self._loaded_at = generation
            self._loaded_scripts.clear()
        return self._loaded_scripts

    async def call(self, args: tuple[Any, ...], *, repeat: bool = False) -> Reply:
        """One command over the shared wire; the raw reply, or the server's error raised."""
        raw = pack(args)
        connection = self._pick().connection
        if connection is None or connection.congested:
            return await self._patiently(raw, None, repeat)
        try:
            return await connection.send(raw)
        except RECOVERABLE as error:
            return await self._patiently(raw, None, repeat, error, connection)

    async def call_block(self, commands: Sequence[tuple[Any, ...]], *, repeat: bool = False) -> list[Reply]:
        """Commands as one contiguous row over the shared wire; all raw replies, server errors among them."""
        return await self.call_packed(b"".join([pack(command) for command in commands]), len(commands), repeat=repeat)

    async def call_packed(self, raw: bytes, replies: int, *, repeat: bool = False) -> list[Reply]:
        """As ``call_block``, for commands that are in the form of the protocol already."""
        connection = self._pick().connection
        if connection is None or connection.congested:
            return list(await self._patiently(raw, replies, repeat))
        try:
            answers = await connection.send_block(raw, replies)
        except RECOVERABLE as error:
            return list(await self._patiently(raw, replies, repeat, error, connection))
        refusal = self._refusal(answers, connection)
        if refusal is None:
            return answers
        return list(await self._patiently(raw, replies, repeat, refusal, connection))

    def _pick(self) -> Wire:
        if len(self._wires) == 1:
            return self._wire
        self._turn = (self._turn + 1) % len(self._wires)
        return self._wires[self._turn]

    async def _patiently(
        self,
        raw: bytes,
        replies: int | None,
        repeat: bool,
        error: Exception | None = None,
        connection: Connection | None = None,
    ) -> Any:
        """The rare path: no connection, no room, or a first try that failed. Tries until the outage limit is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.settings.outage_seconds
        pause = FIRST_PAUSE_SECONDS
        losses = 0
        while True:
            if error is not None:
                losses += isinstance(error, AnswerLost)
                again = repeat and losses <= MOST_REPEATS and loop.time() < deadline
                pause = await self._before_next_try(error, connection, again, pause, deadline)
            connection = await self._pick().ready(len(raw), deadline)
            try:
                if replies is None:
                    return await connection.send(raw)
                answers = await connection.send_block(raw, replies)
                error = self._refusal(answers, connection)
                if error is None:
                    return answers
            except RECOVERABLE as problem:
                error = problem

    async def _before_next_try(
        self, error: Exception, connection: Connection | None, repeat: bool, pause: float, deadline: float
    ) -> float:
        """Decide what an error means: raise it, or come back when another try makes sense."""
        if isinstance(error, NotSent):
            return pause
        if isinstance(error, AnswerLost):
            counts.add("wire_answers_lost")
            if not repeat:
                raise error
            return pause
        if isinstance(error, redis.exceptions.ReadOnlyError):
            if not self._follows_primary:
                raise error
            self._leave_demoted(connection)
        if asyncio.get_running_loop().time() + pause > deadline:
            raise ServerAway(f"the server is up and not ready: {error}") from error
        await asyncio.sleep(pause)
        return min(pause * 2, LONGEST_PAUSE_SECONDS)

    def _refusal(self, answers: list[Reply], connection: Connection) -> Exception | None:
        """Why a block was not run. A demoted primary is left in any case, for whoever comes next."""
        if not self._follows_primary:
            return refusal_of(answers)
        demoted: list[Exception] = [answer for answer in answers if says_demoted(answer)]
        if demoted:
            self._leave_demoted(connection)
            if all(isinstance(answer, Exception) for answer in answers):  # WAIT has its own words there
                return demoted[0]
        return refusal_of(answers, (*NOT_YET, redis.exceptions.ReadOnlyError))

    def _leave_demoted(self, connection: Connection | None) -> None:
        if connection is None:
            return
        reason = "its server is no longer the primary"
        for wire in self._wires:
            if wire.connection is connection:
                wire.replace(connection, reason)
                return
        if not connection.waiting_commands:
            connection.abort(reason)

    async def _special(self, args: tuple[Any, ...], how: Plan) -> Reply:
        """Commands that must not travel on the shared connection."""
        name = full_name(args).upper()
        how = plan(name, {})
        if how.stateful:
            raise Invalid(
                f"{name} would change the connection that all tasks share; use pipeline() for transactions, hub() or"
                " pubsub() to subscribe, and the URL for user, database and client name"
            )
        if name in OWN_PIPELINE:
            raise Invalid(f"{name} speaks of one connection's own writes: put it into the pipeline that writes")
        if how.shared and not (how.may_block and blocks(args)):
            return await self.call(args, repeat=how.repeat)
        reply = (await self._alone([args], how.repeat))[0]
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def call_block_alone(self, commands: Sequence[tuple[Any, ...]]) -> list[Reply]:
        """As ``call_block``, on a connection that nobody else uses meanwhile."""
        return await self._alone(commands, False)

    async def _alone(self, commands: Sequence[tuple[Any, ...]], repeat: bool) -> list[Reply]:
        raw = b"".join([pack(command) for command in commands])
        waits = [longest_wait_seconds(command) for command in commands]
        # Who may wait forever relies on keep-alive; who said how long is not left waiting by a dead connection.
        most = None if None in waits else sum(filter(None, waits)) + self.settings.command_timeout_seconds
        deadline = asyncio.get_running_loop().time() + self.settings.outage_seconds
        pause = FIRST_PAUSE_SECONDS
        losses = 0
        while True:
            async with self._dedicated.borrow() as connection:
                started = asyncio.get_running_loop().time()
                error: Exception | None
                try:
                    async with asyncio.timeout(most):
                        answers = await connection.send_block(raw, len(commands))
                    error = self._refusal(answers, connection)
                    if error is None:
                        await replicate_taken(connection, raw, answers)
                        return answers
                except TimeoutError:
                    error = AnswerLost(f"the answer was lost: nothing came for {most:g} s")
                except (NotSent, AnswerLost) as problem:
                    error = problem
            if asyncio.get_running_loop().time() - started > self.settings.outage_seconds / 2:
                # It waited in peace and was sent away: the trouble begins only now.
                deadline = asyncio.get_running_loop().time() + self.settings.outage_seconds
            losses += isinstance(error, AnswerLost)
            pause = await self._before_next_try(error, connection, repeat and losses < MOST_REPEATS, pause, deadline)

    def _plan(self, args: tuple[Any, ...]) -> Plan:
        name = args[0] if isinstance(args[0], str) else bytes(args[0]).decode("latin-1")
        how = plan(name, {str(key).upper(): value for key, value in self.response_callbacks.items()})
        if len(name.split()) <= 2:  # a whole command in one string would make the table grow without end
            self._plans[args[0]] = how
        return how

    def set_response_callback(self, command: str, callback: Any) -> None:
        super().set_response_callback(command, callback)
        self._plans.clear()

    # -- many commands ----------------------------------------------------------------------------------------------

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        """Commands that leave together; with ``transaction`` as one MULTI block. An ``Executor`` like the client."""
        return Pipeline(self, transaction)

    def client(self) -> redis.asyncio.Redis:
        """A plain redis-py client with a connection of its own, for code that must own its connection."""
        return redis.asyncio.Redis(connection_pool=self.connection_pool, single_connection_client=True)

    def __del__(self, *args: Any, **kwargs: Any) -> None:
        """redis-py would warn of its pool here; a wire that is not closed says so itself."""


def says_demoted(answer: Reply) -> bool:
    """A write was refused, or a blocked command was set free, because the server became a replica."""
    return isinstance(answer, redis.exceptions.ReadOnlyError) or (
        isinstance(answer, redis.exceptions.ResponseError) and str(answer).startswith("UNBLOCKED force unblock")
    )


def refusal_of(replies: list[Reply], kinds: tuple[type[Exception], ...] = NOT_YET) -> Exception | None:
    """Why no part of a block was run: the server cannot run any command yet. ``None`` if something may have run."""
    refused = [reply for reply in replies if isinstance(reply, kinds)]
    if not refused:
        return None
    if len(refused) == len(replies):
        return refused[0]
    # One transaction from the first command to the last that was aborted as a whole.
    inside = all(isinstance(reply, Exception) or reply == b"QUEUED" for reply in replies[1:-1])
    aborted = replies[0] == b"OK" and isinstance(replies[-1], redis.exceptions.ExecAbortError)
    return refused[0] if inside and aborted else None

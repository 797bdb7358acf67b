"""Commands that leave together, in redis-py's idiom and as an ``Executor`` for typed access."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import redis.exceptions
from redis.asyncio.client import Pipeline as RedisPipeline
from redis.client import EMPTY_RESPONSE

from keystead.engine.commands import (
    BLOCKING,
    MAY_BLOCK,
    NOT_FOR_CALLBACKS,
    OWN_PIPELINE,
    REPEATABLE,
    STATEFUL,
    blocks,
    full_name,
    wait_for,
    writes,
)
from keystead.engine.failures import AnswerLost, LoginRefused, NotReplicated, ServerAway
from keystead.engine.scripts import Script
from keystead.engine.wire import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS
from keystead.errors import DeclarationError, Invalid
from keystead.keys.executor import Argument, Command, Reply
from keystead.keys.layout import Layout

if TYPE_CHECKING:
    from keystead.engine.client import Valkey

T = TypeVar("T")
_UNSET = object()


class Pending(Generic[T]):
    """A value that is there once its pipeline was executed. Awaiting it earlier is a mistake and says so."""

    __slots__ = ("_error", "_value")

    def __init__(self) -> None:
        self._value: object = _UNSET
        self._error: Exception | None = None

    @property
    def settled(self) -> bool:
        return self._error is not None or self._value is not _UNSET

    def settle(self, value: T) -> None:
        self._value = value

    def fail(self, error: Exception) -> None:
        self._error = error

    def __await__(self) -> Generator[None, None, T]:
        if self._error is not None:
            raise self._error
        if self._value is _UNSET:
            raise DeclarationError("the pipeline was not executed yet: await its execute() first")
        return self._value  # type: ignore[return-value]
        yield


class Pipeline(RedisPipeline):
    """A redis-py pipeline whose commands travel over the shared wire as one block.

    After WATCH, or when it holds a blocking command or WAIT, it uses a connection of its own. A lost reply is never
    repeated unless every command in it is a read.
    """

    def __init__(self, valkey: "Valkey", transaction: bool) -> None:
        super().__init__(valkey.connection_pool, valkey.response_callbacks, transaction, None)
        self._valkey = valkey
        # Index in the command stack -> who waits for the reply there, and how many commands belong to it.
        self._takers: dict[int, tuple[Pending[Any], Callable[[Any], Any], int]] = {}
        self._repeatable: set[int] = set()
        self._scripts_at: dict[int, Script] = {}

    @property
    def layout(self) -> Layout:
        return self._valkey.layout

    @property
    def _atomic(self) -> bool:
        return bool(self.is_transaction or self.explicit_transaction)

    # -- the Executor seam ------------------------------------------------------------------------------------------

    def run(self, command: Command, decode: Callable[[Reply], T], *, repeat: bool = False) -> Awaitable[T]:
        if self.watching and not self.explicit_transaction:
            return self._run_now(command, decode)
        pending: Pending[T] = Pending()
        self._takers[len(self.command_stack)] = pending, decode, 0
        if repeat:
            self._repeatable.add(len(self.command_stack))
        self.command_stack.append((command, {}))  # type: ignore[arg-type]
        return pending

    def run_block(
        self, commands: Sequence[Command], decode: Callable[[list[Reply]], T], *, repeat: bool = False
    ) -> Awaitable[T]:
        if self.watching and not self.explicit_transaction:
            raise DeclarationError("after WATCH call multi() first, then write")
        pending: Pending[T] = Pending()
        start = len(self.command_stack)
        block = list(commands) if self._atomic else [("MULTI",), *commands, ("EXEC",)]
        self._takers[start] = pending, decode, len(block)
        self.command_stack.extend((command, {}) for command in block)  # type: ignore[misc]
        if repeat:
            self._repeatable.update(range(start, start + len(block)))
        return pending

    def run_script(self, script: Script, rest: tuple[Argument, ...], decode: Callable[[Reply], T]) -> Awaitable[T]:
        """Queue a script. Inside a transaction its text travels along: a missing script would break the whole."""
        repeat = script.header.repeat
        if self._atomic or self.watching:
            return self.run(("EVAL", script.text, *rest), decode, repeat=repeat)
        self._scripts_at[len(self.command_stack)] = script
        return self.run(("EVALSHA", script.sha, *rest), decode, repeat=repeat)

    def _with_texts(self, stack: Any) -> Any:
        """Send the text where the server may not have it yet: commands of a pipeline run in their order."""
        sent = set(self._valkey.loaded_scripts)
        stack = list(stack)
        for index, script in self._scripts_at.items():
            if script.sha not in sent:
                sent.add(script.sha)
                stack[index] = ("EVAL", script.text, *stack[index][0][2:]), stack[index][1]
        return stack

    async def _run_missing(self, stack: Any, scripts: dict[int, Script], replies: list[Reply]) -> None:
        """Only after someone flushed the server's scripts: give the text again; those calls run after the rest."""
        loaded = self._valkey.loaded_scripts
        for index, script in scripts.items():
            loaded.add(script.sha)
            if isinstance(replies[index], redis.exceptions.NoScriptError):
                rest = stack[index][0][2:]
                try:
                    replies[index] = await self._valkey.call(("EVAL", script.text, *rest), repeat=script.header.repeat)
                except redis.exceptions.RedisError as error:  # the others have run and have their answers
                    replies[index] = error

    async def _run_now(self, command: Command, decode: Callable[[Reply], T]) -> T:
        connection = self._own_connection()
        async with self._in_time():
            await connection.send_command(*command)
            reply = await connection.read_response()
        await self._replicated(connection, [command])
        return decode(reply)

    @property
    def _patience_seconds(self) -> float:
        """How long WATCH waits for a server that is away."""
        return self._valkey.settings.outage_seconds

    async def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_seconds
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                async with self._in_time():
                    reply = await super().immediate_execute_command(*args, **options)  # type: ignore[no-untyped-call]
                await self._replicated(self.connection, [args])
                return reply
            except ServerAway:
                # Raised only before anything is watched: the pooled connection was stale, or the server is away.
                if loop.time() + pause > deadline:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        """redis-py's connection waits forever by itself, and has errors of its own for a server that is away."""
        try:
            async with asyncio.timeout(self._valkey.settings.command_timeout_seconds):
                yield
        except redis.exceptions.AuthenticationError as error:
            raise LoginRefused(f"the connection of its own that WATCH needs was refused: {error}") from error
        except (TimeoutError, OSError, redis.exceptions.ConnectionError, redis.exceptions.TimeoutError) as error:
            kind = AnswerLost if self.watching else ServerAway
            self.watching = False  # a new connection watches nothing
            if self.connection is not None:
                await self.connection.disconnect(nowait=True)
            reason = str(error) or f"no answer for {self._valkey.settings.command_timeout_seconds:g} s"
            raise kind(f"the connection of its own that WATCH needs is gone: {reason}") from error

    async def reset(self) -> None:  # type: ignore[override]
        if self.connection is None:  # nothing to give back, as nearly always
            self.command_stack, self.scripts = [], set()
            self.watching = self.explicit_transaction = False
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._valkey.settings.command_timeout_seconds):
                await super().reset()  # type: ignore[no-untyped-call]

    # -- execution --------------------------------------------------------------------------------------------------

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        stack, takers, repeatable = self.command_stack, self._takers, self._repeatable
        try:
            if self.scripts:
                await self._load_scripts()
            if self.watching or self.connection is not None:
                raw = await self._execute_watched(stack)
            elif not stack:
                return []
            else:
                raw = await self._execute_shared(self._with_texts(stack), repeatable)
                await self._run_missing(stack, self._scripts_at, raw)
            return self._hand_out(stack, takers, raw, raise_on_error)
        except Exception as error:
            for pending, _, _ in takers.values():
                if not pending.settled:
                    pending.fail(error)
            raise
        finally:
            self._takers, self._repeatable, self._scripts_at = {}, set(), {}
            await self.reset()

    async def _execute_shared(self, stack: Any, repeatable: set[int]) -> list[Reply]:
        commands = [args for args, _ in stack]
        names = [full_name(args).upper() for args in commands]
        self._refuse_stateful(names)
        waits = any(
            name in OWN_PIPELINE or name in BLOCKING or (name in MAY_BLOCK and blocks(args))
            for name, args in zip(names, commands, strict=True)
        )
        if self._atomic:
            commands = [("MULTI",), *commands, ("EXEC",)]
        if waits:
            replies = await self._valkey.call_block_alone(commands)
        else:
            repeat = all(index in repeatable or name in REPEATABLE for index, name in enumerate(names))
            replies = await self._valkey.call_block(commands, repeat=repeat)
        return self._inside(replies) if self._atomic else replies

    def _refuse_stateful(self, names: list[str]) -> None:
        if not any(name in STATEFUL or name.partition(" ")[0] in STATEFUL for name in names):
            return
        ours = {place for start, (_, _, length) in self._takers.items() for place in range(start, start + length)}
        for place, name in enumerate(names):
            if (name in STATEFUL or name.partition(" ")[0] in STATEFUL) and place not in ours:
                raise Invalid(f"{name} would change the connection that all tasks share; it cannot go into a pipeline")

    def _inside(self, replies: list[Reply]) -> list[Reply]:
        """The replies within MULTI and EXEC; a command the server refused to queue raises its own error."""
        for number, reply in enumerate(replies[1:-1], 1):
            if isinstance(reply, redis.exceptions.ResponseError):
                self.annotate_exception(reply, number, self.command_stack[number - 1][0])
                raise reply
        outcome = replies[-1]
        if isinstance(outcome, Exception):
            raise outcome
        if outcome is None:
            raise redis.exceptions.WatchError("a watched key changed")
        result: list[Reply] = outcome
        return result

    async def _execute_watched(self, stack: Any) -> list[Reply]:
        connection = self._own_connection()
        commands = [("MULTI",), *(args for args, _ in stack), ("EXEC",)] if self._atomic else [a for a, _ in stack]
        replies: list[Reply] = []
        async with self._in_time():
            await connection.send_packed_command(connection.pack_commands(commands))
            for _ in commands:
                try:
                    replies.append(await connection.read_response())
                except redis.exceptions.ResponseError as error:
                    replies.append(error)
        if replies and replies[-1] is not None and not isinstance(replies[-1], Exception):
            await self._replicated(connection, commands)
        self.watching = False
        return self._inside(replies) if self._atomic else replies

    async def _replicated(self, connection: Any, commands: Sequence[Any]) -> None:
        """What the shared connection does by itself: ask whether the replicas have what was written."""
        settings = self._valkey.settings
        if not settings.replicas or not any(writes(_first_word(command)) for command in commands):
            return
        seconds, found = settings.replicas_timeout_seconds, None
        async with self._in_time():
            await connection.send_command(*wait_for(settings.replicas, seconds))
            try:
                found = await connection.read_response()
            except redis.exceptions.ResponseError as error:
                found = error
        if not isinstance(found, int) or found < settings.replicas:
            raise NotReplicated.by(found, settings.replicas, seconds)

    def _own_connection(self) -> Any:
        return self.connection

    async def _load_scripts(self) -> None:
        """redis-py's own Script objects, used in a pipeline, must be on the server before the block leaves."""
        for script in list(self.scripts):
            script.sha = await self._valkey.script_load(script.script)

    def _hand_out(self, stack: Any, takers: Any, raw: list[Reply], raise_on_error: bool) -> list[Any]:
        """Give each command's reply to whoever asked, in the shape they asked for."""
        results: list[Any] = []
        first_error: Exception | None = None
        index = 0
        while index < len(raw):
            if index in takers:
                pending, decode, length = takers[index]
                try:
                    value = decode(self._block_replies(raw[index : index + length]) if length else _raised(raw[index]))
                    pending.settle(value)
                except Exception as error:  # the caller's own decoder may raise anything; it belongs to this value
                    pending.fail(error)
                    first_error = first_error or error
                    value = error
                results.append(value)
                index += max(length, 1)
                continue
            args, options = stack[index]
            reply = raw[index]
            if isinstance(reply, redis.exceptions.ResponseError) and EMPTY_RESPONSE in options:
                reply = options[EMPTY_RESPONSE]
            elif isinstance(reply, Exception):
                if first_error is None and raise_on_error:
                    self.annotate_exception(reply, index + 1, args)
                first_error = first_error or reply
            else:
                callback = self.response_callbacks.get(args[0])
                if callback is not None:
                    kept = {name: value for name, value in options.items() if name not in NOT_FOR_CALLBACKS}
                    reply = callback(reply, **kept)
            results.append(reply)
            index += 1
        if raise_on_error and first_error is not None:
            raise first_error
        return results

    def _block_replies(self, replies: list[Reply]) -> list[Reply]:
        if not self._atomic:
            replies = self._inside_block(replies)
        for reply in replies:
            _raised(reply)
        return replies

    @staticmethod
    def _inside_block(replies: list[Reply]) -> list[Reply]:
        for reply in replies:
            _raised(reply)
        result: list[Reply] = replies[-1]
        return result


def _raised(reply: Reply) -> Reply:
    if isinstance(reply, Exception):
        raise reply
    return reply


def _first_word(command: Command) -> bytes:
    return full_name(command).partition(" ")[0].encode()

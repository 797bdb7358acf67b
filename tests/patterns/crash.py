"""A process that dies between any two commands.

``crash_points`` runs an operation again and again against a fresh state, each time dying one command later, before or
after that command reached the server, until the operation runs to its end. What the server then holds is exactly what
a killed process leaves behind.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from keystead.engine import Valkey
from keystead.engine.scripts import Script
from keystead.keys import Layout
from keystead.settings import ValkeySettings


class Died(BaseException):
    """The process is gone. Not an ``Exception``: no handler of the code under test may save it."""


class Mortal:
    """A client that dies at its ``at``-th call: before the call is sent, or with ``after`` when it was applied."""

    def __init__(self, valkey: Valkey, at: int, *, after: bool) -> None:
        self._valkey = valkey
        self._left = at
        self._after = after
        self.dead = False

    @property
    def layout(self) -> Layout:
        return self._valkey.layout

    @property
    def settings(self) -> ValkeySettings:
        return self._valkey.settings

    @property
    def lanes(self) -> tuple["Mortal", ...]:
        return (self,)

    def lane(self, number: int) -> "Mortal":
        return self

    def lane_for(self, text: str) -> "Mortal":
        return self

    def lanes_of(self, declared: Any) -> tuple["Mortal", ...]:
        return (self,)

    def run(self, command: Any, decode: Callable[[Any], Any], *, repeat: bool = False) -> Awaitable[Any]:
        return self._mortally(lambda: self._valkey.run(command, decode, repeat=repeat))

    def run_block(
        self, commands: Sequence[Any], decode: Callable[[Any], Any], *, repeat: bool = False
    ) -> Awaitable[Any]:
        return self._mortally(lambda: self._valkey.run_block(commands, decode, repeat=repeat))

    def run_script(self, script: Script, rest: tuple[Any, ...], decode: Callable[[Any], Any]) -> Awaitable[Any]:
        return self._mortally(lambda: self._valkey.run_script(script, rest, decode))

    async def _mortally(self, call: Callable[[], Awaitable[Any]]) -> Any:
        if self.dead:
            raise Died
        self._left -= 1
        if self._left == 0:
            self.dead = True
            if self._after:
                await call()
            raise Died
        return await call()


async def crash_points(valkey: Valkey, most: int = 200) -> AsyncIterator[Mortal]:
    """Clients that die ever later. Stop iterating when one survived the operation (``not mortal.dead``)."""
    for at in range(1, most):
        for after in (False, True):
            yield Mortal(valkey, at, after=after)
    raise AssertionError(f"the operation did not end within {most} calls")

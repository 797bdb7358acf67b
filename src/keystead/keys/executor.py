"""What typed access asks of a connection. The engine's client and its pipelines both offer it.

This seam keeps the registry free of input and output: an accessor builds a command and says how to read its reply;
whoever executes it decides when it leaves.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from keystead.keys.layout import Layout

T = TypeVar("T")

Argument = str | bytes | int | float
Command = tuple[Argument, ...]
# A reply as RESP3 has it: bytes, int, float, bool, None, list, dict, set; never an exception.
Reply = Any


class Executor(Protocol):
    """A connection or a pipeline.

    On a connection the command leaves when the returned value is awaited. On a pipeline it is queued at once, and
    the returned value may be awaited after the pipeline was executed.
    """

    @property
    def layout(self) -> Layout: ...

    def run(self, command: Command, decode: Callable[[Reply], T], *, repeat: bool = False) -> Awaitable[T]:
        """Execute one command. ``repeat`` declares that running it twice does no harm, so a lost reply is retried."""
        ...

    def run_block(
        self, commands: Sequence[Command], decode: Callable[[list[Reply]], T], *, repeat: bool = False
    ) -> Awaitable[T]:
        """Execute commands of one slot as one MULTI block: all or none, nothing in between."""
        ...

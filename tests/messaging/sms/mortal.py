"""A process that dies between any two calls to the server, or to the provider."""

from collections.abc import Awaitable, Callable
from typing import Any

from keystead.engine import Valkey

from ...patterns.crash import Died


class Fate:
    """Strikes at the ``at``-th call, before it is made or after it was; then no later call is made."""

    def __init__(self, at: int, *, after: bool) -> None:
        self._at, self._after = at, after
        self.calls = 0
        self.struck = False

    def over(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def wrapped(*args: Any, **options: Any) -> Any:
            if self.struck:
                raise Died
            self.calls += 1
            strikes = self.calls == self._at
            if strikes and not self._after:
                self.struck = True
                raise Died
            reply = await call(*args, **options)
            if strikes or self.struck:
                self.struck = True
                raise Died
            return reply

        return wrapped

    def of(self, valkey: Valkey) -> Valkey:
        """Let the fate rule all calls of this client."""
        for name in ("call", "call_block", "call_block_alone", "_run_script"):
            setattr(valkey, name, self.over(getattr(valkey, name)))
        made = valkey.pipeline

        def pipeline(transaction: bool = True, shard_hint: str | None = None) -> Any:
            found = made(transaction, shard_hint)
            found.execute = self.over(found.execute)  # type: ignore[method-assign]
            return found

        valkey.pipeline = pipeline  # type: ignore[method-assign]
        return valkey

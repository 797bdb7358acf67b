"""A client that dies between any two exchanges with the server, pipelines included."""

from collections.abc import AsyncIterator
from typing import Any

from keystead.engine import Valkey
from keystead.engine.failures import AnswerLost, ServerAway
from tests.patterns.crash import Died, Mortal

__all__ = ["Died", "ForgetfulClient", "MortalClient", "has_died", "lives"]


class MortalClient(Mortal):
    """Dies at its ``at``-th exchange: before it is sent, or ``after`` it was applied."""

    def pipeline(self, transaction: bool = True) -> Any:
        pipeline: Any = self._valkey.pipeline(transaction=transaction)
        execute = pipeline.execute
        pipeline.execute = lambda *given, **more: self._mortally(lambda: execute(*given, **more))
        return pipeline

    def __getattr__(self, name: str) -> Any:
        return getattr(self._valkey, name)


async def lives(valkey: Valkey, most: int = 120) -> AsyncIterator[MortalClient]:
    """Clients that die ever later. Stop iterating when one survived (``not mortal.dead``)."""
    for at in range(1, most):
        for after in (False, True):
            yield MortalClient(valkey, at, after=after)
    raise AssertionError(f"the operation did not end within {most} exchanges")


def has_died(error: BaseException) -> bool:
    """Whether this is a death, alone or among what else ended with it."""
    if isinstance(error, BaseExceptionGroup):
        return any(has_died(each) for each in error.exceptions)
    return isinstance(error, Died)


class ForgetfulClient(MortalClient):
    """Loses one exchange instead of dying: it never left, or (``after``) its answer was lost on the way."""

    async def _mortally(self, call: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            self.dead = True
            if self._after:
                await call()
                raise AnswerLost("the answer was lost")
            raise ServerAway("the server is away")
        return await call()

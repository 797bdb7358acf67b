"""Following whichever server the sentinels call the primary."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import redis.exceptions
from redis.asyncio.connection import Connection as RedisConnection
from redis.asyncio.connection import ConnectionPool

from keystead.engine.commands import pack
from keystead.engine.connect_pool import TlsConnection, redis_options
from keystead.engine.endpoint import Endpoint, open_connection
from keystead.engine.failures import LoginRefused, NotSent, ServerAway
from keystead.errors import Unavailable
from keystead.settings import ValkeySettings

Find = Callable[[], Awaitable[Endpoint]]


def primary_finder(sentinels: list[Endpoint], name: str, like: Endpoint, settings: ValkeySettings) -> Find:
    """Asks the sentinels, one after another, where the primary called ``name`` is; logs in there as ``like`` says.

    The sentinel that answered is asked first the next time. Raises ``ServerAway`` with every sentinel's reason.
    """
    order = list(sentinels)
    question = pack(("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name))

    async def ask(sentinel: Endpoint) -> Endpoint:
        connection = await open_connection(sentinel, settings, on_lost=lambda *_: None)
        try:
            answer = await connection.send(question)
        except redis.exceptions.ResponseError as error:
            if "unknown command" in str(error).lower():
                raise ServerAway(f"{sentinel.display} is no sentinel: give the sentinels' own addresses") from error
            raise ServerAway(f"{sentinel.display}: {error}") from error
        except NotSent as error:
            raise ServerAway(f"{sentinel.display} closed the connection") from error
        finally:
            connection.abort("was asked for the primary only")
        if answer is None:
            raise ServerAway(f"{sentinel.display} knows no primary called {name}; check the name in the URL")
        host = answer[0].decode()
        return replace(like, host=host, port=int(answer[1]), tls_host=host)

    async def find() -> Endpoint:
        problems: list[Unavailable] = []
        for sentinel in list(order):
            try:
                endpoint = await ask(sentinel)
            except Unavailable as error:
                problems.append(error)
                continue
            order.remove(sentinel)
            order.insert(0, sentinel)
            return endpoint
        reasons = "; ".join(dict.fromkeys(str(problem) for problem in problems))
        if all(isinstance(problem, LoginRefused) for problem in problems):
            raise LoginRefused(f"the sentinels do not let us in: {reasons}")
        raise ServerAway(f"no sentinel named a primary: {reasons}")

    return find


def following_pool(find: Find, like: Endpoint) -> ConnectionPool:
    """redis-py's own pool whose connections, for WATCH and ``pubsub()``, go wherever the primary is when they open."""
    options = redis_options(like)
    if like.tls is not None:
        return ConnectionPool(connection_class=_FollowingTlsConnection, find=find, context=like.tls, **options)
    return ConnectionPool(connection_class=_FollowingConnection, find=find, **options)


class _Following:
    """Asks for the primary before it connects, and gives a demoted one up."""

    host: str
    port: int
    _find: Find

    async def _connect(self) -> None:
        endpoint = await self._find()
        self.host, self.port = endpoint.host, endpoint.port
        await super()._connect()  # type: ignore[misc]

    async def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().read_response(*args, **options)  # type: ignore[misc]
        except redis.exceptions.ReadOnlyError:
            await self.disconnect()  # type: ignore[attr-defined]
            raise


class _FollowingConnection(_Following, RedisConnection):
    def __init__(self, *, find: Find, **options: Any) -> None:
        super().__init__(**options)
        self._find = find


class _FollowingTlsConnection(_Following, TlsConnection):
    def __init__(self, *, find: Find, **options: Any) -> None:
        super().__init__(**options)
        self._find = find

"""redis-py's own connections, for the few things that stay its own: WATCH, ``pubsub()`` and ``client()``."""

import ssl
from typing import Any

from redis.asyncio.connection import Connection as RedisConnection
from redis.asyncio.connection import ConnectionPool, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from keystead.engine.endpoint import Endpoint

_POOL_CONNECTIONS = 10_000  # redis-py's default would refuse the 101st caller


def redis_pool(endpoint: Endpoint) -> ConnectionPool:
    """redis-py's own pool for one server, without its retries: they would apply a lost command twice."""
    common = redis_options(endpoint)
    if endpoint.path is not None:
        return ConnectionPool(connection_class=UnixDomainSocketConnection, path=endpoint.path, **common)
    if endpoint.tls is not None:
        return ConnectionPool(
            connection_class=TlsConnection, host=endpoint.host, port=endpoint.port, context=endpoint.tls, **common
        )
    return ConnectionPool(connection_class=RedisConnection, host=endpoint.host, port=endpoint.port, **common)


def redis_options(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "username": endpoint.username,
        "password": endpoint.password,
        "db": endpoint.db,
        "client_name": endpoint.client_name,
        "socket_timeout": None,  # redis-py's five seconds would cut long blocking reads
        "retry": Retry(NoBackoff(), 0),
        "max_connections": _POOL_CONNECTIONS,
    }


class TlsConnection(SSLConnection):
    """redis-py's TLS connection with the context that the wire uses, so both check the same things."""

    def __init__(self, *, context: ssl.SSLContext, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._context = context

    def _connection_arguments(self) -> dict[str, Any]:
        return {**super()._connection_arguments(), "ssl": self._context}

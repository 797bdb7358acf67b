"""PostgreSQL as we use it: asyncpg, read committed for writing, one snapshot for reading."""

import socket
from asyncio.trsock import TransportSocket
from typing import Final, cast

import asyncpg
from sqlalchemy import event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

CONNECTIONS: Final = 10
MORE_CONNECTIONS: Final = 10
CONNECT_SECONDS: Final = 10
STATEMENT_SECONDS: Final = 300
# A server whose machine is gone without a word is given up after half a minute, however long a statement may take.
SILENCE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}


def engines(dsn: str, wait_seconds: float) -> tuple[AsyncEngine, AsyncEngine]:
    """One for writing and one for reading, over the same connections."""

    async def connect() -> asyncpg.Connection:
        connection = await asyncpg.connect(
            dsn, timeout=CONNECT_SECONDS, command_timeout=STATEMENT_SECONDS,
            server_settings={"application_name": "keystead"},
        )
        try:
            notice_silence(connection._transport.get_extra_info("socket"))
            # Not among the settings above: a pooler in between refuses those that it does not know.
            await connection.execute(f"SET lock_timeout = {round(wait_seconds * 1000)}")
        except BaseException:
            connection.terminate()
            raise
        return connection

    writing = create_async_engine(
        "postgresql+asyncpg://", async_creator=connect, isolation_level="READ COMMITTED", hide_parameters=True,
        pool_size=CONNECTIONS, max_overflow=MORE_CONNECTIONS, pool_timeout=wait_seconds, pool_use_lifo=True,
    )

    @event.listens_for(writing.sync_engine, "checkout")
    def is_open(connection: object, record: ConnectionPoolEntry, proxy: PoolProxiedConnection) -> None:
        # After a restart of the server the idle connections are known to be closed; no round trip is needed to see it.
        if cast(asyncpg.Connection, record.driver_connection).is_closed():
            raise DisconnectionError

    reading = writing.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return writing, reading


def notice_silence(wire: TransportSocket) -> None:
    """Let the system ask the other side for signs of life. The driver alone would wait for the whole time-out."""
    if wire.family not in (socket.AF_INET, socket.AF_INET6):
        return
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in SILENCE.items():
        if hasattr(socket, name):
            wire.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

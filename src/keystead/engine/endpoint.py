"""Where one server listens and how to log in there; opening a connection to it."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import redis.exceptions

from keystead.engine.commands import pack
from keystead.engine.connection import Connection, Reply
from keystead.engine.failures import AnswerLost, LoginRefused, NotSent, ServerAway, ServerTooOld
from keystead.engine.replicated import ReplicatedConnection
from keystead.settings import ValkeySettings

OLDEST = {"valkey": 8, "redis": 7}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server: a host and port, or the path of a socket."""

    host: str = "127.0.0.1"
    port: int = 6379
    path: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    db: int = 0
    client_name: str | None = None
    tls: ssl.SSLContext | None = None
    tls_host: str | None = None
    must_be_primary: bool = False
    # For those who only look: any server that speaks RESP3 will do, and a replica in a cluster answers for its slots.
    only_looks: bool = False

    @property
    def display(self) -> str:
        return self.path or f"{self.host}:{self.port}"


async def open_connection(
    endpoint: Endpoint,
    settings: ValkeySettings,
    *,
    on_lost: Callable[[Connection, str], None],
    on_push: Callable[[list[Reply]], None] | None = None,
    replicas: int = 0,
) -> Connection:
    """Connect and log in. Refuses a server that is loading, too old, or does not let us in.

    With ``replicas``, a write on the connection is answered when so many of them have it.
    """
    loop = asyncio.get_running_loop()

    def build() -> Connection:
        options: dict[str, Any] = {
            "limit_bytes": settings.in_flight_bytes,
            "timeout_seconds": settings.command_timeout_seconds,
            "on_lost": on_lost,
            "on_push": on_push,
        }
        if replicas:
            seconds = settings.replicas_timeout_seconds
            return ReplicatedConnection(loop, replicas=replicas, seconds=seconds, **options)
        return Connection(loop, **options)

    connection: Connection | None = None
    try:
        async with asyncio.timeout(settings.connect_timeout_seconds):
            if endpoint.path is not None:
                _, connection = await loop.create_unix_connection(build, endpoint.path)
            else:
                transport, connection = await loop.create_connection(
                    build,
                    endpoint.host,
                    endpoint.port,
                    ssl=endpoint.tls,
                    server_hostname=(endpoint.tls_host or endpoint.host) if endpoint.tls else None,
                )
                _keep_alive(transport.get_extra_info("socket"))
            await _log_in(connection, endpoint)
    except TimeoutError as error:
        _drop(connection)
        hint = "; is TLS spoken on this port? redis:// goes without" if endpoint.tls and connection is None else ""
        raise ServerAway(
            f"{endpoint.display} did not answer within {settings.connect_timeout_seconds:g} s{hint}"
        ) from error
    except ssl.SSLError as error:
        raise ServerAway(f"{endpoint.display}: the TLS handshake failed: {error.reason or error}") from error
    except (OSError, UnicodeError) as error:
        _drop(connection)
        reason = getattr(error, "strerror", None) or error
        raise ServerAway(f"{endpoint.display} cannot be reached: {reason}") from error
    except (AnswerLost, NotSent) as error:
        reason = connection.closed_because if connection is not None else error
        hint = "" if endpoint.tls or endpoint.path else "; if TLS is spoken on this port, use rediss://"
        raise ServerAway(f"{endpoint.display} could not be logged in to: {reason}{hint}") from error
    except BaseException:
        _drop(connection)
        raise
    return connection


def _drop(connection: Connection | None) -> None:
    if connection is not None:
        connection.abort("log-in failed")


def _keep_alive(sock: socket.socket | None) -> None:
    """Ask the kernel to notice a peer that vanished while nothing was being said."""
    if sock is None:
        return
    wanted = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in wanted.items():
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def _log_in(connection: Connection, endpoint: Endpoint) -> None:
    hello: list[str] = ["HELLO", "3"]
    if endpoint.password is not None:
        hello += ["AUTH", endpoint.username or "default", endpoint.password]
    if endpoint.client_name:
        hello += ["SETNAME", endpoint.client_name]
    try:
        greeting = await connection.send(pack(tuple(hello)))
        if not isinstance(greeting, dict):
            raise ServerTooOld(f"{endpoint.display} does not speak RESP3; Keystead needs Valkey 8 or Redis 7")
        connection.facts = {_text(name): _text(value) for name, value in greeting.items()}
        if not endpoint.only_looks:
            _check_version(connection.facts, endpoint)
        if endpoint.must_be_primary and connection.facts.get("role") not in ("master", "primary"):
            raise ServerAway(f"{endpoint.display} is not the primary any more")
        if endpoint.db:
            await connection.send(pack(("SELECT", endpoint.db)))
        if endpoint.only_looks and connection.facts.get("mode") == "cluster":
            with contextlib.suppress(redis.exceptions.ResponseError):
                await connection.send(pack(("READONLY",)))
        await _ask_whether_ready(connection)
    except (redis.exceptions.AuthenticationError, redis.exceptions.NoPermissionError) as error:
        raise LoginRefused(_refusal(endpoint, error)) from error
    except redis.exceptions.BusyLoadingError as error:
        raise ServerAway(f"{endpoint.display} is still loading its data") from error
    except redis.exceptions.MasterDownError as error:
        raise ServerAway(f"{endpoint.display} is a replica without its primary") from error
    except redis.exceptions.ResponseError as error:
        if "unknown command" in str(error).lower():
            raise ServerTooOld(
                f"{endpoint.display} does not know HELLO: it is older than Redis 6; Keystead needs Valkey 8 or Redis 7"
            ) from error
        raise LoginRefused(f"{endpoint.display} refused the log-in: {error}") from error
    except redis.exceptions.ConnectionError as error:
        if isinstance(error, AnswerLost | ServerAway | ServerTooOld):
            raise
        raise ServerAway(f"{endpoint.display} does not take us in: {error}") from error


async def _ask_whether_ready(connection: Connection) -> None:
    """A server that is loading answers HELLO and refuses PING. A user who may not PING finds out later."""
    with contextlib.suppress(redis.exceptions.NoPermissionError):
        await connection.send(pack(("PING",)))


def _refusal(endpoint: Endpoint, error: Exception) -> str:
    if isinstance(error, redis.exceptions.NoPermissionError):
        return f"{endpoint.display} does not let user {endpoint.username or 'default'} do what log-in needs: {error}"
    if endpoint.password is None:
        return f"{endpoint.display} wants a password; give it in the URL as valkey://user:password@host"
    return (
        f"{endpoint.display} refused user {endpoint.username or 'default'}: {error};"
        " check the user and password in the URL"
    )


def _check_version(facts: dict[str, str], endpoint: Endpoint) -> None:
    name, version = facts.get("server", "redis"), facts.get("version", "0")
    major = version.split(".")[0]
    oldest = OLDEST.get(name)
    if oldest is not None and major.isdigit() and int(major) < oldest:
        raise ServerTooOld(
            f"{endpoint.display} is {name} {version}; Keystead needs Valkey {OLDEST['valkey']} or"
            f" Redis {OLDEST['redis']} or newer, so upgrade the server or name another one"
        )


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)

"""Servers that are not Valkey: they say what a test tells them to, or wrap another server in TLS."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

HELLO = b"%2\r\n$6\r\nserver\r\n$6\r\nvalkey\r\n$7\r\nversion\r\n$5\r\n9.0.0\r\n"
PONG = b"+PONG\r\n"

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(talk: Talk) -> AsyncIterator[str]:
    """A server that runs ``talk`` with each connection; gives its URL."""

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    try:
        yield f"valkey://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def read_command(reader: asyncio.StreamReader) -> list[bytes]:
    count = int((await reader.readuntil(b"\r\n"))[1:])
    words = []
    for _ in range(count):
        size = int((await reader.readuntil(b"\r\n"))[1:])
        words.append((await reader.readexactly(size + 2))[:-2])
    return words


def answering(*answers: bytes) -> Talk:
    """Answer each command of a connection with the next of these, then close."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await read_command(reader)
            writer.write(answer)
            await writer.drain()

    return talk


def make_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """An authority, and a certificate with its key that it signed for 127.0.0.1 and localhost."""
    authority, authority_key = folder / "ca.pem", folder / "ca.key"
    certificate, key, request, extras = (folder / name for name in ("cert.pem", "cert.key", "cert.csr", "extras"))
    # Python 3.13 checks certificates strictly: the authority needs its key usage, the certificate its identifiers.
    extras.write_text(
        "subjectAltName=IP:127.0.0.1,DNS:localhost\nauthorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n"
    )
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for command in (
        ["req", "-x509", *new, "-keyout", authority_key, "-out", authority, "-days", "2", "-subj", "/CN=authority",
         "-addext", "keyUsage=critical,keyCertSign,cRLSign"],
        ["req", *new, "-keyout", key, "-out", request, "-subj", "/CN=localhost"],
        ["x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority_key, "-CAcreateserial", "-out",
         certificate, "-days", "2", "-extfile", extras],
    ):  # fmt: skip
        subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True)
    return authority, certificate, key


@asynccontextmanager
async def tls_before(
    socket_path: Path, certificate: Path, key: Path, authority: Path | None = None
) -> AsyncIterator[int]:
    """A TLS server that passes everything on to the server behind ``socket_path``; gives its port.

    With ``authority`` clients must show a certificate that it signed.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority) if authority else None)
    context.load_cert_chain(certificate, key)
    if authority is not None:
        context.verify_mode = ssl.CERT_REQUIRED

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(socket_path)
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()

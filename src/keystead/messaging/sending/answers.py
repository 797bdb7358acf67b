"""What a provider answers over HTTP, read to its end and not beyond what anybody needs."""

from typing import Protocol


class Body(Protocol):
    """The body of an answer as it arrives, such as ``content`` of an aiohttp response."""

    async def read(self, n: int = -1, /) -> bytes: ...


async def read_body(content: Body, most_bytes: int) -> bytes:
    """The whole body, cut off after ``most_bytes``. One read alone gives only what the network has brought so far."""
    parts: list[bytes] = []
    left = most_bytes
    while left > 0 and (part := await content.read(left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def pause_of(retry_after: str | None, most_seconds: float = 3600.0) -> float:
    """The seconds of a ``Retry-After`` header; 0 without one. One that is given as a date is not worth reading."""
    try:
        seconds = float(retry_after or 0)
    except ValueError:
        return 0.0
    return min(max(0.0, seconds), most_seconds)

"""What a process keeps in memory of what others may change, so that a request asks nobody."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from keystead.errors import Unavailable
from keystead.telemetry import logger

REFRESH_SECONDS: Final = 2.0

_log = logger("edge")


async def keep_refreshed(refresh: Callable[[], Awaitable[None]], what: str) -> None:
    """``refresh`` every ``REFRESH_SECONDS``, for ever. While it cannot, what was known goes on being true.

    All that is kept so is refreshed at the same moments: the process wakes once for it.
    """
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(REFRESH_SECONDS - loop.time() % REFRESH_SECONDS)
        try:
            await refresh()
        except Unavailable as error:
            _log.warning("what others changed is not known for now", what=what, error=str(error))

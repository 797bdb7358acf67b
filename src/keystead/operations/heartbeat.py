"""A sign of life for somebody outside: an address that is called every minute while all is well.

An installation that is dead can tell nobody. Whoever expects these calls, as services that watch over timers do, tells
instead that they stopped.
"""

import asyncio
from typing import Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import KeysteadError
from keystead.jobs import Inspection
from keystead.operations.alerts import Alerts
from keystead.operations.delivery import REQUEST_SECONDS, UNDELIVERED, require_address
from keystead.operations.keys import HEARTBEAT
from keystead.operations.watchers import sql_trouble
from keystead.store import Database
from keystead.telemetry import counts, logger

EVERY_SECONDS: Final = 60.0

counts.describe("heartbeats", "calls of the address of the heartbeat, and those left out because something was wrong")

_log = logger("operations")


class Heartbeat:
    """Calls the address with GET, in one process of an installation, as long as what alerts need is there.

    That is: Valkey takes a write, the database answers, a worker is alive, and no alert stays undelivered. Other
    trouble opens alerts, which then do reach somebody. Redirects are not followed; of the answer only the
    status is read.
    """

    def __init__(
        self, valkey: Valkey, clock: Clock, alerts: Alerts, url: str, database: Database, *,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        require_address(url, "alerts.heartbeat_url")
        self._valkey, self._clock, self._alerts, self._url, self._database = valkey, clock, alerts, url, database
        self._every = every_seconds

    async def run(self) -> None:
        """Call until cancelled."""
        while True:
            await self.beat()
            await asyncio.sleep(self._every / 2)

    async def beat(self) -> bool:
        """Call once, unless another process just did, or something is wrong; says whether the call was taken."""
        try:
            if not await HEARTBEAT.at().lasting(self._every * 0.9).try_raise(self._valkey):
                return False
            wrong = await self._wrong()
        except (KeysteadError, ErrorReply) as error:
            wrong = f"the server: {type(error).__name__}"
        if not wrong:
            wrong = await self._call()
        counts.add("heartbeats", outcome="left out" if wrong else "done")
        if wrong:
            _log.warning("no heartbeat", error=wrong)
        return not wrong

    async def _wrong(self) -> str:
        if said := await sql_trouble(self._database):
            return said
        if not any(worker.alive for worker in await Inspection(self._valkey, self._clock).workers()):
            return "no worker is alive"
        if any(alert.kind == UNDELIVERED for alert in await self._alerts.open()):
            return "alerts do not reach anybody"
        return ""

    async def _call(self) -> str:
        import aiohttp

        limit = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=limit, headers={"User-Agent": "keystead"}) as session,
                session.get(self._url, allow_redirects=False) as answer,
            ):
                return "" if 200 <= answer.status < 300 else f"the address answered with {answer.status}"
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return f"the address cannot be reached: {type(error).__name__}"

"""A sender of texts as they used to be written, to compare ours with: one message after another, behind one lock.

A single run holds the lock of the job. The message at the head of the purgatory is the one that is sent; the next is
moved there when it is done. Around each request the lock of the provider is taken and given back, so that in the whole
installation one request is outstanding at a time. What follows from the answer is written in a second exchange, and the
purgatory advances in a third. Nothing is done that this design could leave out: no look at suppressed numbers, no
intent before the request, no trace. The connection to the provider is kept open.
"""

import asyncio
import json
import secrets
import time

import aiohttp
import redis.asyncio
from redis.asyncio.client import Pipeline

TO_SEND, PURGATORY = "sms:to_send", "sms:send_purgatory"
PENDING = "sms:pending"
JOB_LOCK, PROVIDER_LOCK = "sms:send_job:lock", "twilio:lock"
LOCK_SECONDS, SPIN_SECONDS = 60, 0.1
WAIT_SECONDS = 900
ACCOUNT, SERVICE = "AC" + 32 * "0", "MG" + 32 * "0"

RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""


def text(number: int) -> dict[str, object]:
    """A text as it waits."""
    now = time.time()
    return {
        "aud": "send", "uid": f"bench_sms_{secrets.token_urlsafe(16)}", "initially_queued_at": now, "retry": 0,
        "last_queued_at": now, "phone_number": f"+1555{number:07d}",
        "body": f"Your reminder for today is waiting: https://example.com/l/{number:x}",
        "success_job": {"name": "sms.succeeded", "kwargs": {}}, "failure_job": {"name": "sms.failed", "kwargs": {}},
    }


async def queue(client: "redis.asyncio.Redis", count: int) -> None:
    for first in range(0, count, 1000):
        async with client.pipeline(transaction=True) as together:
            for number in range(first, min(first + 1000, count)):
                together.rpush(TO_SEND, json.dumps(text(number)))
            await together.execute()


class OneAtATime:
    """One run of the job."""

    def __init__(self, client: "redis.asyncio.Redis", session: aiohttp.ClientSession, url: str) -> None:
        self._client, self._session = client, session
        self._url = f"{url}/twilio/2010-04-01/Accounts/{ACCOUNT}/Messages.json"
        self._release = client.register_script(RELEASE)

    async def run(self) -> int:
        """Send everything that waits; says how many texts that were."""
        sent = 0
        mine = secrets.token_hex(8)
        if not await self._client.set(JOB_LOCK, mine, nx=True, ex=LOCK_SECONDS):
            return sent
        raw = await self._client.lindex(PURGATORY, 0) or await self._client.lmove(TO_SEND, PURGATORY, "LEFT", "RIGHT")
        while raw is not None:
            sms = json.loads(raw)
            await self._took(sms, await self._ask(sms))
            raw = await self._advance()
            sent += 1
        await self._release(keys=[JOB_LOCK], args=[mine])
        return sent

    async def _ask(self, sms: dict[str, object]) -> dict[str, object]:
        mine = secrets.token_hex(8)
        while not await self._client.set(PROVIDER_LOCK, mine, nx=True, ex=LOCK_SECONDS):
            await asyncio.sleep(SPIN_SECONDS)
        try:
            form = {"MessagingServiceSid": SERVICE, "To": sms["phone_number"], "Body": sms["body"]}
            async with self._session.post(self._url, data=form) as response:
                found: dict[str, object] = await response.json()
                if response.status != 201:
                    raise SystemExit(f"the provider answered {response.status}")
                return found
        finally:
            await self._release(keys=[PROVIDER_LOCK], args=[mine])

    async def _took(self, sms: dict[str, object], resource: dict[str, object]) -> None:
        """The provider has it: it is awaited from now on, and counted."""
        now, sid = time.time(), str(resource["sid"])
        today = int(now // 86_400)
        async with self._client.pipeline(transaction=True) as together:
            together.zadd(PENDING, {sid: now + WAIT_SECONDS})
            together.hset(f"{PENDING}:{sid}", mapping={
                "aud": "pending", "uid": str(sms["uid"]), "send_initially_queued_at": str(sms["initially_queued_at"]),
                "message_resource_created_at": str(now), "message_resource_last_updated_at": str(now),
                "message_resource_sid": sid, "message_resource_status": str(resource["status"]),
                "message_resource_error_code": "", "message_resource_date_updated": str(resource["date_updated"]),
                "failure_job_last_called_at": "", "num_failures": "0", "num_changes": "0",
                "phone_number": str(sms["phone_number"]), "body": str(sms["body"]),
                "failure_job": json.dumps(sms["failure_job"]), "success_job": json.dumps(sms["success_job"]),
            })
            self._count(together, today, str(resource["status"]))
            await together.execute()

    @staticmethod
    def _count(together: "Pipeline", today: int, status: str) -> None:
        together.hincrby(f"stats:sms_send:daily:{today}", "succeeded_pending", 1)
        together.hincrby(f"stats:sms_send:daily:{today}:extra:succeeded_pending", status, 1)

    async def _advance(self) -> bytes | None:
        async with self._client.pipeline(transaction=True) as together:
            together.lpop(PURGATORY)
            together.lmove(TO_SEND, PURGATORY, "LEFT", "RIGHT")
            _, following = await together.execute()
        found: bytes | None = following
        return found

"""Measure how fast texts go to a provider: ``python -m bench.load.texts keystead --count 10000 --url URL``.

The provider is a process that answers each request after 50 ms. The texts wait before the clock starts; it stops when
the last one is noted as taken by the provider. Ours is one courier with its defaults apart from rate and concurrency:
suppressed numbers are looked up, intents written, every text traced. ``answers`` measures the provider by itself.
"""

import asyncio
import os
import tempfile
import time
from importlib.metadata import version

from bench.load import protocol
from bench.load.provider import providers, run

LATENCY_MS = 50.0
WARM_UP_TEXTS = 200
QUEUED_AT_ONCE = 200
PATIENCE_SECONDS = 240.0


async def ours(url: str, provider_url: str, count: int, concurrency: int, workers: int) -> dict[str, float]:
    from keystead.clock import SystemClock
    from keystead.engine import connect
    from keystead.jobs import JobBook
    from keystead.members import Suppression
    from keystead.messaging.sms import Sms, Suppressed, TwilioGateway
    from keystead.messaging.sms.jobs import SmsWorkers
    from keystead.messaging.sms.keys import PENDING, SENDING
    from keystead.settings import MessagingSettings, SmsSettings
    from keystead.store import Database, SqlOutbox

    valkey, clock = await connect(url), SystemClock()
    settings = SmsSettings(url=f"{provider_url}/twilio", concurrent_requests=concurrency, rate_per_second=0.0)
    sms = Sms(valkey, clock)

    async def queue(texts: int) -> None:
        for first in range(0, texts, QUEUED_AT_ONCE):
            await asyncio.gather(*(
                sms.queue(f"+1555{2_000_000 + number}", f"Your reminder is waiting: https://example.com/l/{number:x}")
                for number in range(first, min(first + QUEUED_AT_ONCE, texts))
            ))

    async def drained(texts: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await PENDING.index.size(valkey) < texts:
                await asyncio.sleep(0.01)

    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        file = f"sqlite:///{directory}/bench.sqlite"
        async with Database.open(file) as database, TwilioGateway.open(settings) as way:
            await database.migrate()
            suppression = Suppression(database, SqlOutbox(database, valkey, JobBook(), clock=clock), clock)
            crew = SmsWorkers(valkey, clock, way, suppression, Suppressed(suppression, clock), settings,
                              MessagingSettings())
            stop = asyncio.Event()
            couriers = [asyncio.create_task(crew.courier(way).work(stop)) for _ in range(workers)]
            await queue(WARM_UP_TEXTS)
            await drained(WARM_UP_TEXTS)
            await SENDING.pause(valkey)
            await asyncio.sleep(0.2)
            before = int((await valkey.execute_command("INFO", "memory"))["used_memory"])
            await queue(count)
            after = int((await valkey.execute_command("INFO", "memory"))["used_memory"])
            await SENDING.resume(valkey)
            while await PENDING.index.size(valkey) == WARM_UP_TEXTS:
                await asyncio.sleep(0.001)
            cpu, begin = time.process_time(), time.perf_counter()
            done = await PENDING.index.size(valkey) - WARM_UP_TEXTS
            await drained(WARM_UP_TEXTS + count)
            took, cpu = time.perf_counter() - begin, time.process_time() - cpu
            stop.set()
            await asyncio.gather(*couriers)
    await valkey.aclose()
    return {"per_second": (count - done) / took, "bytes_per_text": (after - before) / count, "cpu_share": cpu / took}


async def one_at_a_time(url: str, provider_url: str, count: int) -> dict[str, float]:
    import aiohttp
    import redis.asyncio

    from bench.load.one_at_a_time import OneAtATime, queue

    client = redis.asyncio.Redis.from_url(url.replace("valkey://", "redis://", 1))
    async with aiohttp.ClientSession() as session:
        sender = OneAtATime(client, session, provider_url)
        await queue(client, min(count, 20))
        await sender.run()
        await queue(client, count)
        cpu, begin = time.process_time(), time.perf_counter()
        sent = await sender.run()
        took, cpu = time.perf_counter() - begin, time.process_time() - cpu
    await client.aclose()
    if sent != count:
        raise SystemExit(f"{sent} of {count} texts were sent")
    return {"per_second": count / took, "cpu_share": cpu / took}


async def answers(provider_url: str, concurrency: int, seconds: float) -> dict[str, float]:
    """How many requests the provider answers, asked by bare connections that cost next to nothing."""
    host, port = provider_url.removeprefix("http://").split(":")
    body = b"To=%2B15552000000&Body=words&MessagingServiceSid=MG0"
    request = b"POST /twilio/x HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    done, open_ = 0, True

    async def ask() -> None:
        nonlocal done
        reader, writer = await asyncio.open_connection(host, int(port))
        while open_:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]))
            done += 1
        writer.close()

    asking = [asyncio.create_task(ask()) for _ in range(concurrency)]
    await asyncio.sleep(0.5)
    before, begin = done, time.perf_counter()
    await asyncio.sleep(seconds)
    rate = (done - before) / (time.perf_counter() - begin)
    open_ = False
    await asyncio.gather(*asking)
    return {"per_second": rate}


async def main() -> None:
    flags = protocol.parser()
    flags.add_argument("sender", choices=("keystead", "one_at_a_time", "answers"))
    flags.add_argument("--count", type=int, default=10_000)
    flags.add_argument("--concurrency", type=int, default=64)
    flags.add_argument("--couriers", type=int, default=1)
    given = flags.parse_args()
    count = max(20, given.count // 50) if given.seconds < 1 else given.count
    with providers(LATENCY_MS) as way:
        if given.sender == "keystead":
            figures = await ours(given.url, way.url, count, given.concurrency, given.couriers)
        elif given.sender == "one_at_a_time":
            figures = await one_at_a_time(given.url, way.url, count)
        else:
            figures = await answers(way.url, given.concurrency, given.seconds)
        seen = way.seen()
    library = "keystead" if given.sender == "keystead" else "redis"
    protocol.answer(figures, {
        "library": f"{library} {version(library)}", "texts": count, "provider": seen, "cores": os.cpu_count(),
    })


if __name__ == "__main__":
    run(main)

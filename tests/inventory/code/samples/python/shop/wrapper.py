import logging

from redis.asyncio import Redis

log = logging.getLogger(__name__)
STARTED = "12:30:05"
HOME = "https://example.org:8080/a:b"


class Kept:
    """Keys with a prefix of the object's own."""

    def __init__(self, redis: Redis, prefix: str) -> None:
        self._redis = redis
        self._prefix = prefix

    def _name(self, name: str) -> str:
        return f"{self._prefix}:{name}"

    async def put(self, name: str, value: str, seconds: int = 300) -> None:
        log.info("put: %s", name)
        await self._redis.set(self._name(name), value, ex=seconds)

    async def take(self, key: str) -> str | None:
        return await self._redis.getdel(key)


async def run(redis: Redis, user_id: str, anything: str) -> None:
    profiles = Kept(redis, "profile")
    await profiles.put(user_id, "x")
    await profiles.take(f"ticket:{user_id}")
    async with redis.lock(f"lock:profile:{user_id}", timeout=10):
        pass
    await redis.get(anything)
    await redis.execute_command("SADD", "members:" + user_id, 1)
    await redis.xadd("events", {"a": "b"}, maxlen=1000)

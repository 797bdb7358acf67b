from collections.abc import Iterator

import pytest

from .old_redis import OldRedis


@pytest.fixture(scope="session")
def old_redis_server() -> Iterator[OldRedis]:
    server = OldRedis()
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def old_redis(old_redis_server: OldRedis) -> OldRedis:
    """A Redis 6.2 without keys."""
    old_redis_server.call("FLUSHALL")
    return old_redis_server

"""Which calls go to a Redis."""

from pathlib import Path

import pytest

from keystead.inventory.code.clients import speaks_redis, worth_reading

from .reading_code import patterns, read


def test_what_is_called_like_a_command_but_goes_elsewhere_is_no_key(tmp_path: Path) -> None:
    found = read(tmp_path, a_py="""
        import redis, requests
        from flask import session
        client = requests.Session()
        redis_config = {"host": "x"}
        def f(d, items, response):
            client.get("/users/1")
            client.get("https://example.org/a:b")
            redis_config.get("some:host")
            d.get("name")
            session.set("user", 1)
            items.append("x:y z")
            response.headers.get("content:type")
            result = redis.Redis().hgetall("real:1")
            result.get("field")
        """)

    assert patterns(found) == ["real:1"]


@pytest.mark.parametrize("text", [
    "import redis\nx = redis.Redis()\nx.get('a:b')",
    "from redis.asyncio import from_url\nthing = from_url('redis://x')\nthing.get('a:b')",
    "def f(cache: 'Redis'):\n    cache.get('a:b')",
    "class A:\n    def __init__(self, conn: Redis): self.c = conn\n    def f(self): self.c.get('a:b')",
    "def get_redis(): return connect()\nget_redis().get('a:b')",
    "def make():\n    return redis.Redis()\nmake().get('a:b')",
    "import redis\nwith redis.Redis().pipeline() as p:\n    p.set('a:b', 1).expire('a:b', 3)",
    "app.state.redis.get('a:b')",
    "pipe.hset('a:b', 'f', 1)  # redis",
])
def test_clients_are_known_by_type_maker_and_name(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, a_py=text)

    assert patterns(found) == ["a:b"] and not found.entries[0].uncertain


def test_a_name_alone_is_a_doubt(tmp_path: Path) -> None:
    (found,) = read(tmp_path, a_py="# redis\nclient.get('a:b')").entries

    assert found.uncertain and found.type is not None and not found.type.sure


def test_files_worth_reading() -> None:
    assert speaks_redis(b"import ioredis") and not speaks_redis(b"import os")
    assert worth_reading(b"client.hset('a')") and worth_reading(b'USER_KEY = "user:%s"')
    assert not worth_reading(b"print('hello: world')")

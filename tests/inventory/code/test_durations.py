"""How long an expression says."""

from pathlib import Path

import pytest

from keystead.inventory import Certainty, Rule

from .reading_code import read

PYTHON = "import redis, os, random\nfrom datetime import timedelta\nr = redis.Redis()\nDAY = 86400\n"


@pytest.mark.parametrize(("call", "seconds"), [
    ('r.set("a:b", 1, ex=60 * 60)', 3600), ('r.set("a:b", 1, px=1500)', 1.5), ('r.set("a:b", 1, 90)', 90),
    ('r.set("a:b", 1, ex=timedelta(days=1, hours=2))', 93600), ('r.setex("a:b", DAY * 2, 1)', 172800),
    ('r.psetex("a:b", 500, 1)', 0.5), ('r.expire("a:b", int(timedelta(minutes=5).total_seconds()))', 300),
    ('r.expire("a:b", int(os.getenv("TTL", "120")))', 120), ('r.execute_command("SET", "a:b", 1, "EX", 30)', 30),
    ('r.pexpire("a:b", 2000)', 2),
])
def test_python(tmp_path: Path, call: str, seconds: float) -> None:
    (found,) = read(tmp_path, a_py=PYTHON + call).entries

    assert found.ttl is not None and (found.ttl.value.rule, found.ttl.value.seconds) == (Rule.EXACTLY, seconds)


@pytest.mark.parametrize(("call", "seconds"), [
    ("rdb.Set(ctx, \"a:b\", 1, 5*time.Minute)", 300), ('rdb.SetEx(ctx, "a:b", 1, time.Hour)', 3600),
    ('rdb.Expire(ctx, "a:b", time.Duration(30)*time.Second)', 30), ('rdb.SetNX(ctx, "a:b", 1, 24*time.Hour)', 86400),
])
def test_go(tmp_path: Path, call: str, seconds: float) -> None:
    text = f'package a\nimport "github.com/redis/go-redis/v9"\nfunc f(rdb *redis.Client) {{ {call} }}'
    (found,) = read(tmp_path, a_go=text).entries

    assert found.ttl is not None and found.ttl.value.seconds == seconds


@pytest.mark.parametrize(("call", "seconds"), [
    ('template.opsForValue().set("a:b", "x", 5, TimeUnit.MINUTES);', 300),
    ('template.opsForValue().set("a:b", "x", Duration.ofHours(1));', 3600),
    ('template.expire("a:b", 2, TimeUnit.DAYS);', 172800),
    ('jedis.setex("a:b", (int) TimeUnit.HOURS.toSeconds(3), "x");', 10800),
    ('commands.set("a:b", "x", SetArgs.Builder.ex(Duration.ofSeconds(9)));', 9),
])
def test_java(tmp_path: Path, call: str, seconds: float) -> None:
    text = f"class A {{ void f(RedisTemplate template, Jedis jedis, RedisCommands commands) {{ {call} }} }}"
    (found,) = read(tmp_path, a_java=text).entries

    assert found.ttl is not None and found.ttl.value.seconds == seconds


@pytest.mark.parametrize(("call", "seconds"), [
    ("redis.set('a:b', v, 'EX', 60)", 60), ("redis.set('a:b', v, 'PX', 250)", 0.25),
    ("redis.set('a:b', v, { EX: 5 * 60 })", 300),
    ("redis.set('a:b', v, { expiration: { type: 'EX', value: 7 } })", 7), ("redis.pexpire('a:b', ms('2h'))", 7200),
])
def test_typescript(tmp_path: Path, call: str, seconds: float) -> None:
    (found,) = read(tmp_path, a_ts=f"const redis = new Redis();\n{call};").entries

    assert found.ttl is not None and found.ttl.value.seconds == seconds


def test_chance_is_at_most_a_setting_is_named_and_a_read_that_renews_slides(tmp_path: Path) -> None:
    found = read(tmp_path, a_py=PYTHON + """
r.set("a:1", 1, ex=60 + random.randint(0, 30))
r.set("a:2", 1, ex=settings.CACHE_SECONDS)
r.getex("a:3", ex=5)
r.expireat("a:4", midnight)
r.set("a:5", 1)
""").entries
    rules = [(entry.ttl.value.rule, entry.ttl.value.seconds, entry.ttl.certainty) for entry in found if entry.ttl]

    assert rules == [(Rule.AT_MOST, 90, Certainty.STATED), (Rule.SOME, None, Certainty.IMPLIED),
                     (Rule.SLIDING, 5, Certainty.STATED), (Rule.UNTIL, None, Certainty.STATED),
                     (Rule.NONE, None, Certainty.IMPLIED)]
    assert found[1].ttl is not None and found[1].ttl.value.words == "settings.CACHE_SECONDS"

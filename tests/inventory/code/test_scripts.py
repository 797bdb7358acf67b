"""Calls that run a script, and scripts in files of their own."""

from pathlib import Path

from .reading_code import facts, patterns, read


def test_a_registered_script_is_called_with_keys(tmp_path: Path) -> None:
    found = read(tmp_path, a_py="""
        import redis
        r = redis.Redis()
        script = r.register_script("redis.call('SADD', KEYS[1], ARGV[1]) redis.call('EXPIRE', KEYS[1], ARGV[2])")
        def f(room): script(keys=[f"room:{room}"], args=["x", 90])
        """)

    assert [facts(entry) for entry in found.entries] == [("room:{room}", "set", "exactly", 90.0)]


def test_a_script_of_its_own_says_what_it_can(tmp_path: Path) -> None:
    found = read(tmp_path, a_lua="redis.call('INCR', 'count:' .. ARGV[1])\nredis.call('LPUSH', KEYS[1], 1)\n")

    assert patterns(found) == ["count:{argv_1}"]
    assert "KEYS[1] (list)" in found.notes[0].says


def test_a_script_in_a_heredoc_of_ruby(tmp_path: Path) -> None:
    found = read(tmp_path, a_rb="""
        TAKE = <<~LUA
          redis.call("HINCRBY", KEYS[1], "n", 1)
          return redis.call("SADD", "seen:" .. ARGV[1], KEYS[1])
        LUA
        def take(id)
          REDIS.eval(TAKE, keys: ["stock:#{id}"], argv: [id])
        end
        """)

    assert [facts(entry)[:2] for entry in found.entries] == [("seen:{id}", "set"), ("stock:{id}", "hash")]

"""Keys of Lua scripts."""

from keystead.inventory.code.expressions import Name, Opaque, Text, spell
from keystead.inventory.code.lua import is_script, named_keys, script_wishes, with_keys

SCRIPT = """
-- redis.call('GET', 'not:this')
local base = KEYS[1]
local name = base .. ':x' -- a comment
redis.call("HSET", name, 'f', ARGV[1])
if redis.call('EXISTS', 'flag:' .. ARGV[2]) == 1 then
  redis.pcall('EXPIRE', KEYS[2], 60)
end
return redis.call('ZRANGE', KEYS[3], 0, -1)
"""


def test_commands_and_keys() -> None:
    found = [(each.line, each.wish.command, spell(each.wish.expr)) for each in script_wishes(SCRIPT)]

    assert found == [(5, "HSET", "{KEYS[1]}:x"), (6, "EXISTS", "flag:{ARGV[2]}"), (7, "EXPIRE", "KEYS[2]"),
                     (9, "ZRANGE", "KEYS[3]")]


def test_keys_come_from_the_caller() -> None:
    first = script_wishes(SCRIPT)[0].wish.expr
    assert spell(with_keys(first, [Text("a:1")], [])) == "a:1:x"
    assert named_keys(first) == ["KEYS[1]"]
    assert isinstance(with_keys(Name("KEYS[4]"), [], []), Opaque)


def test_what_is_a_script() -> None:
    assert is_script("return redis.call('GET', KEYS[1])") and not is_script("call me")

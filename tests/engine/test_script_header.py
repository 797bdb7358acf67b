"""The header of a script, and whether the body keeps it."""

import pytest

from keystead.engine.script_header import Slot, body_problems, parse_header

GOOD = """#!lua
-- take: move the oldest items of a queue into purgatory.
-- KEYS[1]    list  queue      oldest at the left
-- KEYS[2..]  any   others
-- ARGV[1]    int   most       1..1000
-- ARGV[2]    float weight     -0.5..2.5, of one item
-- ARGV[3]    text  label      1..64 characters
-- DERIVES    hash  record     from ARGV[1], a template
-- Returns    array of items
-- Cost       O(most)          Repeat: not safe; a lost reply leaves items in purgatory
local queue, most, weight, label = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
for i = 2, #KEYS do redis.call('DEL', KEYS[i]) end
return redis.call('LRANGE', queue, 0, most, weight, label)
"""


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_header_says_what_a_script_takes_gives_and_costs() -> None:
    header = parse_header(GOOD)
    assert header.summary == "take: move the oldest items of a queue into purgatory."
    assert header.keys == (Slot("list", "queue"), Slot("any", "others"))
    assert header.arguments == (Slot("int", "most", 1, 1000), Slot("float", "weight", -0.5, 2.5), Slot("text", "label"))
    assert (header.more_keys, header.more_arguments) == (True, False)
    assert header.derives == ("hash  record     from ARGV[1], a template",)
    assert (header.returns, header.cost, header.repeat) == ("array of items", "O(most)", False)
    assert parse_header(changed("not safe; a", "safe; a")).repeat is True


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "first line must be #!lua"),
        (GOOD.removeprefix("#!lua\n"), "first line must be #!lua"),
        (changed("-- take: move the oldest items of a queue into purgatory.\n", ""), "name: purpose"),
        (changed("KEYS[1] ", "KEYS[2] "), r"KEYS\[2\] is out of order"),
        (changed("ARGV[1] ", "ARGV[7] "), r"ARGV\[7\] is out of order"),
        (changed("KEYS[1]    list", "KEYS[1]    heap"), "unknown kind heap"),
        (changed("ARGV[1]    int ", "ARGV[1]    list"), "unknown kind list"),
        (changed("list  queue      oldest at the left", "list"), "must read like"),
        (changed("-- Returns    array of items\n", ""), "needs the lines Returns"),
        (changed("Cost  ", "Price "), "needs the lines Returns"),
        (changed("Repeat: not safe; a", "Repeat: perhaps; a"), "must say safe or not safe"),
        (changed("          Repeat: not safe; a", "a"), "Repeat: safe or not safe"),
    ],
)
def test_broken_header_is_named(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_header(text)
    assert body_problems(text)


def test_body_that_keeps_its_header_has_no_problems() -> None:
    assert body_problems(GOOD) == []
    assert body_problems(changed("'LRANGE', queue", "'HSET', queue, 'time', 1")) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (changed("ARGV[2], ARGV[3]\n", "ARGV[2]\n"), "ARGV[3] is documented and not used"),
        (changed("ARGV[2], ARGV[3]\n", "ARGV[2], ARGV[3], ARGV[4]\n"), "ARGV[4] is used and not documented"),
        (changed("KEYS[2..]", "KEYS[2] "), "the body walks over KEYS"),
        (changed("redis.call('DEL', KEYS[i])", "redis.call('time')"), "asks the server for the time"),
        (changed("redis.call('DEL', KEYS[i])", 'redis.pcall( "TIME" )'), "asks the server for the time"),
    ],
)
def test_body_that_breaks_its_header_is_named(text: str, says: str) -> None:
    assert any(says in problem for problem in body_problems(text)), body_problems(text)

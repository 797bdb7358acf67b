import pytest

from keystead.engine.key_places import KeyPlaces
from keystead.errors import Invalid
from keystead.testing.server import LocalServer

# Every shape that the server's rules for finding keys can take.
COMMANDS = [
    "GET k",
    "SET k v EX 5",
    "MGET a b c",
    "MSET a 1 b 2",
    "DEL a b",
    "RENAME a b",
    "BITOP AND dest a b",
    "EVAL return 2 a b x y",
    "EVALSHA 0123 1 a x",
    "EVAL_RO return 1 a",
    "FCALL f 2 a b x",
    "XREAD COUNT 2 STREAMS a b 0 0",
    "XREADGROUP GROUP streams me COUNT 1 STREAMS a b > >",
    "XADD k * f v",
    "ZUNION 2 a b WEIGHTS 1 2",
    "ZUNIONSTORE dest 2 a b",
    "ZINTERCARD 2 a b LIMIT 1",
    "SINTERCARD 2 a b",
    "LMPOP 2 a b LEFT",
    "BLMPOP 0 2 a b LEFT",
    "BZMPOP 0 1 a MIN",
    "BLPOP a b 0",
    "BLMOVE a b LEFT RIGHT 0",
    "SINTERSTORE dest a b",
    "SORT a BY nosort",
    "GEOSEARCHSTORE dest a FROMLONLAT 1 2 BYRADIUS 1 m",
    "GEORADIUS a 1 2 3 m",
    "GEORADIUS a 1 2 3 m STORE dest",
    "OBJECT ENCODING k",
    "MEMORY USAGE k SAMPLES 5",
    "XGROUP CREATE k g 0",
    "XINFO STREAM k",
    "PFMERGE dest a b",
    "COPY a b",
    "LCS a b",
    "MIGRATE localhost 1 k 0 100",
    "MSETEX 2 a 1 b 2",
]


@pytest.fixture(scope="module")
def places(valkey_server: LocalServer) -> KeyPlaces:
    valkey_server.ensure_running()
    return KeyPlaces(valkey_server.call("COMMAND"))


@pytest.mark.parametrize("line", COMMANDS)
def test_keys_are_found_where_the_server_finds_them(line: str, places: KeyPlaces, valkey_server: LocalServer) -> None:
    expected = valkey_server.call("COMMAND", "GETKEYS", *line.split())
    command = tuple(line.split())
    assert places.all(command) == expected
    assert places.first(command) == expected[0]


@pytest.mark.parametrize("line", COMMANDS)
def test_spelling_of_a_command_does_not_matter(line: str, places: KeyPlaces) -> None:
    name, *rest = line.split()
    expected = places.all((name, *rest))
    assert places.all((name.lower(), *rest)) == expected
    assert places.all((name.encode(), *(each.encode() for each in rest))) == expected
    assert places.first((name.lower(), *rest)) == expected[0]
    assert places.first((name.lower().encode(), *rest)) == expected[0]


@pytest.mark.parametrize("line", ["OBJECT ENCODING k", "MEMORY USAGE k", "XINFO STREAM k", "xgroup create k g 0"])
def test_command_of_two_words_may_be_one_argument_or_two(line: str, places: KeyPlaces) -> None:
    first, second, *rest = line.split()
    assert places.first((first, second, *rest)) == b"k"
    assert places.first((f"{first} {second}", *rest)) == b"k"
    assert places.first((f"{first} {second}".encode(), *rest)) == b"k"


@pytest.mark.parametrize(
    "line", ["PING", "PUBLISH channel x", "EVAL return 0", "DBSIZE", "SCRIPT LOAD x", "CONFIG GET save", "CLUSTER INFO"]
)
def test_command_without_keys_has_none(line: str, places: KeyPlaces) -> None:
    assert places.first(tuple(line.split())) is None


def test_shard_channel_counts_as_a_key(places: KeyPlaces) -> None:
    assert places.first(("SPUBLISH", "channel", b"x")) == b"channel"


@pytest.mark.parametrize("line", ["GET", "EVAL return", "EVAL return x a", "XREAD COUNT 2", "OBJECT", "ZUNION"])
def test_malformed_command_has_no_key_so_that_the_server_can_complain(line: str, places: KeyPlaces) -> None:
    assert places.first(tuple(line.split())) is None


def test_migrate_of_several_keys_goes_by_these(places: KeyPlaces) -> None:
    assert places.first(("MIGRATE", "localhost", 1, "", 0, 100, "KEYS", "a", "b")) == b"a"


def test_numbers_and_buffers_are_keys_as_the_server_will_see_them(places: KeyPlaces) -> None:
    assert places.first(("GET", 17)) == b"17"
    assert places.first(("GET", memoryview(b"\xff\x00"))) == b"\xff\x00"


def test_unknown_command_is_refused_by_name(places: KeyPlaces) -> None:
    with pytest.raises(Invalid, match="does not know the command NOSUCH"):
        places.first(("NOSUCH", "k"))

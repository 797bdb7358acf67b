"""How long a command lets a key live."""

import time

import pytest

from keystead.guard.lifetimes import Life, lifetime


@pytest.mark.parametrize(("text", "seconds"), [
    ("SET k v EX 60", 60), ("SET k v NX EX 60 GET", 60), ("SET k v PX 1500", 1.5), ("SET k v px 1500", 1.5),
    ("SETEX k 30 v", 30),
    ("PSETEX k 500 v", 0.5), ("EXPIRE k 10 NX", 10), ("PEXPIRE k 10000", 10), ("GETEX k EX 9", 9),
    ("MSETEX 2 EX v k2 v EX 4", 4),
    ("RESTORE k 5000 v", 5),
])
def test_seconds_are_read_from_the_command(text: str, seconds: float) -> None:
    words = tuple(text.split())
    assert lifetime(words[0], words) == pytest.approx(seconds)


def test_instants_are_counted_from_now() -> None:
    at = int(time.time()) + 600
    for words in (("SET", "k", "v", "EXAT", at), ("SET", "k", "v", "PXAT", at * 1000), ("EXPIREAT", "k", at),
                  ("PEXPIREAT", "k", at * 1000), ("RESTORE", "k", at * 1000, "v", "ABSTTL"),
    ("GETEX", "k", b"EXAT", at)):
        found = lifetime(words[0], words)
        assert isinstance(found, float) and 500 < found < 610, words


@pytest.mark.parametrize(("text", "life"), [
    ("SET k v", Life.FOREVER), ("SET k EX", Life.FOREVER), ("SET k v KEEPTTL", Life.AS_IT_WAS),
    ("GETEX k", Life.AS_IT_WAS),
    ("GETEX k PERSIST", Life.FOREVER), ("RESTORE k 0 v", Life.FOREVER), ("EXPIRE k soon", Life.AS_IT_WAS),
    ("EXPIRE k", Life.AS_IT_WAS),
    ("MSETEX 1 k EX", Life.FOREVER),
])
def test_commands_without_a_time(text: str, life: Life) -> None:
    words = tuple(text.split())
    assert lifetime(words[0], words) is life

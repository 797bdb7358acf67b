"""The one model that every command speaks."""

import pytest

from keystead.inventory import SERVER_TYPES, Certainty, Entry, Fact, Source


def test_source_reads_like_a_place_in_a_file() -> None:
    assert str(Source("redis-keys.md", 7)) == "redis-keys.md:7"
    assert str(Source("redis://localhost")) == "redis://localhost"


def test_only_a_guess_is_unsure() -> None:
    assert [Fact(1, certainty).sure for certainty in Certainty] == [True, True, False]


@pytest.mark.parametrize(("type", "server_type"), [("lock", "string"), ("geo", "zset"), ("hash", "hash")])
def test_type_is_kept_as_one_of_the_servers_own(type: str, server_type: str) -> None:
    assert Entry("a", type=Fact(type)).server_type == server_type
    assert set(SERVER_TYPES.values()) <= {"string", "hash", "list", "set", "zset", "stream", "ReJSON-RL"}


def test_type_that_nobody_knows_is_none() -> None:
    assert Entry("a").server_type is None

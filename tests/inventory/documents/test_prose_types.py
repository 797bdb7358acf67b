"""Types in cells and sentences."""

import pytest

from keystead.inventory.documents.prose_types import is_type_name, type_of_cell, type_of_prose
from keystead.inventory.models import Certainty

CELLS = {
    "STRING (JSON)": "json",
    "GEO (ZSET)": "geo",
    "SortedSet": "zset",
    "List[JSON]": "list",
    "STRING(INTEGER)": "integer",
    "Pub/Sub channel": "channel",
    "有序集合": "zset",
    "해시": "hash",
    "ソート済みセット": "zset",
    "sortierte Menge": "zset",
    "conjunto": "set",
    "Set<userId>": "set",
    "Stream, consumer group `x`": "stream",
    "Hash job_id → payload JSON": "hash",
    'STRING ("0"/"1")': "string",
    "String (lock)": "lock",
    "Counter": "integer",
    "HSET": "hash",
}


@pytest.mark.parametrize("text", CELLS)
def test_types_of_cells(text):
    assert type_of_cell(text)[0] == CELLS[text]


def test_cells_that_name_no_type_or_two():
    assert type_of_cell("RedisSearch JSON index") is None and type_of_cell("whatever it is") is None
    assert type_of_cell("Set or Hash")[1] is Certainty.GUESSED


PROSE = {
    "goes to a sorted set where the values are uids": "zset",
    "is a sset where the values are the hashes of the jobs": "zset",
    "a set of job hashes that were removed": "set",
    "where the uid is an entry in the list `x` goes to a string containing the uid": "string",
    "goes to either an empty key or a list where the first element is": "list",
    "goes to the trivial json serialization of a thing": "json",
    "goes to a string acting as an integer": "integer",
    "where the values are hashes with two keys": "hash",
    "goes to the number of members": "integer",
    "A basic lock to make sure of one job": "lock",
    "Hash mit Profildaten": "hash",
    "有序集合，保存当天销量": "zset",
    "로그인 세션 해시": "hash",
    "お知らせのリスト": "list",
    "Conjunto ordenado con puntos": "zset",
    "(stream) events of a room": "stream",
    "LPUSHed by the api": None,
    "stored as a JSON string": "json",
    "HyperLogLog of visitors": "hyperloglog",
}


@pytest.mark.parametrize("text", PROSE)
def test_types_of_sentences(text):
    said = type_of_prose(text)
    assert (said[0] if said else None) == PROSE[text]


@pytest.mark.parametrize("text", ["used by the runners", "set by the api", "the hash of the url", "限流窗口", ""])
def test_sentences_that_name_no_type(text):
    assert type_of_prose(text) is None


def test_names_of_types_alone():
    assert is_type_name("HASH") and is_type_name("sorted set") and not is_type_name("a hash of everything we know")

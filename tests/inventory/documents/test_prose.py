"""Sentences about keys: type, expiry, writers, readers, personal data."""

import pytest

from keystead.inventory.documents.blocks import Text, code, link
from keystead.inventory.documents.prose_expiries import expiry_of_prose
from keystead.inventory.documents.prose_people import (
    people_of_cell,
    people_of_prose,
    personal_of_cell,
    personal_of_prose,
)
from keystead.inventory.documents.prose_types import type_of_cell, type_of_prose
from keystead.inventory.models import Certainty, Rule

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


@pytest.mark.parametrize(
    ("text", "rule", "seconds"),
    [
        ("Counts uploads, with a 1 hour expiration.", Rule.EXACTLY, 3600),
        ("Always set to expire after 60s in case of a crash.", Rule.EXACTLY, 60),
        ("Set to expire 15m after it was last used.", Rule.SLIDING, 900),
        ("how many tries with less than 10 minutes between them, by incr then expire", Rule.SLIDING, 600),
        ("This key is always set to expire when the code expires.", Rule.UNTIL, None),
        ("Always set to expire 1m after the corresponding JWT expires.", Rule.UNTIL, None),
        ("We use a basic expiring key for this.", Rule.SOME, None),
        ("Never expires.", Rule.NONE, None),
        ("hash, 24h, profile", Rule.EXACTLY, 86400),
        ("Hash. TTL: 5 min", Rule.EXACTLY, 300),
        ("过期时间 30 分钟", Rule.EXACTLY, 1800),
        ("30분 후 만료", Rule.EXACTLY, 1800),
        ("有効期限は15秒", Rule.EXACTLY, 15),
        ("läuft nach 24 Stunden ab", Rule.EXACTLY, 86400),
        ("caduca a los 7 días", Rule.EXACTLY, 604800),
        ("kept for 400 days", Rule.EXACTLY, 34560000),
    ],
)
def test_expiries_of_sentences(text, rule, seconds):
    said = expiry_of_prose(text)
    assert said is not None and (said[0].rule, said[0].seconds) == (rule, seconds)


@pytest.mark.parametrize(
    "text",
    [
        "the scores are when those tokens expire. Used for revoking",
        "stays in this list for at least 15 minutes",
        "checked every 5 minutes by a job",
        "a list",
        "",
    ],
)
def test_sentences_that_say_nothing_of_an_end(text):
    assert expiry_of_prose(text) is None


def test_people():
    writers, readers = people_of_prose(
        Text(f"Set by the api, read by {code('ranker')} and search. Used {link('here', 'x.py')}", 1)
    )
    assert writers == ("api",) and readers == ("ranker", "search")
    assert people_of_cell(Text(f"{code('a/b.py')}, jobs (nightly, twice)", 1)) == ("a/b.py", "jobs (nightly, twice)")
    assert people_of_cell(Text("—", 1)) == ()
    assert people_of_prose(Text("由 order-service 写入，由 gateway 读取", 1)) == (("order-service",), ("gateway",))


def test_personal_data():
    assert personal_of_cell("**Yes** (JWT)") == (True, Certainty.STATED) and personal_of_cell("nein") == (
        False,
        Certainty.STATED,
    )
    assert personal_of_cell("???") is None and personal_of_cell("Consumer driven") is None
    assert personal_of_prose("Holds PII of the rider") == (True, "PII")
    assert personal_of_prose("no personal data")[0] is False and personal_of_prose("a counter") is None

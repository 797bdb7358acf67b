"""Spellings of placeholders become one way to write a pattern."""

import pytest

from keystead.inventory.patterns import alternatives, normalise, read_spelling, shape, variables

PLAIN = {
    "user:<ID>": "user:{id}",
    "user:<user id>": "user:{user_id}",
    "user:{userId}:cart": "user:{user_id}:cart",
    "users/:id/orders": "users/{id}/orders",
    "user:${user.id}": "user:{user_id}",
    "user:#{user.id}": "user:{user_id}",
    "user:$id:cart": "user:{id}:cart",
    "user:{$user->id}": "user:{user_id}",
    "user:@id": "user:{id}",
    "user:[id]": "user:{id}",
    "user:(id):x": "user:{id}:x",
    "%s:seen:%d": "{value}:seen:{number}",
    "%(uid)s:x": "{uid}:x",
    "%{uid}:x": "{uid}:x",
    "a:{}:{}": "a:{value}:{value2}",
    "a:{0}:{1}": "a:{value}:{value2}",
    "a:{id}:{id}": "a:{id}:{id2}",
    "presence:*": "presence:{rest}",
    "a:*:b": "a:{any}:b",
    "a:...:b": "a:{any}:b",
    "a:…": "a:{rest}",
    "keys[0-9]*": "keys{rest}",
    "stats:YYYY-MM-DD": "stats:{date}",
    "stats:{yyyyMMdd}": "stats:{date}",
    "stats:%Y%m": "stats:{month}",
    "rl:<YYYYMMDDHH>": "rl:{hour}",
    "link-preview:{sha256(url)}": "link-preview:{sha256_url}",
    "Queue_<SHARD_ID>": "Queue_{shard_id}",
    "order:{订单号}": "order:{order_id}",
    "{user:<id>}:cart": "{user:{id}}:cart",
    "{user:{id}}:cart": "{user:{id}}:cart",
    "users::{id}": "users::{id}",
    "cache::users": "cache::users",
    '"user:" + id + ":posts"': "user:{id}:posts",
    "'user:' . $id": "user:{id}",
    "`jobs:hot`": "jobs:hot",
    "50%": "50%",
    "": "",
}


@pytest.mark.parametrize("spelling", PLAIN)
def test_a_placeholder_becomes_a_variable(spelling):
    assert normalise(spelling) == (PLAIN[spelling], "")


@pytest.mark.parametrize(("spelling", "pattern", "doubt"), [
    ("{user}:1", "{user}:1", "hash tag"),
    ("{{queue}}:jobs", "{queue}:jobs", "double braces"),
    ("user::id", "user:{id}", "two colons"),
    ("sessions:", "sessions:", "prefix"),
])
def test_what_is_doubtful_is_said(spelling, pattern, doubt):
    read = normalise(spelling)
    assert read.pattern == pattern and doubt in read.uncertain


@pytest.mark.parametrize(("spelling", "pattern"), [
    ("user:id:followers", "user:{id}:followers"), ("sess:USER_ID", "sess:{user_id}"), ("user:xxx", "user:{value}"),
    ("global:next_id", "global:next_id"), ("SESSION:ID", "SESSION:ID"), ("grid:video", "grid:video"),
])
def test_bare_words_are_variables_only_where_a_document_is_read(spelling, pattern):
    assert normalise(spelling).pattern == spelling
    assert normalise(spelling, bare=True).pattern == pattern


def test_a_bare_word_that_is_taken_for_a_variable_is_doubtful():
    assert "nothing marks it" in normalise("user:id", bare=True).uncertain


def test_a_stated_kind_is_kept():
    assert read_spelling("user:{id:int}:x").kinds == (("id", "integer"),)
    assert read_spelling("user:<uuid:key>").kinds == (("key", "uuid"),)


@pytest.mark.parametrize(("spelling", "several"), [
    ("a:{x|y}:{id}", ("a:x:{id}", "a:y:{id}")),
    ("a:<x/y>", ("a:x", "a:y")),
    ("a[:{details}]", ("a", "a:{details}")),
    ("a:{id}", ("a:{id}",)),
    ("a:{first name, last name}", ("a:{first name, last name}",)),
    ("a:{1|2|3|4|5}:{1|2|3|4|5}", ("a:{1|2|3|4|5}:{1|2|3|4|5}",)),
])
def test_alternatives_are_spread_while_they_are_few(spelling, several):
    assert alternatives(spelling) == several


def test_shape_forgets_names():
    assert shape("a:{user_id}:{x}") == shape("a:{id}:{date}") == "a:{}:{}"
    assert variables("{user:{id}}:{x}") == ("id", "x")

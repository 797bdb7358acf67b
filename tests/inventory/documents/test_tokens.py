import pytest

from keystead.inventory.documents.tokens import Likeness, concrete_to_shape, is_setting, likeness

PLAIN = [
    "user:{id}",
    "user:<user id>:cart",
    "u:%s",
    "user_{id}",
    "session-{id}",
    "views/x/#{id}-#{d}:y",
    "asynq:*",
    "用户:{id}",
    "auction:{<aid>}:state",
    "{user:{id}}:cart",
    "link:{sha256(url)}",
    "day:YYYY-MM-DD",
    "geo:{lat},{lon}",
    "a|{b}",
]
LIKELY = ["jobs:hot", "user:", "users::42", "sites:v3", "user:1000", "repsvc:qix.session:"]
WORDS = ["rjobs", "apple_public_keys", "{a}:{b}", "<ITEM_UUID>", "REDIS_URL"]
NOT = [
    "12:30",
    "3:1",
    "localhost:6379",
    "127.0.0.1:6379",
    "redis:7-alpine",
    "postgres:14",
    "services/auth.go",
    "keys.go:155",
    "https://x.y/z",
    "/api/{id}",
    "../x",
    "Foo::Bar",
    "std::string",
    "KEYS[1]",
    "List[str]",
    "Map<String, Long>",
    "foo()",
    "cache.get(key)",
    "SET key",
    "HGETALL user:1",
    "sort_keys=True",
    "a sentence with a:b",
    "hash",
    "HSET",
    "true",
    ":smile:",
    "HH:mm:ss",
    '{"id": 1}',
    "*",
    "...",
    "",
    "urn:isbn:1",
    "x" * 300,
]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [(PLAIN, Likeness.PLAIN), (LIKELY, Likeness.LIKELY), (WORDS, Likeness.WORD), (NOT, Likeness.NOT)],
)
def test_how_much_a_token_looks_like_a_key(tokens, expected):
    assert {token: likeness(token) for token in tokens} == dict.fromkeys(tokens, expected)


def test_what_varies_in_a_concrete_key():
    assert concrete_to_shape("user:1000:cart") == "user:{id}:cart"
    assert concrete_to_shape("day:2024-05-01") == "day:{date}"
    assert concrete_to_shape("code:a@b.de") == "code:{email}"
    assert concrete_to_shape("app:v2:users") == "app:v2:users"


def test_settings():
    assert is_setting("REDIS_URL") and not is_setting("user_id")

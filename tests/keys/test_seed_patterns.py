"""Every documented pattern of five products can be declared, and every key of theirs is told back."""

import random

import pytest

from keystead.errors import Ambiguous
from keystead.keys import Declaration, Keyspace, Layout, Registry, StringKey

from .seed_patterns import normalised, rows, seed_keyspace

SAMPLES_EACH = 25


@pytest.fixture(scope="module", params=[Layout.PLAIN, Layout.TAGGED], ids=lambda layout: layout.value)
def registry(request: pytest.FixtureRequest) -> Registry:
    return Registry([seed_keyspace()], request.param)


def test_all_423_rows_are_declared(registry: Registry) -> None:
    declared = {(d.kind, d.pattern) for d in registry}
    assert len(rows()) == len(registry) == 423
    assert declared == {(row["kind"], normalised(row["pattern"])) for row in rows()}


def test_every_sample_key_resolves_to_its_declaration_and_arguments(registry: Registry) -> None:
    rng = random.Random(20_000)
    seen: set[Declaration] = set()
    for declaration, arguments, raw_key in registry.sample_keys(rng, SAMPLES_EACH):
        match = registry.resolve(raw_key)
        assert match is not None, raw_key
        assert (match.declaration, match.arguments) == (declaration, arguments), raw_key
        assert match.reference.name(registry.layout) == raw_key
        seen.add(declaration)
    assert len(seen) == sum(row["kind"] == "key" for row in rows())


def test_every_sample_channel_resolves_to_its_declaration_and_arguments(registry: Registry) -> None:
    rng = random.Random(1)
    channels = [declaration for declaration in registry if declaration.kind == "channel"]
    assert len(channels) == sum(row["kind"] == "channel" for row in rows())
    for declaration in channels:
        for _ in range(SAMPLES_EACH):
            arguments = declaration.sample(rng)
            match = registry.resolve_channel(declaration.reference(arguments).name(registry.layout))
            assert match is not None
            assert (match.declaration, match.arguments) == (declaration, arguments)


def test_a_key_is_no_channel_and_a_channel_no_key() -> None:
    registry = Registry([seed_keyspace()])
    assert registry.resolve(b"updates:website") is None
    assert registry.resolve_channel(b"updates:website:lock") is None
    assert registry.resolve_channel(b"updates:website").declaration.pattern == "updates:{repo}"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("raw_key", "pattern", "arguments"),
    [
        (b"touch_links:buffer:clicks:abc", "touch_links:buffer:clicks:{code}", {"code": "abc"}),
        (b"touch_links:buffer:clicks", "touch_links:buffer:{code}", {"code": "clicks"}),
        (b"daily_reminders:progress:timezones:20000", "daily_reminders:progress:timezones:{unix_date}",
         {"unix_date": "20000"}),
        (b"daily_reminders:progress:America/Los_Angeles:20000", "daily_reminders:progress:{tz}:{unix_date}",
         {"tz": "America/Los_Angeles", "unix_date": "20000"}),
        (b"stats:visitors:daily:utm_source=a:b&utm_medium=c:19000:20000:counts",
         "stats:visitors:daily:{utm}:{unix_date}:counts",
         {"utm": "utm_source=a:b&utm_medium=c:19000", "unix_date": "20000"}),
        (b"blocked_ip:2001:db8::7", "blocked_ip:{ip}", {"ip": "2001:db8::7"}),
        (b"a0000000-0000-4000-8000-00000000000f", "{item_uuid}",
         {"item_uuid": "a0000000-0000-4000-8000-00000000000f"}),
        (b"reporting:ReportRequests_7", "reporting:ReportRequests_{shard_id}", {"shard_id": "7"}),
        (b"reporting:parkhashes:rdr-s1", "reporting:parkhashes:rdr-{session_id}", {"session_id": "s1"}),
        (b"repsvc:cache:a:b", "repsvc:cache:{rest}", {"rest": "a:b"}),
        (b"repsvc:reporting-batch:session_count", "repsvc:{workload_type}:session_count",
         {"workload_type": "reporting-batch"}),
    ],
)
def test_telling_keys(raw_key: bytes, pattern: str, arguments: dict[str, str]) -> None:
    match = Registry([seed_keyspace()]).resolve(raw_key)
    assert match is not None
    assert (match.declaration.pattern, match.arguments) == (pattern, arguments)


@pytest.mark.parametrize(
    "raw_key",
    [b"", b":", b"touch_links", b"touch_links:buffer:", b"stats:users:monthly:07:count", b"blocked_ip:1.2.3.999",
     b"users:someone:delete:lock", b"repsvc:cache:", b"jobs:hot:a\nb", b"jobs:hot:\xff\xfe", b"\xff",
     b"{seeds}jobs:hot"],
)
def test_foreign_keys_resolve_to_nothing(raw_key: bytes) -> None:
    assert Registry([seed_keyspace()]).resolve(raw_key) is None


def test_without_narrow_kinds_the_same_patterns_are_found_to_be_ambiguous() -> None:
    keyspace = Keyspace("seeds")
    StringKey(keyspace, "users:{sub}:delete:lock", str, purpose="deleting")
    StringKey(keyspace, "users:klaviyo_ensure_user:{user_sub}:lock", str, purpose="queueing")
    with pytest.raises(Ambiguous) as caught:
        Registry([keyspace])
    assert "users:{sub}:delete:lock" in str(caught.value)
    assert "users:klaviyo_ensure_user:{user_sub}:lock" in str(caught.value)
    assert "the key users:klaviyo_ensure_user:delete:lock," in str(caught.value)

"""Each type of key says what it is and names its keys."""

from collections.abc import Mapping

import pytest

from keystead.errors import DeclarationError
from keystead.keys import Keyspace, Layout, LockKey, LockKind, Registry, StringKey

from .sample_room import COUNTS, DUE, HERE, LOCK, LOG, NAMES, PLACES, QUEUE, RECORD


def test_a_lock_is_only_a_name() -> None:
    assert LOCK.at("1").name(Layout.PLAIN) == b"lock:1"
    assert LOCK.lock is LockKind.SMART
    with pytest.raises(DeclarationError, match="needs an expiry"):
        LockKey(HERE, "other:{x}", LockKind.PLAIN, purpose="t")
    assert HERE.declarations[-1].pattern != "other:{x}"


def test_types_and_what_the_server_calls_them() -> None:
    assert {(declaration.type, declaration.server_type) for declaration in HERE} == {
        ("string", "string"), ("integer", "string"), ("flag", "string"), ("lock", "string"), ("hash", "hash"),
        ("list", "list"), ("set", "set"), ("zset", "zset"), ("stream", "stream"), ("geo", "zset"), ("channel", None),
    }


def test_what_a_value_is_in_words() -> None:
    assert {declaration.pattern: declaration.payload for declaration in (QUEUE, NAMES, DUE, PLACES, COUNTS, LOG)} == {
        "queue:{x}": "JSON Sms",
        "names:{x}": "text",
        "due:{x}": "sid (text) by when due",
        "places:{x}": "event (text) by position",
        "counts:{x}": "attempted, failed:{reason} → integer",
        "log:{x}": "entries: record Sms; about 2 are kept",
    }
    assert RECORD.payload.startswith("record Sms (sid text, attempts JSON int")


@pytest.mark.parametrize("layout", [Layout.PLAIN, Layout.TAGGED])
def test_every_type_names_its_keys_and_is_found_by_them(layout: Layout) -> None:
    registry = Registry([HERE], layout)
    for declaration in HERE:
        arguments: Mapping[str, str] = dict.fromkeys(declaration.template.names, "abc")
        reference = declaration.reference(arguments)
        assert reference.logical == declaration.template.fill(arguments)
        resolve = registry.resolve if declaration.kind == "key" else registry.resolve_channel
        match = resolve(reference.name(layout))
        assert match is not None and match.declaration is declaration
        assert match.reference == reference


def test_a_purpose_must_be_given() -> None:
    with pytest.raises(TypeError, match="purpose"):
        StringKey(Keyspace("tests"), "a", str)  # type: ignore[call-arg]

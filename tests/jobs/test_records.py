"""Records: unique names, and changes that leave foreign fields alone."""

import msgspec
import pytest

from keystead.errors import Invalid
from keystead.jobs.records import changed, encode_record, new_uid


def test_uids_differ_and_can_be_in_a_key() -> None:
    found = {new_uid() for _ in range(10_000)}
    assert len(found) == 10_000 and not any(":" in uid or "{" in uid for uid in found)


def test_a_change_keeps_fields_of_other_programs() -> None:
    raw = b'{"name":"a","kwargs":{"x":1.50},"queued_at":1,"trace":{"id":[1,2]},"priority":"high"}'
    found = changed(raw, uid="u", attempt=2)
    assert b'"kwargs":{"x":1.50}' in found, "arguments travel byte for byte"
    assert msgspec.json.decode(found) == {
        "name": "a", "kwargs": {"x": 1.5}, "queued_at": 1, "trace": {"id": [1, 2]}, "priority": "high", "uid": "u",
        "attempt": 2,
    }


def test_what_is_too_large_or_no_json_is_refused() -> None:
    with pytest.raises(Invalid, match="store them elsewhere"):
        encode_record("a", {"x": "y" * 1_100_000}, 1.0)
    with pytest.raises(Invalid, match="cannot be written as JSON"):
        encode_record("a", {"x": {1: object()}}, 1.0)

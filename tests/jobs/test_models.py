"""Records as they lie in queues: what other programs write is read, and what we write stays small."""

import msgspec

from keystead.jobs.models import JobOptions, JobRecord, JobRef


def test_the_documented_record_is_read() -> None:
    raw = b'{"name":"runners.example","kwargs":{"a":[1,{"b":null}]},"queued_at":1700000000.5,"extra":"kept"}'
    record = msgspec.json.decode(raw, type=JobRecord)
    assert record == JobRecord("runners.example", {"a": [1, {"b": None}]}, 1700000000.5)


def test_a_plain_job_carries_no_options() -> None:
    record = JobRecord("a.b", {"n": 1}, 1700000000.0, uid="u1")
    assert msgspec.json.encode(record) == b'{"name":"a.b","kwargs":{"n":1},"queued_at":1700000000.0,"uid":"u1"}'


def test_samples_of_every_age_decode() -> None:
    """Records that older versions wrote; a line is added with each change and none is ever taken away."""
    options = JobOptions(keep_seconds=60, on_success=JobRef("x.y", {"q": 1}), after=("u0",))
    samples = {
        b'{"name":"a","kwargs":{},"queued_at":1}': JobRecord("a", {}, 1),
        b'{"name":"a","kwargs":{},"queued_at":1,"uid":"u","attempt":2,"options":{"keep_seconds":60,"after":["u0"],'
        b'"on_success":{"name":"x.y","kwargs":{"q":1}}}}': JobRecord("a", {}, 1, "u", 2, 0.0, options),
    }
    for raw, expected in samples.items():
        assert msgspec.json.decode(raw, type=JobRecord) == expected

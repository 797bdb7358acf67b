"""Making records: the one place that knows how a job is spelled in a queue."""

import os
import secrets
from itertools import count
from typing import Any

import msgspec

from keystead.errors import Invalid
from keystead.jobs.models import JobOptions, JobRecord
from keystead.tracing import traceparent

# What one job may weigh. The server and every worker that passes it on hold it in memory several times.
MOST_BYTES = 1024 * 1024

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(JobRecord)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Uids:
    """Identifiers that no other process makes: random for the process, then counted, which is faster than random."""

    def __init__(self) -> None:
        self.renew()
        os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self._stem = secrets.token_urlsafe(9)
        self._count = count(1)

    def new(self) -> str:
        return f"{self._stem}{next(self._count):x}"


new_uid = _Uids().new


def encode_record(
    name: str, kwargs: dict[str, Any], queued_at: float, *, uid: str = "", options: JobOptions | None = None,
    attempt: int = 0, due_at: float = 0,
) -> bytes:
    """The bytes of a job, for whoever pushes them: our client, a transaction, another room's script."""
    try:
        raw = _encoder.encode(JobRecord(
            name, kwargs, queued_at, uid, attempt, options=options, due_at=due_at or 0, trace=traceparent()
        ))
    except (TypeError, ValueError, OverflowError) as error:
        raise Invalid(f"job {name}: its arguments cannot be written as JSON: {error}") from None
    if len(raw) > MOST_BYTES:
        raise Invalid(
            f"job {name}: its arguments take {len(raw):,} bytes, at most {MOST_BYTES:,} travel in a queue; "
            "store them elsewhere and pass where"
        )
    return raw


def changed(raw: bytes, **fields: str | int | float) -> bytes:
    """The same record with other values for these fields; those that we do not know stay as they are."""
    found: dict[str, Any] = _fields.decode(raw)
    return _encoder.encode({**found, **fields})

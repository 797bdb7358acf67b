"""Job callbacks: the job that something stored will be followed by, and what it is told of the outcome.

A callback is a ``JobRef`` inside another record. When the outcome is known, the job is queued with its arguments and
one more, ``data_raw``: the outcome as JSON, compressed, in letters that are safe anywhere. In a process that seals what
it writes (``keystead.keys.sealed``) it is sealed too.
"""

import base64
import binascii
import zlib
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar, overload

import msgspec

from keystead.errors import DeclarationError, Invalid
from keystead.jobs.keys import Queue
from keystead.jobs.models import JobRecord, JobRef
from keystead.keys import Layout, ListRef, Undecodable
from keystead.keys.sealed import TOKEN, is_sealing, seal, unseal
from keystead.tracing import traceparent

T = TypeVar("T")

DATA_RAW: Final = "data_raw"
MOST_TEXT: Final = 256 * 1024  # characters of data_raw
MOST_BYTES: Final = 4 * 1024 * 1024  # of JSON inside; a few hundred characters can hold gigabytes
_GZIP: Final = 16 + zlib.MAX_WBITS
_SEALED: Final = "sealed."  # a dot is in no base64
_BOUND: Final = b"data_raw"


def encode_data_raw(value: object) -> str:
    """What a callback is told: url-safe base64 of gzip of JSON. The same value gives the same text."""
    try:
        raw = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise Invalid(f"what a callback is told must be writable as JSON: {error}") from None
    if len(raw) > MOST_BYTES:
        raise Invalid(f"a callback is told at most {MOST_BYTES:,} bytes of JSON, this is {len(raw):,}: tell it less")
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)  # without the time of day that the gzip module would add
    packed = packer.compress(raw) + packer.flush()
    text = _SEALED + seal(packed, _BOUND).decode() if is_sealing() else base64.urlsafe_b64encode(packed).decode()
    if len(text) > MOST_TEXT:
        raise Invalid(f"{DATA_RAW} may have {MOST_TEXT:,} characters, this has {len(text):,}: tell it less")
    return text


@overload
def decode_data_raw(text: str) -> Any: ...
@overload
def decode_data_raw(text: str, of: type[T]) -> T: ...
def decode_data_raw(text: str, of: Any = Any) -> Any:
    """What ``encode_data_raw`` was given, as a value of ``of``. Anything else is ``Invalid``, at a bounded cost."""
    if len(text) > MOST_TEXT:
        raise Invalid(f"{DATA_RAW} has {len(text):,} characters, at most {MOST_TEXT:,} are read")
    unpacker = zlib.decompressobj(_GZIP)
    try:
        if text.startswith(_SEALED):
            packed = _unsealed(text)
        else:
            packed = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
        raw = unpacker.decompress(packed, MOST_BYTES)
    except (UnicodeEncodeError, binascii.Error, zlib.error):
        raise Invalid(f"{DATA_RAW} is not url-safe base64 of gzip") from None
    if unpacker.unconsumed_tail:
        raise Invalid(f"{DATA_RAW} unpacks to more than {MOST_BYTES:,} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise Invalid(f"{DATA_RAW} is cut off, or followed by something else")
    try:
        return msgspec.json.decode(raw, type=of)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"{DATA_RAW} does not hold what was expected: {error}") from None


def _unsealed(text: str) -> bytes:
    token = text.removeprefix(_SEALED).encode("ascii")
    if TOKEN.fullmatch(token) is None:
        raise Invalid(f"{DATA_RAW} says that it is sealed, and is not")
    try:
        return unseal(token, _BOUND)
    except Undecodable as error:
        raise Invalid(f"{DATA_RAW} cannot be read: {error.reason}") from None


def closed(value: object) -> Any:
    """An argument of a job that is personal: sealed where this process seals, else as it is. ``opened`` reads both."""
    return encode_data_raw(value) if is_sealing() else value


def opened(argument: Any) -> Any:
    """What ``closed`` was given."""
    return decode_data_raw(argument) if isinstance(argument, str) and argument.startswith(_SEALED) else argument


def check_callback(callback: JobRef) -> None:
    """Refuse a callback that already has the argument it will be given, or a queue that cannot be; for whoever stores
    one, since when it is to be queued nobody is there to mend it."""
    if callback.queue:
        try:
            job_list(callback.queue).name(Layout.TAGGED)
        except DeclarationError:
            raise Invalid(f"callback {callback.name}: no queue can be called {callback.queue[:60]!r}") from None
    if DATA_RAW in callback.kwargs:
        raise Invalid(f"callback {callback.name}: {DATA_RAW} is what it is told later, so it cannot be an argument now")


def callback_record(callback: JobRef, outcome: object, *, queued_at: float, uid: str = "") -> JobRecord:
    """The job to queue for this outcome, best in the transaction that removes the item it was stored in."""
    check_callback(callback)
    kwargs = {**callback.kwargs, DATA_RAW: encode_data_raw(outcome)}
    return JobRecord(callback.name, kwargs, queued_at, uid, trace=traceparent())


def job_list(queue: str = "") -> ListRef[JobRecord]:
    """The list of a queue, as a key: for a script or transaction that queues a job beside its own changes."""
    return Queue(queue).work.queue


class AfterFailure(Enum):
    """What a failure callback must do with the item."""

    NOTHING = "the item was settled already"
    RETRY = "put the item back"
    ABANDON = "give the item up, and count it"


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """When a failed item is given up: after so many retries, or so long after it was first queued."""

    most_retries: int = 3
    most_seconds: float = 12 * 3600.0

    def decide(self, *, retryable: bool, retries: int, first_queued_at: float, now: float) -> AfterFailure:
        """What is to be done. ``retries``: how often it was put back so far."""
        if not retryable:
            return AfterFailure.NOTHING
        if retries >= self.most_retries or now - first_queued_at > self.most_seconds:
            return AfterFailure.ABANDON
        return AfterFailure.RETRY


STANDARD_POLICY: Final = FailurePolicy()

"""Callbacks of touches: refused at the door if no job can come of them, and no hindrance later if one slips through."""

from typing import Final

import msgspec

from keystead.errors import DeclarationError, Invalid
from keystead.jobs import JobRef, job_list
from keystead.messaging.sending import queue_job
from keystead.patterns import Writes
from keystead.telemetry import logger

MOST_NAME: Final = 200

_log = logger("messaging.touches")


def check_callback(callback: JobRef | None) -> None:
    """Refuse a job without a name, or for a queue that there cannot be."""
    if callback is None:
        return
    if not 0 < len(callback.name) <= MOST_NAME:
        raise Invalid(f"a callback names a job with 1 to {MOST_NAME} characters")
    try:
        job_list(callback.queue if isinstance(callback.queue, str) else "")
    except DeclarationError:
        raise Invalid(f"callback {callback.name}: a queue is named by text without colons, braces and control "
                      f"characters") from None


def call_back(writes: Writes, uid: str, callback: JobRef | str | None, now: float) -> str:
    """Queue the callback of a touch that ends, given as it is or as it was stored; says what became of it.

    One that no job can come of is an error in the log and nothing else: the touch has to end, and others after it.
    """
    if not callback:
        return "none"
    try:
        ref = msgspec.json.decode(callback, type=JobRef) if isinstance(callback, str) else callback
        queue_job(writes, ref, None, now)
    except (msgspec.DecodeError, DeclarationError) as error:
        _log.error("the callback of a touch cannot be queued", uid=uid, error=type(error).__name__)
        return "cannot be queued"
    return "queued"

"""How a job ended, and what is written of it."""

from dataclasses import dataclass

import msgspec

from keystead.errors import Invalid
from keystead.jobs.callbacks import callback_record
from keystead.jobs.models import EndedStatus, JobOptions, JobRecord, JobRef
from keystead.jobs.records import new_uid

NO_OPTIONS = JobOptions()


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended: a failed one has an ``error``.

    ``seconds`` is how long its last try took, None if it never began; ``reason`` what may be told of the error where no
    personal data may stand.
    """

    status: EndedStatus
    error: str = ""
    result: str = ""
    attempts: int = 1
    follow: JobRef | None = None
    seconds: float | None = None
    reason: str = ""

    def state(self, record: JobRecord, worker: str, now: float) -> bytes:
        """The fields of its state as JSON. All that a state must have: the one before may have expired."""
        return msgspec.json.encode({
            "name": record.name, "queued_at": repr(record.queued_at), "status": self.status, "finished_at": repr(now),
            "attempts": str(self.attempts), "error": self.error, "result": self.result, "worker": worker,
        })

    def callback(self, record: JobRecord, now: float) -> bytes:
        """The record of the job that follows; empty when none does. A result too large to be told is left out."""
        if self.follow is None:
            return b""
        outcome = {"uid": record.uid, "name": record.name, "status": self.status, "attempts": self.attempts,
                   "error": self.error, "result": self.result}
        try:
            follow = callback_record(self.follow, outcome, queued_at=now, uid=new_uid())
        except Invalid:
            follow = callback_record(self.follow, {**outcome, "result": ""}, queued_at=now, uid=new_uid())
        return msgspec.json.encode(follow)

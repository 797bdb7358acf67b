"""What is written of an end."""

import os

import msgspec

from keystead.jobs import JobRef, decode_data_raw
from keystead.jobs.endings import Ending
from keystead.jobs.models import JobRecord

RECORD = JobRecord("t.a", {}, 1.5, "u")


def test_a_state_is_whole_even_if_the_one_before_has_expired() -> None:
    state = msgspec.json.decode(Ending("failed", error="no", attempts=3).state(RECORD, "w", 2.5))
    assert state == {"name": "t.a", "queued_at": "1.5", "status": "failed", "finished_at": "2.5", "attempts": "3",
                     "error": "no", "result": "", "worker": "w"}


def test_a_callback_is_told_the_outcome_without_a_result_that_is_too_large() -> None:
    assert Ending("succeeded").callback(RECORD, 2.5) == b""
    for result, told in (("1", "1"), (os.urandom(300_000).hex(), "")):
        raw = Ending("succeeded", result=result, follow=JobRef("t.b", {"x": 1})).callback(RECORD, 2.5)
        follow = msgspec.json.decode(raw, type=JobRecord)
        assert (follow.name, follow.kwargs["x"], follow.queued_at) == ("t.b", 1, 2.5) and follow.uid
        assert decode_data_raw(follow.kwargs["data_raw"])["result"] == told

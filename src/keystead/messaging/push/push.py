"""Push messages: how one is queued, and where each is."""

import re
from typing import Final

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Invalid, LimitReached
from keystead.ids import new_uid
from keystead.jobs import ROOMS_QUEUE, JobRef, check_callback
from keystead.keys import Executor
from keystead.messaging.push.keys import SENDING
from keystead.messaging.push.models import OutgoingPush, PushContents
from keystead.messaging.push.stats import TICKETS
from keystead.messaging.sending import Lane, trace
from keystead.patterns import Once, Writes
from keystead.tracing import carried

MOST_BYTES: Final = 4096  # of title, words and channel as JSON; more the provider refuses
FULL_RETRY_SECONDS: Final = 5.0
SUCCEEDED_JOB: Final = "push.succeeded"
FAILED_JOB: Final = "push.failed"
SUCCEEDED: Final = JobRef(SUCCEEDED_JOB, {}, ROOMS_QUEUE)
FAILED: Final = JobRef(FAILED_JOB, {}, ROOMS_QUEUE)

_UID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_TOKEN: Final = re.compile(r"(?:Exponent|Expo)PushToken\[[A-Za-z0-9_-]{1,100}\]")


class Push:
    """Queues push messages. Any number may be used at once; each step is atomic."""

    def __init__(self, valkey: Valkey, clock: Clock, *, trace_seconds: float = 172_800.0) -> None:
        self._valkey, self._clock, self._trace_seconds = valkey, clock, trace_seconds

    def outgoing(
        self, token: str, *, title: str, body: str, channel_id: str = "default", success: JobRef | None = None,
        failure: JobRef | None = None, uid: str = "", lane: str = "normal", user_sub: str = "",
    ) -> OutgoingPush:
        """A message that can be queued. ``Invalid`` says what is wrong with the token, the words or the jobs."""
        if not _TOKEN.fullmatch(token):
            raise Invalid("a push token reads ExponentPushToken[...], with letters, digits, _ and - between")
        contents = PushContents(title, body, channel_id)
        check_contents(contents)
        if uid and not _UID.fullmatch(uid):
            raise Invalid("the uid of a push message is made of 1 to 100 letters, digits, _ and -")
        if lane not in tuple(Lane):
            raise Invalid(f"a push message goes by the lane {', '.join(Lane)}, not by {lane[:40]!r}")
        for callback in (success, failure):
            if callback is not None:
                check_callback(callback)
        now = self._clock.now()
        return OutgoingPush(
            uid=uid or new_uid("pma"), initially_queued_at=now, last_queued_at=now, push_token=token,
            contents=contents, success_job=success or SUCCEEDED, failure_job=failure or FAILED, user_sub=user_sub,
            lane=str(lane), trace=carried(),
        )

    async def queue(
        self, token: str, *, title: str, body: str, channel_id: str = "default", success: JobRef | None = None,
        failure: JobRef | None = None, uid: str = "", lane: str = "normal", user_sub: str = "",
        limit: int | None = None,
    ) -> str:
        """Let a message be sent to a device, and return its uid. With a uid that was queued within a day, nothing is
        sent again.

        Exactly one of both jobs is run when it is settled; ``failure`` may be run before, while it can be tried again,
        and then has to call ``Failures.settle``. Without them the message is retried and otherwise only counted.
        ``LimitReached`` while ``limit`` messages wait in the lane.
        """
        push = self.outgoing(token, title=title, body=body, channel_id=channel_id, success=success, failure=failure,
                             uid=uid, lane=lane, user_sub=user_sub)
        valkey = self._valkey.lane_for(user_sub)
        writes = Writes(valkey.layout)
        self._count_queued(writes, push)
        outcome = await SENDING.queue(valkey, push, writes=writes, now=push.initially_queued_at, limit=limit,
                                      trace_seconds=self._trace_seconds)
        if outcome is Once.FULL:
            raise LimitReached(f"{limit} push messages wait already; try again later",
                               retry_after_seconds=FULL_RETRY_SECONDS)
        return push.uid

    def push_writes(self, writes: Writes, push: OutgoingPush) -> None:
        """Queue a message among the writes of someone else, who makes sure that it happens once."""
        SENDING.push(writes, push)
        self._count_queued(writes, push)
        trace(writes, push.uid, "queued", push.initially_queued_at, kept_seconds=self._trace_seconds, channel="push",
              lane=push.lane)

    async def waiting(self, on: Executor | None = None) -> int:
        """How many messages wait to be sent, over all lanes: for whoever must not send more than can be carried."""
        places = self._valkey.lanes if on is None else (on,)
        return sum([await SENDING.waiting(lane).length(place) for place in places for lane in Lane])

    @staticmethod
    def _count_queued(writes: Writes, push: OutgoingPush) -> None:
        TICKETS.tally().incr("queued", at=push.initially_queued_at).store(writes)


def check_contents(contents: PushContents) -> None:
    """``Invalid`` for words that the provider would refuse."""
    if not contents.title.strip() and not contents.body.strip():
        raise Invalid("a push message needs a title or words")
    size = len(msgspec.json.encode(contents))
    if size > MOST_BYTES:
        raise Invalid(f"a push message has at most {MOST_BYTES} bytes, this has {size}: shorten it")

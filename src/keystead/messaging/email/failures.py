"""What becomes of email that failed: it is put back or given up, and addresses that are at fault are noted."""

from email.utils import parseaddr

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import AfterFailure
from keystead.members import EmailReason, Suppression
from keystead.messaging.email.keys import SENDING
from keystead.messaging.email.models import Bounce, Delivery, EmailEvent, EmailFailure, OutgoingEmail
from keystead.messaging.email.stats import SENDS
from keystead.messaging.email.suppressed import Suppressed
from keystead.messaging.sending import Retries, retry_or_abandon
from keystead.patterns import Writes


class Failures:
    """For failure jobs: the room's own, and those of whoever gave an email another one."""

    def __init__(
        self, valkey: Valkey, clock: Clock, suppression: Suppression, suppressed: Suppressed, retries: Retries,
    ) -> None:
        self._valkey, self._clock, self._retries = valkey, clock, retries
        self._suppression, self._suppressed = suppression, suppressed

    async def retry_or_abandon(self, failure: EmailFailure) -> AfterFailure:
        """What a failure job must do for an email: put it back for later, or give it up. The same answer each time.

        ``NOTHING``: it is not to be sent again, and never was to be; the address may be at fault, see ``unreachable``.
        """
        item, info = failure.email, failure.info
        if not isinstance(item, OutgoingEmail):
            return AfterFailure.NOTHING
        now = self._clock.now()

        def retried(writes: Writes) -> None:
            SENDS.tally(now).incr("retried", at=now).store(writes)

        def abandoned(writes: Writes) -> None:
            SENDS.tally(now).incr("abandoned", at=now).store(writes)

        return await retry_or_abandon(
            self._valkey.lane_for(item.user_sub), SENDING, item, retryable=info.retryable, now=now,
            retries=self._retries,
            retry_after_seconds=info.retry_after_seconds, retried=retried, abandoned=abandoned,
        )

    async def unreachable(self, failure: EmailFailure) -> bool:
        """Note a bounce or complaint, and write to the address no more if that is due; says whether it is listed now.

        A transient bounce is only noted, until three came within thirty days. Safe to repeat.
        """
        identifier, address = failure.info.error_identifier, failure.email.email
        if identifier not in (EmailReason.BOUNCE, EmailReason.COMPLAINT):
            return False
        listed = await self._suppression.email_failed(
            address, identifier, failure.info.extra or "", cause=failure.email.uid
        )
        self._suppressed.forget(address)
        return listed

    async def bounced(self, event: EmailEvent) -> int:
        """The same for news of an email that nobody waits for any more; says how many addresses it named."""
        news = event.notification
        if isinstance(news, Delivery):
            return 0
        if isinstance(news, Bounce):
            kind, extra = EmailReason.BOUNCE, f"{news.reason.primary}/{news.reason.secondary}"
            named = news.bounced_recipients or news.destination
        else:
            kind, extra = EmailReason.COMPLAINT, news.feedback_type or ""
            named = news.complained_recipients or news.destination
        addresses = [address for text in named if "@" in (address := parseaddr(text)[1])]
        for address in addresses:
            await self._suppression.email_failed(address, kind, extra, cause=event.uid or event.message_id)
            self._suppressed.forget(address)
        return len(addresses)

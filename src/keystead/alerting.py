"""Wiring of alerts: what is watched, who looks, and how somebody is told."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import JobBook
from keystead.jobs.crew import unless_stopped
from keystead.keys import Registry
from keystead.messaging.email import Email
from keystead.messaging.email.keys import SENDING as EMAIL
from keystead.messaging.links.keys import DELAYED, TO_PERSIST
from keystead.messaging.push.keys import SENDING as PUSH
from keystead.messaging.sending import Channel, Lane, standing
from keystead.messaging.sms.keys import SENDING as SMS
from keystead.messaging.touches.keys import TO_LOG, TO_SEND
from keystead.operations import (
    MAIL_JOB,
    AlertRules,
    Alerts,
    DeadPlace,
    Delivery,
    Patrol,
    ProviderStanding,
    WaitingPlace,
    Watcher,
    Webhook,
)
from keystead.operations.models import Way
from keystead.operations.watchers import (
    DeadLettersGrow,
    MemoryHigh,
    PersistenceFailing,
    ProviderDown,
    QueueStuck,
    RotationLate,
    SqlAway,
    UndeclaredKeys,
)
from keystead.reminders.keys import QUEUED
from keystead.settings import Settings
from keystead.stats import Catalogue
from keystead.store import Database

# Whom the sandbox shows alerts to while nobody is set: mail that goes nowhere else.
SANDBOX_MAIL_TO: Final = "operator@example.com"

_CHANNELS: Final[tuple[Channel[Any], ...]] = (PUSH, SMS, EMAIL)
PLACES: Final = (
    *(WaitingPlace(channel.name, tuple(channel.waiting(lane) for lane in Lane), channel.paused_key.at())
      for channel in _CHANNELS),
    WaitingPlace("touches", (TO_SEND.queue,)),
    WaitingPlace("touch log", (TO_LOG.queue,)),
)
DEAD_PLACES: Final = (
    *(DeadPlace(channel.name, channel.work.dead) for channel in _CHANNELS),
    DeadPlace("touches", TO_SEND.dead), DeadPlace("touch log", TO_LOG.dead), DeadPlace("links", TO_PERSIST.dead),
    DeadPlace("delayed clicks", DELAYED.dead), DeadPlace("reminders", QUEUED.dead),
)


@dataclass(frozen=True, slots=True)
class Alerting:
    """Who looks and who tells. Any number of processes may let it ``work``."""

    alerts: Alerts
    patrol: Patrol
    delivery: Delivery

    async def run(self) -> None:
        """Look and tell until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.patrol.run())
            tasks.create_task(self.delivery.run())

    async def work(self, stop: asyncio.Event) -> None:
        """The same for a crew: until ``stop``."""
        await unless_stopped(stop, self.run())


def alerting(
    settings: Settings, valkey: Valkey, clock: Clock, registry: Registry, catalogue: Catalogue, database: Database
) -> Alerting:
    """Alerts as the settings say; opens nothing."""
    chosen = settings.alerts
    webhook = Webhook(chosen.webhook_url, chosen.webhook_secret) if chosen.webhook_url else None
    mail_to = chosen.mail_to or (SANDBOX_MAIL_TO if settings.email.provider == "sandbox" and webhook is None else "")
    wanted: tuple[tuple[Way, object], ...] = (("log", True), ("webhook", webhook), ("mail", mail_to))
    alerts = Alerts(valkey, clock, AlertRules(chosen.repeat_seconds, tuple(way for way, is_set in wanted if is_set)))
    patrol = Patrol(
        valkey, clock, alerts, _watchers(settings, valkey, clock, registry, catalogue, database),
        every_seconds=chosen.watch_seconds, webhook=webhook,
    )
    return Alerting(alerts, patrol, Delivery(valkey, clock, alerts, webhook=webhook, mail_to=mail_to))


def _watchers(
    settings: Settings, valkey: Valkey, clock: Clock, registry: Registry, catalogue: Catalogue, database: Database
) -> list[Watcher]:
    chosen = settings.alerts

    async def providers() -> Sequence[ProviderStanding]:
        found = []
        for channel in _CHANNELS:
            for lane in valkey.lanes_of(channel.breaker.calls):
                now = await standing(lane, channel, clock.now())
                found.append(ProviderStanding(channel.name, now.breaker != "closed", now.calls, now.failed))
        return found

    watchers: list[Watcher] = [
        SqlAway(database), PersistenceFailing(valkey), MemoryHigh(valkey, share=chosen.memory_share),
        QueueStuck(valkey, clock, PLACES, late_seconds=chosen.queue_seconds), ProviderDown(providers),
        DeadLettersGrow(valkey, clock, DEAD_PLACES, quiet_seconds=chosen.dead_letter_seconds),
        RotationLate(valkey, clock, catalogue, late_seconds=chosen.rotation_seconds),
    ]
    if chosen.audit_seconds:
        watchers.append(UndeclaredKeys(valkey, registry, every_seconds=chosen.audit_seconds))
    return watchers


def register(book: JobBook, email: Email) -> None:
    """Add the job that writes mail about alerts."""

    async def mail(uid: str, to: str, subject: str, text: str) -> None:
        await email.queue(to, subject, "notice", {"title": subject, "message": text}, uid=uid, lane=Lane.HIGH)

    book.register(MAIL_JOB, mail)

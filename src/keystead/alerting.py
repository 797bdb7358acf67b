"""Wiring of alerts: what is watched, who looks, and how somebody is told."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from keystead.backup.lateness import FAILED, LATE_SECONDS, BackupLate
from keystead.clock import Clock, real
from keystead.engine import Valkey
from keystead.jobs import JobBook
from keystead.jobs.crew import unless_stopped
from keystead.jobs.keys import HOT_KEYS
from keystead.keys import ListKey, Registry
from keystead.messaging.email import Email
from keystead.messaging.email.keys import SENDING as EMAIL
from keystead.messaging.push.keys import SENDING as PUSH
from keystead.messaging.sending import Channel, Lane, standing
from keystead.messaging.sms.keys import SENDING as SMS
from keystead.messaging.touches.keys import TO_LOG, TO_SEND
from keystead.operations import (
    MAIL_JOB,
    AlertRules,
    Alerts,
    Census,
    DeadPlace,
    Delivery,
    Patrol,
    ProviderStanding,
    WaitingPlace,
    Watcher,
    Webhook,
)
from keystead.operations.delivery import UNDELIVERED
from keystead.operations.heartbeat import Heartbeat
from keystead.operations.models import Way
from keystead.operations.patrol import Retired
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
_DEAD: Final = ":dead"


@dataclass(frozen=True, slots=True)
class Alerting:
    """Who looks and who tells. Any number of processes may let it ``work``."""

    alerts: Alerts
    patrol: Patrol
    delivery: Delivery
    census: Census
    audit_seconds: float
    heartbeat: Heartbeat | None = None

    async def run(self) -> None:
        """Look and tell until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            if self.audit_seconds:
                tasks.create_task(self.census.run(self.audit_seconds))
            tasks.create_task(self.patrol.run())
            tasks.create_task(self.delivery.run())
            if self.heartbeat is not None:
                tasks.create_task(self.heartbeat.run())

    async def work(self, stop: asyncio.Event) -> None:
        """The same for a crew: until ``stop``."""
        await unless_stopped(stop, self.run())


def alerting(
    settings: Settings, valkey: Valkey, clock: Clock, registry: Registry, catalogue: Catalogue, database: Database
) -> Alerting:
    """Alerts as the settings say; opens nothing."""
    chosen = settings.alerts
    webhook = Webhook(chosen.webhook_url, chosen.webhook_secret) if chosen.webhook_url else None
    alerts, census = Alerts(valkey, clock, alert_rules(settings)), Census(valkey, registry, clock)
    patrol = Patrol(
        valkey, clock, alerts, _watchers(settings, valkey, clock, registry, catalogue, database, census),
        every_seconds=chosen.watch_seconds, webhook=webhook, retired=retired(settings, alerts.rules),
    )
    delivery = Delivery(valkey, clock, alerts, webhook=webhook, mail_to=_mail_to(settings))
    heartbeat = None
    if chosen.heartbeat_url:
        heartbeat = Heartbeat(valkey, clock, alerts, chosen.heartbeat_url, database)
    return Alerting(alerts, patrol, delivery, census, chosen.audit_seconds, heartbeat)


def retired(settings: Settings, rules: AlertRules) -> tuple[Retired, ...]:
    """What nobody watches for with these settings, so that what opened before they were changed does not stay open."""
    found = [Retired(UNDELIVERED, f"nobody is told by {way} any more", subject=way)
             for way in get_args(Way) if way not in rules.ways]
    if not settings.alerts.audit_seconds:
        found.append(Retired(UndeclaredKeys.kind, "undeclared keys are not looked for (alerts.audit_seconds is 0)"))
    if not settings.backup.directory:
        why = "no backups are taken by the calendar (backup.directory is empty)"
        # Another process may take them: it says once a day how that went.
        found += [Retired(BackupLate.kind, why), Retired(FAILED, why, LATE_SECONDS)]
    return tuple(found)


def alert_rules(settings: Settings) -> AlertRules:
    """How often and by which ways somebody is told."""
    wanted: tuple[tuple[Way, str], ...] = (
        ("log", "log"), ("webhook", settings.alerts.webhook_url), ("mail", _mail_to(settings)),
    )
    return AlertRules(settings.alerts.repeat_seconds, tuple(way for way, where in wanted if where))


def _mail_to(settings: Settings) -> str:
    is_sandbox = settings.email.provider == "sandbox" and not settings.alerts.webhook_url
    return settings.alerts.mail_to or (SANDBOX_MAIL_TO if is_sandbox else "")


def _watchers(
    settings: Settings, valkey: Valkey, clock: Clock, registry: Registry, catalogue: Catalogue, database: Database,
    census: Census,
) -> list[Watcher]:
    chosen = settings.alerts

    async def providers() -> Sequence[ProviderStanding]:
        found = []
        for channel in _CHANNELS:
            for lane in valkey.lanes_of(channel.breaker.calls):
                now = await standing(lane, channel, real(clock).now())
                found.append(ProviderStanding(channel.name, now.breaker != "closed", now.calls, now.failed))
        return found

    watchers: list[Watcher] = [
        SqlAway(database), PersistenceFailing(valkey), MemoryHigh(valkey, share=chosen.memory_share),
        QueueStuck(valkey, clock, PLACES, late_seconds=chosen.queue_seconds), ProviderDown(providers),
        DeadLettersGrow(valkey, clock, dead_places(registry), quiet_seconds=chosen.dead_letter_seconds),
        RotationLate(valkey, clock, catalogue, late_seconds=chosen.rotation_seconds),
    ]
    if chosen.audit_seconds:
        watchers.append(UndeclaredKeys(census, chosen.audit_seconds))
    if settings.backup.directory:
        watchers.append(BackupLate(valkey))
    return watchers


def dead_places(registry: Registry) -> list[DeadPlace]:
    """Every list of dead letters that is declared, by the name of what they come from; queues of jobs aside."""
    return [DeadPlace(one.pattern.removesuffix(_DEAD), one.at()) for one in registry.declarations
            if isinstance(one, ListKey) and one.pattern.endswith(_DEAD) and not one.template.names
            and one is not HOT_KEYS.work.dead_key]


def register(book: JobBook, email: Email) -> None:
    """Add the job that writes mail about alerts."""

    async def mail(uid: str, to: str, subject: str, text: str) -> None:
        await email.queue(to, subject, "notice", {"title": subject, "message": text}, uid=uid, lane=Lane.HIGH)

    book.register(MAIL_JOB, mail)

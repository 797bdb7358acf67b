"""What the overview makes of what it read: how each part is, what needs somebody, and what happened lately."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import quote

from keystead.jobs.inspection_views import RecurringView
from keystead.jobs.tenants import TenantView
from keystead.operations.models import Alert
from keystead.web.dashboard.jobs_shown import job_address, plural
from keystead.web.dashboard.messages_look import NAMES, MessagesLook
from keystead.web.dashboard.overview_look import OverviewLook, of_the_program
from keystead.web.dashboard.shown import shown_ago, shown_bytes, shown_count, shown_duration, shown_share
from keystead.web.dashboard.tenants_page import noisy
from keystead.web.facts import ServerFacts

Tone = Literal["good", "warn", "bad", "idle"]

# A run that is so late was forgotten by the schedule; before that it may only be queued.
LATE_SECONDS: Final = 120.0
MEMORY_HIGH: Final = 0.85
SHOWN_LATELY: Final = 9
SAME_SECONDS: Final = 60.0
# Where an alert of a kind can be mended.
MENDED: Final = {
    "queue_stuck": "/jobs", "provider_down": "/providers", "rotation_late": "/stats", "memory_high": "/keys",
    "audit_findings": "/keys", "dead_letters": "/jobs", "sql_away": "/log", "tenant_noisy": "/tenants",
}
# Runs end all the time; more of them would leave no room for what people did.
SHOWN_RUNS: Final = 2


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the installation: how it is, in a word or two, and where to look."""

    name: str
    tone: Tone
    says: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that needs somebody. ``does``: what can be done about it where ``address`` leads."""

    key: str
    tone: Tone
    title: str
    says: str
    address: str
    does: str = "Look"


@dataclass(frozen=True, slots=True)
class Lately:
    """Something that happened."""

    at: float
    tone: Tone
    what: str
    says: str
    address: str
    times: int = 1


def parts(
    look: OverviewLook | None, facts: ServerFacts | None, *, away: bool, dialect: str, now: float,
    speed: float = 1.0,
) -> list[Part]:
    """The health line: each part that can fail by itself. ``speed``: how fast the installation's clock runs."""
    found = [_server(facts, away), _disk(facts)]
    if look is None:
        return found
    found.append(Part("Database", "bad", "does not answer", "/log") if look.sql_ms is None else
                 Part("Database", "good", f"{DIALECTS.get(dialect, dialect)}, {look.sql_ms:.0f} ms"))
    found.append(_workers(look))
    found.append(_schedule(look, now, speed))
    found.append(_providers(look.messages))
    found.append(_backup(look, now))
    critical = sum(alert.severity == "critical" for alert in look.alerts)
    found.append(Part("Alerts", "bad" if critical else "warn" if look.alerts else "good",
                      f"{len(look.alerts)} open" if look.alerts else "none open", "#attention"))
    return found


DIALECTS: Final = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def _server(facts: ServerFacts | None, away: bool) -> Part:
    if away:
        return Part("Server", "bad", "away", "/keys")
    if facts is None:
        return Part("Server", "idle", "not asked yet", "/keys")
    if facts.loading:
        return Part("Server", "warn", "loads its data", "/keys")
    return Part("Server", "good", f"{facts.product} {facts.version}", "/keys")


def _disk(facts: ServerFacts | None) -> Part:
    if facts is None:
        return Part("On disk", "idle", "not known yet")
    return Part("On disk", "good" if facts.persistence_ok else "bad", facts.persistence)


def _workers(look: OverviewLook) -> Part:
    alive = len(look.alive)
    if not alive:
        return Part("Workers", "bad", "none alive", "/jobs")
    running = sum(worker.state.running for worker in look.alive if worker.state is not None)
    busy = f", {shown_count(running)} at work" if running else ""
    return Part("Workers", "good", f"{alive} alive{busy}", "/jobs")


def _late(look: OverviewLook, now: float, speed: float) -> list[RecurringView]:
    return [one for one in look.recurring if one.next_at < now - LATE_SECONDS * speed]


def _schedule(look: OverviewLook, now: float, speed: float) -> Part:
    if not look.recurring:
        return Part("Schedule", "idle", "nothing is planned", "/jobs")
    if late := _late(look, now, speed):
        return Part("Schedule", "warn", f"{plural(len(late), 'run')} late", "/jobs")
    left = look.recurring[0].next_at - now
    return Part("Schedule", "good", f"next run in {shown_duration(left)}" if left >= 1 else "next run now", "/jobs")


def _providers(messages: MessagesLook | None) -> Part:
    if messages is None:
        return Part("Providers", "idle", "not known", "/providers")
    broken = [NAMES[one.name] for one in messages.channels if one.breaker != "closed"]
    if broken:
        return Part("Providers", "bad", f"{' and '.join(broken)} down", "/providers")
    held = [NAMES[one.name] for one in messages.channels if one.is_held]
    if held:
        return Part("Providers", "warn", f"{' and '.join(held)} paused", "/messages")
    return Part("Providers", "good", f"{len(messages.channels)} answer", "/providers")


def _backup(look: OverviewLook, now: float) -> Part:
    last = look.backup
    if last is None or not (last.taken_at or last.failed_at):
        return Part("Backup", "idle", "none taken yet")
    if last.failed_at > last.taken_at:
        return Part("Backup", "bad", f"failed {shown_ago(now - last.failed_at)}", "/log")
    return Part("Backup", "good", f"{shown_ago(now - last.taken_at)}, {shown_bytes(last.bytes)}")


def verdict(look: OverviewLook | None, found: list[Part], troubles: list[Trouble]) -> tuple[str, Tone]:
    """The one thing to know."""
    if any(part.name == "Server" and part.tone == "bad" for part in found):
        return "The server is away", "bad"
    if look is None:
        return "Looking…", "idle"
    bad = sum(trouble.tone == "bad" for trouble in troubles)
    if bad:
        return f"{plural(bad, 'thing')} {'needs' if bad == 1 else 'need'} attention", "bad"
    if troubles:
        return f"Works, {plural(len(troubles), 'thing')} to look at", "warn"
    return "Everything works", "good"


def troubles(
    look: OverviewLook | None, facts: ServerFacts | None, *, stray_keys: int = 0, now: float = 0.0,
    speed: float = 1.0,
) -> list[Trouble]:
    """What is stuck or failing, worst first. What an open alert says already is not said twice."""
    if look is None:
        return []
    found = [_alert(alert, now) for alert in look.alerts]
    kinds = {alert.kind for alert in look.alerts}
    if look.sql_ms is None:
        found.append(Trouble("sql", "bad", "The database does not answer", look.sql_problem, "/log"))
    if facts is not None and not facts.persistence_ok:
        found.append(Trouble("disk", "bad", "The server cannot write to disk", facts.persistence, "/log"))
    if facts is not None and "memory_high" not in kinds and facts.memory_limit_bytes and (
            facts.memory_bytes >= MEMORY_HIGH * facts.memory_limit_bytes):
        found.append(Trouble(
            "memory", "warn", "Memory is nearly used up", f"{shown_bytes(facts.memory_bytes)} of "
            f"{shown_bytes(facts.memory_limit_bytes)}", "/keys?order=memory", "See what weighs most"))
    dead = " ".join(alert.subject for alert in look.alerts if alert.kind == "dead_letters").split()
    found += _job_troubles(look, dead)
    if late := _late(look, now, speed):
        found.append(Trouble("late", "warn", f"{plural(len(late), 'recurring job')} late", "Planned, and not queued: "
                             f"{', '.join(one.title for one in late[:3])}.", "/jobs", "See which"))
    if look.messages is not None:
        found += _message_troubles(look.messages, kinds, dead)
    if (loud := noisy_tenant(look.tenants)) is not None and "tenant_noisy" not in kinds:
        found.append(Trouble(
            f"tenant {loud.tenant}", "warn", f"{loud.tenant} is a noisy tenant",
            f"It got {shown_share(loud.share)} of what was served in the last minute"
            + (f", {shown_count(loud.ready)} more wait." if loud.ready else "."),
            f"/tenants?tenant={quote(loud.tenant, safe='')}", "See or pause it"))
    if given_up := sum(one.dead for one in look.tenants):
        found.append(Trouble("tenants dead", "warn", f"{plural(given_up, 'job')} of tenants given up",
                             "They can be tried again, tenant by tenant.", "/tenants", "See whose, retry"))
    if stray_keys and "audit_findings" not in kinds:
        found.append(Trouble("stray", "warn", f"{plural(stray_keys, 'key')} that nothing declares",
                             "Another program, a hand, or code that forgot to say.", "/keys", "See them"))
    return sorted(found, key=lambda one: one.tone != "bad")


def _alert(alert: Alert, now: float) -> Trouble:
    lasts = f". Open for {shown_duration(now - alert.opened_at)}" if now > alert.opened_at else ""
    known = ", somebody looks after it" if alert.acked_at is not None else ""
    return Trouble(
        f"alert {alert.kind} {alert.subject}", "bad" if alert.severity == "critical" else "warn",
        f"{alert.kind.replace('_', ' ').capitalize()}: {alert.subject}", f"{alert.says}{lasts}{known}",
        _mended(alert), "Mend it")


def _mended(alert: Alert) -> str:
    address = MENDED.get(alert.kind, "/log")
    of_messages = ("sms", "push", "email", "touch", "remind", "link")
    return "/messages" if address == "/jobs" and any(name in alert.subject for name in of_messages) else address


def _job_troubles(look: OverviewLook, dead: list[str]) -> list[Trouble]:
    found = []
    for queue in of_the_program(look.queues):
        address = "/jobs"
        if queue.queued and not look.alive:
            found.append(Trouble(f"idle {queue.name}", "bad", f"Jobs wait in {queue.name}, and nobody works",
                                 f"{plural(queue.queued, 'job')}. Start a worker: keystead worker", address))
        if queue.paused:
            found.append(Trouble(f"paused {queue.name}", "warn", f"The queue {queue.name} is paused",
                                 f"{plural(queue.queued, 'job waits', 'jobs wait')}", address, "Resume it"))
        if queue.dead and queue.name not in dead:
            found.append(Trouble(
                f"dead {queue.name}", "bad", f"{plural(queue.dead, 'job')} of the queue {queue.name} failed for good",
                "Grouped by their error; they can be tried again.", "/jobs", "See why, retry"))
    return found


def _message_troubles(look: MessagesLook, kinds: set[str], dead: list[str]) -> list[Trouble]:
    found = []
    for one in look.channels:
        name, waits = NAMES[one.name], plural(one.waiting, "message waits", "messages wait")
        if one.breaker != "closed" and "provider_down" not in kinds:
            found.append(Trouble(f"breaker {one.name}", "bad", f"The provider of {name.lower()} messages fails",
                                 f"{waits} until it is back.", "/providers", "See what it says"))
        if one.is_held:
            found.append(Trouble(f"held {one.name}", "warn", f"{name} messages are paused", f"{waits}.", "/messages",
                                 "Resume"))
        if one.dead and one.name not in dead:
            found.append(Trouble(
                f"given up {one.name}", "bad", f"{plural(one.dead, f'{name.lower()} message')} given up",
                "Put aside with the reason; they can be tried again.", "/messages", "See why, retry"))
        if one.overdue:
            late = plural(one.overdue, f"{name.lower()} message")
            found.append(Trouble(f"overdue {one.name}", "warn", f"News of {late} is overdue",
                                 "The provider has not said what became of them.", "/messages"))
    return found


def noisy_tenant(tenants: Sequence[TenantView]) -> TenantView | None:
    """Who asks for most while others want something too; None if nobody does, or it is paused already."""
    found = noisy(tenants)
    return None if found is None or found.paused else found


def lately(look: OverviewLook | None, speed: float = 1.0) -> list[Lately]:
    """The newest of what happened, newest first. People are told of without their names."""
    if look is None:
        return []
    found = [Lately(event.at, "good" if event.event == "cleared" else "bad" if event.severity == "critical" else "warn",
                    f"Alert {event.event}", f"{event.kind.replace('_', ' ')}: {event.subject}", "#attention")
             for event in look.told]
    found += [Lately(one.at, "good", f"{NAMES.get(one.channel, one.channel)} arrived", one.event,
                     f"/messages/trace?uid={quote(one.uid, safe='')}") for one in look.arrived]
    found += [Lately(at, "idle", "Somebody joined", "", "/people") for at in look.joined]
    found += [Lately(job.dead_at or 0.0, "bad", "Job failed", job.name or "not a job",
                     job_address(job.uid) if job.uid else "/jobs") for job in look.failed]
    found += [Lately(run.finished_at, "idle", "Run ended", run.name, "/stats/job-runs")
              for run in sorted(look.runs, key=lambda run: -(run.finished_at or 0))[:SHOWN_RUNS] if run.finished_at]
    return together(sorted(found, key=lambda one: -one.at), SAME_SECONDS * speed)[:SHOWN_LATELY]


def together(found: list[Lately], seconds: float = SAME_SECONDS) -> list[Lately]:
    """The same thing several times within this time is one line, where it happened last."""
    lines: list[Lately] = []
    for one in found:
        same = next((place for place, line in enumerate(lines) if (line.what, line.says) == (one.what, one.says)
                     and line.at - one.at <= seconds), None)
        if same is None:
            lines.append(one)
        else:
            lines[same] = replace(lines[same], times=lines[same].times + 1)
    return lines

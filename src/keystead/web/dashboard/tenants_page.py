"""Who shares the fair queue: what each tenant asks for, gets and waits; the noisy one, and a switch that pauses it."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from nicegui import ui

from keystead.app import Running
from keystead.jobs import Tenants, TenantView
from keystead.jobs.tenants import PAUSED
from keystead.jobs.tenants_waiting import waiting_since
from keystead.patterns.fairqueue_values import Counts
from keystead.telemetry import logger
from keystead.web.dashboard.jobs_shown import number, plural
from keystead.web.dashboard.live_table import Action, Column, LiveTable, Row
from keystead.web.dashboard.operator_frame import bar, operator_frame, operator_head, problem_banner, verdict
from keystead.web.dashboard.shown import NOTHING, chip, shown_count, shown_duration, shown_share
from keystead.web.dashboard.stats_frame import keep_looking
from keystead.web.dashboard.stepping_in import SteppingIn
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import StatsWatch

SHOWN_TENANTS: Final = 50
# Who asks for so much of everything, beside others who ask too, is noisy.
NOISY_SHARE: Final = 0.5
LEAST_ASKED: Final = 10.0
COLUMNS: Final = (
    Column("Tenant"), Column("Got", "op-share"), Column("Asked for", "op-share mid"), Column("Waiting", "num"),
    Column("First waits", "when mid"), Column("Running", "num mid"),
)
FIRST_STEPS: Final = """<div class="ks-first"><h2>No tenant has asked for anything yet</h2>
<p>Work of many customers goes into the fair queue, in the name of a tenant. Each of them gets its turn, so one with a
hundred thousand jobs delays the others by one turn.</p>
<pre class="ks-code">await FairJobs(Jobs(running.valkey)).enqueue("acme", "reports.make", {"month": 3}, cost=2)</pre>
<p>or <span class="mono">POST /api/1/tenants/acme/jobs</span>. This page moves by itself as soon as there is
something to show.</p></div>"""

_log = logger("web")


@dataclass(frozen=True, slots=True)
class TenantsLook:
    """All of it at about one moment. ``since``: when the first in line of a tenant was enqueued."""

    totals: Counts
    tenants: tuple[TenantView, ...]
    since: dict[str, float]


async def look_at(running: Running, also: str = "") -> TenantsLook:
    """A few round trips for any number of tenants. ``also``: one who is shown whatever they do."""
    tenants = Tenants(running.valkey, running.clock)
    found = await tenants.busiest(SHOWN_TENANTS)
    if also and also not in {each.tenant for each in found}:
        found.insert(0, await tenants.get(also))
    waiting = [each.tenant for each in found if each.ready]
    return TenantsLook(await tenants.totals(), tuple(found), await waiting_since(running.valkey, waiting))


def noisy(tenants: Sequence[TenantView]) -> TenantView | None:
    """Who asks for more than all the others together, if somebody does; else nobody."""
    if len(tenants) < 2:
        return None
    asked = sum(each.asked for each in tenants)
    waiting = sum(each.ready for each in tenants)
    loudest = max(tenants, key=lambda each: (each.asked, each.ready))
    if asked >= LEAST_ASKED and loudest.asked > NOISY_SHARE * asked:
        return loudest
    longest = max(tenants, key=lambda each: each.ready)
    return longest if waiting >= LEAST_ASKED and longest.ready > NOISY_SHARE * waiting else None


async def show_tenants(running: Running, sampler: Sampler, watch: StatsWatch, wanted: str = "") -> None:
    """Build the page for one viewer; it then moves by itself. ``wanted``: a tenant to begin with."""

    async def read(_: TenantsLook | None) -> TenantsLook:
        return await look_at(running, wanted)

    shared = watch.share(("tenants", wanted), read)
    await shared.first()
    with operator_frame(running, sampler, "/tenants"):
        step_in = SteppingIn()
        state = operator_head("Tenants", "The fair queue: each tenant gets its turn, whatever the others ask for.")
        problem = problem_banner(sampler, "Tenants", shared)
        says = ui.html("", sanitize=False).props("role=status data-noisy")
        with ui.element("section").classes("ks-card hidden") as first:
            ui.html(FIRST_STEPS, sanitize=False)
        with ui.element("section").classes("ks-card").props('aria-label="Tenants"') as card:
            with ui.element("div").classes("ks-card-head"):
                ui.html("Busiest first, shares of the last minute", sanitize=True, tag="h2")
                counted = ui.html("", sanitize=True).classes("quiet")
            table = LiveTable(COLUMNS, act=lambda tenant, action: act(tenant, action), classes="op-tenants")

    async def act(tenant: str, action: str) -> None:
        tenants = Tenants(running.valkey, running.clock)
        if action == "resume":
            await step_in.tried(_resumed(tenants, tenant))
        elif action == "retry":
            await step_in.tried(_retried(tenants, tenant))
        elif await step_in.confirmed(
            f"Pause the tenant {tenant}?", "Nothing more of it is run until somebody resumes it. What runs goes on to "
            "its end; what waits stays, in order; what it enqueues is taken, up to its limit. The others are not "
            "touched.",
            f"Pause {tenant}",
        ):
            await step_in.tried(_paused(tenants, tenant))
        await shared.read()
        look()

    def look() -> None:
        problem()
        found = shared.value
        if found is None:
            return
        bare = not found.tenants
        first.classes(remove="hidden") if bare else first.classes(add="hidden")
        card.classes(add="hidden") if bare else card.classes(remove="hidden")
        state(*standing(found))
        words = noisy_html(found)
        if says.content != words:
            says.set_content(words)
        counted.set_content(totals_said(found))
        now = running.clock.now()
        everything = sum(each.asked for each in found.tenants)
        table.show([tenant_row(each, found.since.get(each.tenant), now, everything) for each in found.tenants])

    keep_looking(look, shared)


def standing(look: TenantsLook) -> tuple[str, str]:
    """The one thing to know, and its tone."""
    if paused := sum(each.paused for each in look.tenants):
        return f"{shown_count(paused)} paused", "warn"
    if look.totals.dead:
        return f"{plural(look.totals.dead, 'job')} given up", "warn"
    if look.totals.leased:
        return "Serving", ""
    return (f"{shown_count(look.totals.ready)} waiting", "") if look.totals.ready else ("Nothing waits", "idle")


def noisy_html(look: TenantsLook) -> str:
    found = noisy(look.tenants)
    if found is None:
        return ""
    asked = sum(each.asked for each in look.tenants)
    name = f'<b class="mono">{escape(found.tenant)}</b>'
    waits = f" {plural(found.ready, 'job')} of it wait." if found.ready else ""
    if asked and found.asked:
        return verdict(f"{name} is the noisy one: it asked for {shown_share(found.asked / asked)} of everything in the "
                       f"last minute, and got {shown_share(found.share)}.{waits}", "warn")
    return verdict(f"{name} is the noisy one: {plural(found.ready, 'job')} of the "
                   f"{shown_count(sum(each.ready for each in look.tenants))} that wait are its own.", "warn")


def totals_said(look: TenantsLook) -> str:
    totals = look.totals
    return (f"{shown_count(totals.ready)} ready, {shown_count(totals.delayed)} delayed, {shown_count(totals.leased)} "
            f"running, {shown_count(totals.dead)} given up; {shown_count(totals.acked)} done so far")


def tenant_row(view: TenantView, since: float | None, now: float, everything: float) -> Row:
    paused = "".join(f" {chip('paused' if pause.reason == PAUSED else pause.reason, 'warn')}" for pause in view.pauses)
    asked = view.asked / everything if everything else 0.0
    by_hand = any(pause.reason == PAUSED for pause in view.pauses)
    action = Action("resume", "Resume", "accent", f"Resume {view.tenant}") if by_hand else \
        Action("pause", "Pause", "", f"Pause {view.tenant}")
    retry = (Action("retry", "Retry dead", "", f"Retry the dead jobs of {view.tenant}"),) if view.dead else ()
    more = ", ".join(text for count, text in (
        (view.delayed, f"{shown_count(view.delayed)} delayed"), (view.parked, f"{shown_count(view.parked)} parked"),
        (view.dead, f'<span class="bad">{shown_count(view.dead)} given up</span>'),
    ) if count)
    below = f'<div class="quiet">{more}</div>' if more else ""
    return Row(view.tenant, (
        f'<span class="mono">{escape(view.tenant)}</span>{paused}{below}',
        f'{bar(view.share)}<span>{shown_share(view.share)}</span>',
        f'{bar(asked, "quiet")}<span>{shown_share(asked)}</span>', number(view.ready),
        NOTHING if since is None else f"{shown_duration(max(0.0, now - since))}", number(view.running),
    ), (action, *retry))


async def _paused(tenants: Tenants, tenant: str) -> str:
    await tenants.pause(tenant)
    _log.info("a tenant was paused by hand", tenant=tenant)
    return f"{tenant} is paused."


async def _resumed(tenants: Tenants, tenant: str) -> str:
    if not await tenants.resume(tenant):
        return f"{tenant} was not paused any more."
    _log.info("a tenant was resumed by hand", tenant=tenant)
    return f"{tenant} goes on."


async def _retried(tenants: Tenants, tenant: str) -> str:
    return f"{plural(await tenants.retry_dead(tenant), 'job')} of {tenant} tried again."

"""Putting the dashboard onto the assembled server. The only place that registers pages."""

from collections.abc import Awaitable, Callable
from functools import partial

from fastapi import FastAPI, Request
from nicegui import ui
from starlette.responses import RedirectResponse, Response

from keystead.app import Running
from keystead.edge import USERS_SCOPE, Caller
from keystead.ids import UserSub
from keystead.jobs import Inspection, Tenants
from keystead.members.searching import find_people
from keystead.operations import Census
from keystead.telemetry import counts
from keystead.web import searching
from keystead.web.dashboard.find_page import hints, meant, pages_named, show_found
from keystead.web.dashboard.job_page import show_job
from keystead.web.dashboard.jobs_page import show_jobs
from keystead.web.dashboard.key_page import show_key
from keystead.web.dashboard.keys_page import show_keys
from keystead.web.dashboard.messages import show_messages
from keystead.web.dashboard.messages_look import trace_address
from keystead.web.dashboard.messages_person import show_nobody
from keystead.web.dashboard.messages_trace import show_trace
from keystead.web.dashboard.mounting_operator import mount_operator
from keystead.web.dashboard.outside import NotPages, refuse_plainly
from keystead.web.dashboard.overview import Rates, show_overview
from keystead.web.dashboard.pattern_page import show_pattern
from keystead.web.dashboard.people_page import person_address, show_people
from keystead.web.dashboard.person_page import show_person
from keystead.web.dashboard.reminders import show_reminders
from keystead.web.dashboard.sandbox_page import show_sandbox
from keystead.web.dashboard.settings_page import show_settings
from keystead.web.dashboard.stats_page import show_stats
from keystead.web.dashboard.stats_pages import show_one
from keystead.web.dashboard.stats_range import StatsRange
from keystead.web.dashboard.stats_runs import show_runs
from keystead.web.dashboard.templates_page import show_templates
from keystead.web.job_rates import JobRateSampler
from keystead.web.jobs_watch import JobsWatch
from keystead.web.message_rates import MessageRateSampler
from keystead.web.request_rates import RequestRateSampler
from keystead.web.sampler import Sampler
from keystead.web.searching import MESSAGE_UIDS
from keystead.web.stats_watch import StatsWatch

ADMIN_SCOPE = "admin"
KEYS_SCOPE = "keys"
JOBS_SCOPE = "jobs"
STATS_SCOPE = "stats"
MESSAGES_SCOPE = "messaging"
TITLE = "Keystead"
PAGE_SECONDS = 60.0  # a busy machine shows a page late; after NiceGUI's three seconds it would show none
FAVICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#0f9488" stroke-width="2.1" '
    'stroke-linecap="round" stroke-linejoin="round"><path d="M4 20V9.5L12 4l8 5.5V20"/>'
    '<circle cx="12" cy="12.2" r="2.1"/><path d="M12 14.3V20"/></svg>'
)


def mount(app: FastAPI, running: Running, sampler: Sampler, census: Census) -> list[Callable[[], Awaitable[None]]]:
    """Serve the pages under ``/``, and give back what must run in the background for them.

    There is one dashboard per process: a second mount takes the pages over.
    """
    inspection = Inspection(running.valkey, running.clock)
    rates = JobRateSampler(inspection, running.clock, Tenants(running.valkey, running.clock))
    watch, stats = JobsWatch(running.valkey, inspection), StatsWatch()
    message_rates = MessageRateSampler(running.valkey, running.clock)
    request_rates = RequestRateSampler(counts, running.clock)
    all_rates = Rates(request_rates, rates, message_rates)
    page = partial(ui.page, response_timeout=PAGE_SECONDS)

    @page("/", title=TITLE)
    async def overview(request: Request) -> Response | None:
        # It shows something of everything, so it is for those who may see everything there is to operate.
        if (refusal := _refusal(request, ADMIN_SCOPE)) is not None:
            return refusal
        await show_overview(running, sampler, census, stats, inspection, all_rates)
        return None

    @page("/keys", title=f"Keys · {TITLE}")
    def keys(request: Request, order: str = "", personal: bool = False) -> Response | None:
        if (refusal := _refusal(request, KEYS_SCOPE)) is not None:
            return refusal
        show_keys(running, sampler, census, order=order, personal=personal)
        return None

    @page("/pattern", title=f"Pattern · {TITLE}")
    async def pattern(request: Request, name: str = "") -> Response | None:
        if (refusal := _refusal(request, KEYS_SCOPE)) is not None:
            return refusal
        await show_pattern(running, sampler, census, name)
        return None

    @page("/key", title=f"Key · {TITLE}")
    async def key(request: Request, key: str = "") -> Response | None:
        if (refusal := _refusal(request, KEYS_SCOPE)) is not None:
            return refusal
        await show_key(running, sampler, key)
        return None

    @page("/jobs", title=f"Jobs · {TITLE}")
    async def jobs(request: Request) -> Response | None:
        if (refusal := _refusal(request, JOBS_SCOPE)) is not None:
            return refusal
        await show_jobs(running, sampler, watch, rates)
        return None

    @page("/jobs/{uid:path}", title=f"Job · {TITLE}")
    async def job(request: Request, uid: str) -> Response | None:
        if (refusal := _refusal(request, JOBS_SCOPE)) is not None:
            return refusal
        if not uid:
            return RedirectResponse("/jobs", 303)
        await show_job(running, sampler, watch, uid)
        return None

    @page("/stats", title=f"Statistics · {TITLE}")
    async def statistics(request: Request) -> Response | None:
        if (refusal := _refusal(request, STATS_SCOPE)) is not None:
            return refusal
        await show_stats(running, sampler, stats, _days_of(request))
        return None

    @page("/stats/job-runs", title=f"Job runs · {TITLE}")
    async def job_runs(request: Request) -> Response | None:
        if (refusal := _refusal(request, STATS_SCOPE)) is not None:
            return refusal
        await show_runs(running, sampler, stats)
        return None

    @page("/stats/{name:path}", title=f"Statistics · {TITLE}")
    async def statistic(request: Request, name: str) -> Response | None:
        if (refusal := _refusal(request, STATS_SCOPE)) is not None:
            return refusal
        if not name:
            return RedirectResponse("/stats", 303)
        await show_one(running, sampler, stats, name, _days_of(request), request.query_params)
        return None

    @page("/messages", title=f"Messages · {TITLE}")
    async def messages(request: Request) -> Response | None:
        if (refusal := _refusal(request, MESSAGES_SCOPE)) is not None:
            return refusal
        await show_messages(running, sampler, stats, message_rates)
        return None

    @page("/messages/person", title=f"Person · {TITLE}")
    async def person(request: Request, user: str = "") -> Response | None:
        if (refusal := _refusal(request, MESSAGES_SCOPE)) is not None:
            return refusal
        asked = user.strip()
        if not asked or asked.startswith(MESSAGE_UIDS):
            return RedirectResponse(trace_address(asked) if asked else "/messages", 303)
        found = await find_people(running.database, asked)
        if len(found) == 1:
            return RedirectResponse(person_address(found[0]), 303)
        show_nobody(running, sampler, asked, found)
        return None

    @page("/people", title=f"People · {TITLE}")
    async def people(request: Request, q: str = "", before: int | None = None) -> Response | None:
        if (refusal := _refusal(request, USERS_SCOPE)) is not None:
            return refusal
        # A number that no database has is after everybody.
        await show_people(running, sampler, q[:300], before if before is None or 0 <= before < 2**63 else None)
        return None

    @page("/people/{sub:path}", title=f"Person · {TITLE}")
    async def one_person(request: Request, sub: str) -> Response | None:
        # Who they are, and what was written to them.
        if (refusal := _refusal(request, USERS_SCOPE) or _refusal(request, MESSAGES_SCOPE)) is not None:
            return refusal
        if not sub:
            return RedirectResponse("/people", 303)
        await show_person(running, sampler, stats, UserSub(sub[:255]))
        return None

    @page("/find", title=f"Search · {TITLE}")
    async def find(request: Request, q: str = "") -> Response | None:
        caller: Caller = request.state.caller
        hits = await searching.find(running, q, may=caller.may)
        if (address := meant(hits)) is not None and not pages_named(q):
            return RedirectResponse(address, 303)
        show_found(running, sampler, q.strip()[:300], hits)
        return None

    @page("/settings", title=f"Settings · {TITLE}")
    async def settings(request: Request) -> Response | None:
        if (refusal := _refusal(request, KEYS_SCOPE)) is not None:
            return refusal
        caller: Caller = request.state.caller
        await show_settings(running, sampler, with_keys=caller.may(ADMIN_SCOPE))
        return None

    @app.get("/find/hints", include_in_schema=False)
    async def find_hints(request: Request, q: str = "") -> list[dict[str, str]]:
        caller: Caller = request.state.caller
        return hints(q, await searching.find(running, q, may=caller.may, thorough=False))

    @page("/messages/trace", title=f"Message · {TITLE}")
    async def trace(request: Request, uid: str = "") -> Response | None:
        if (refusal := _refusal(request, MESSAGES_SCOPE)) is not None:
            return refusal
        if not uid.strip():
            return RedirectResponse("/messages", 303)
        await show_trace(running, sampler, stats, uid.strip())
        return None

    @page("/reminders", title=f"Reminders · {TITLE}")
    async def reminders(request: Request) -> Response | None:
        if (refusal := _refusal(request, MESSAGES_SCOPE)) is not None:
            return refusal
        await show_reminders(running, sampler, stats)
        return None

    @page("/templates", title=f"Templates · {TITLE}")
    async def templates(request: Request, slug: str = "") -> Response | None:
        if (refusal := _refusal(request, MESSAGES_SCOPE)) is not None:
            return refusal
        await show_templates(running, sampler, slug)
        return None

    @page("/sandbox", title=f"Sandbox · {TITLE}")
    async def sandbox(request: Request, channel: str = "", to: str = "") -> Response | None:
        if (refusal := _refusal(request, MESSAGES_SCOPE)) is not None:
            return refusal
        await show_sandbox(running, sampler, channel, to)
        return None

    operating = mount_operator(page, _refusal, running, sampler, census, stats, TITLE)
    app.router.routes.append(NotPages(app.router))
    ui.run_with(
        app, title=TITLE, favicon=FAVICON, dark=False, tailwind=False, show_welcome_message=False,
        binding_refresh_interval=None, reconnect_timeout=10.0,
    )
    refuse_plainly()
    return [rates.run, watch.run, watch.run_groups, stats.run, message_rates.run, request_rates.run, *operating]


def _days_of(request: Request) -> StatsRange:
    asked = request.query_params
    return StatsRange.parse(asked.get("days", ""), asked.get("from", ""), asked.get("to", ""))


def _refusal(request: Request, scope: str) -> Response | None:
    """These pages are for those who may. The door lets everyone reach the path where progress is watched."""
    caller: Caller = request.state.caller
    if caller.may(scope):
        return None
    if not caller.known:
        return RedirectResponse("/login", 303)
    return Response("this credential does not reach here\n", 403, media_type="text/plain")

"""The pages for whoever runs the installation: tenants, providers, changes of the keyspace, and the log."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request
from starlette.responses import Response

from keystead.app import Running
from keystead.operations import Census
from keystead.web.dashboard.changes_page import show_changes
from keystead.web.dashboard.log_page import show_log
from keystead.web.dashboard.providers_page import show_providers
from keystead.web.dashboard.tenants_page import show_tenants
from keystead.web.keyspace_changes import ChangeKeeper
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import StatsWatch

Page = Callable[..., Callable[[Callable[..., Any]], Any]]
Refusal = Callable[[Request, str], Response | None]
Work = Callable[[], Awaitable[None]]

LONGEST_ASKED = 200


def mount_operator(
    page: Page, refusal: Refusal, running: Running, sampler: Sampler, census: Census, watch: StatsWatch, title: str
) -> list[Work]:
    """Register them, and give back what must run in the background for them."""
    keeper = ChangeKeeper(census, running.clock)

    @page("/tenants", title=f"Tenants · {title}")
    async def tenants(request: Request, tenant: str = "") -> Response | None:
        if (refused := refusal(request, "jobs")) is not None:
            return refused
        await show_tenants(running, sampler, watch, tenant.strip()[:LONGEST_ASKED])
        return None

    @page("/providers", title=f"Providers · {title}")
    async def providers(request: Request) -> Response | None:
        if (refused := refusal(request, "messaging")) is not None:
            return refused
        await show_providers(running, sampler, watch)
        return None

    @page("/changes", title=f"Changes · {title}")
    def changes(request: Request) -> Response | None:
        if (refused := refusal(request, "keys")) is not None:
            return refused
        show_changes(running, sampler, census, keeper)
        return None

    @page("/log", title=f"Log · {title}")
    def log(request: Request, level: str = "", room: str = "", text: str = "") -> Response | None:
        if (refused := refusal(request, "admin")) is not None:
            return refused
        show_log(running, sampler, level=level, room=room, text=text)
        return None

    return [keeper.run]

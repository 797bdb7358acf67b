"""The HTTP door for those who look after the rooms: what waits, and how jobs last ran."""

from collections.abc import Iterable
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from keystead.edge import Caller
from keystead.messaging.sending.overview import Overview, OverviewReader

SCOPE: Final = "messaging"


def admin_routes(reader: OverviewReader, overviews: Iterable[Overview]) -> APIRouter:
    """``/admin/{room}/{what}`` under the prefix of the HTTP interface; all of it needs the scope ``messaging``."""
    router = APIRouter(tags=["admin"])

    def add(overview: Overview, name: str) -> None:
        async def look(request: Request, response: Response) -> dict[str, Any]:
            """What waits, or how the job last ran, as of now."""
            caller: Caller = request.state.caller
            caller.require(SCOPE)
            response.headers["cache-control"] = "no-store"
            return await reader.read(overview, name)

        router.add_api_route(f"/admin/{overview.room}/{name}", look, methods=["GET"], name=f"{overview.room}_{name}")

    for overview in overviews:
        for name in overview.names:
            add(overview, name)
    return router

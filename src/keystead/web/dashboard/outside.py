"""Where the pages end: what is no page is refused as everywhere else, and no refusal says what went wrong inside.

The framework of the pages is mounted at the root and so gets whatever no route took. It would answer that with a page
of its own, kept in memory for a minute, write the whole address into the log, and show the words of an exception.
"""

from typing import Final

from nicegui import app as pages
from nicegui.error import error_content
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Router
from starlette.types import Receive, Scope, Send

from keystead.web.door import LIMITED_PREFIX, PUBLIC_PATHS, PUBLIC_PREFIXES, SANDBOX_PREFIXES, WEBHOOK_PATHS
from keystead.web.plain_pages import plain_page

# The interface for programs, and everything that a stranger may reach: there are no pages.
PATHS: Final = PUBLIC_PATHS | WEBHOOK_PATHS
PREFIXES: Final = (LIMITED_PREFIX, *PUBLIC_PREFIXES, *SANDBOX_PREFIXES)


class NotPages(BaseRoute):
    """Stands behind all routes and before the pages, and answers as if there were none: 405, or 404."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        path: str = scope["path"]
        return (Match.FULL if path in PATHS or path.startswith(PREFIXES) else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        for route in self._router.routes:
            if route is self:
                break
            match, found = route.matches(scope)
            if match is Match.PARTIAL:  # the path is right, the method is not
                scope.update(found)
                await route.handle(scope, receive, send)
                return
        raise HTTPException(404)


def refuse_plainly() -> None:
    """Let the pages say no more than that a page is not there, or failed."""

    async def not_there(_: Request, __: Exception) -> Response:
        return plain_page("This page does not exist", '<p><a href="/">To the overview</a></p>', status=404)

    pages.add_exception_handler(404, not_there)
    pages.on_page_exception(lambda: error_content(500, "Something went wrong here; the log has the details."))

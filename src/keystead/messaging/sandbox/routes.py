"""The HTTP door of the sandbox: everything under ``/sandbox/``, as the providers themselves would answer it."""

from fastapi import APIRouter
from starlette.routing import Route

from keystead.messaging.sandbox.sandbox import PREFIX, Sandbox


def routes(sandbox: Sandbox) -> APIRouter:
    """At the root: paths of providers are theirs, and bodies and errors speak their language."""
    router = APIRouter()
    router.routes.append(Route(
        PREFIX + "/{rest:path}", sandbox.app, methods=["GET", "POST", "DELETE", "PUT"], include_in_schema=False
    ))
    return router

"""Requests as the metrics count them: by method, route and status, never by what stands in an address."""

from typing import Final

from starlette.types import Scope

from keystead.telemetry import Durations

# Where the signpost writes down the whole template of the route it found.
TEMPLATE: Final = "keystead.template"
OUTSIDE: Final = "(none)"
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
REQUEST_SECONDS: Final = Durations(
    "http_request_seconds", "requests, by method, template of the route and status",
    labels=("method", "route", "status"),
)


def template_of(scope: Scope) -> str:
    """The template of the route that answered, such as ``/api/1/jobs/{uid}``; one word for whatever had none."""
    template = scope.get(TEMPLATE)
    if template is None:
        template = getattr(scope.get("route"), "path", None) or OUTSIDE
    return str(template)


def request_seen(scope: Scope, status: int, seconds: float) -> None:
    """Note one request."""
    method = scope["method"]
    REQUEST_SECONDS.observe(seconds, method if method in METHODS else "other", template_of(scope), str(status))

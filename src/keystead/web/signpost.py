"""Straight to the route that answers, without asking every route in turn whether it does.

The framework tries one pattern after the other, through every router that was included, inside several layers that only
matter when something goes wrong: with as many routes as we have that took longer than all the rest of a request. Here
the routes of the HTTP interface are sorted once by method, number of parts and first parts of their path, so that a
request looks at one or two. Which one answers is the same: the first, in the order in which they were added, that fits.
What is not found here goes the framework's way, which also knows what to say when nothing fits.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

import fastapi.routing
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from keystead.web.requests_seen import TEMPLATE
from keystead.web.short_way import short_way

PREFIX: Final = "/api/"
FIRST_PARTS: Final = 4  # of "/api/1/jobs/x": nothing, api, 1, jobs
_CONVERTORS_OF_ONE_PART: Final = frozenset({"StringConvertor", "IntegerConvertor", "FloatConvertor", "UUIDConvertor"})
_WAY: Final = "keystead.way"

_Key = tuple[str, int, tuple[str, ...]]


class Assembled(FastAPI):
    """The framework, with a straight way to the routes of the HTTP interface.

    Every layer that was added to the application (the door above all) stands in front of that way too. Routes and
    layers that are added after the first request are only on the framework's own way.
    """

    _straight: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX) or scope.get("root_path"):
            return await super().__call__(scope, receive, send)
        if self._straight is None:
            self._signpost = Signpost(self)
            straight: ASGIApp = self._signpost
            for layer in reversed(self.user_middleware):
                straight = layer.cls(straight, *layer.args, **layer.kwargs)
            self._straight = straight
        if not self._signpost.points(scope):
            return await super().__call__(scope, receive, send)
        scope["app"] = self
        return await self._straight(scope, receive, send)


@dataclass(frozen=True, slots=True)
class _Way:
    """One route: what its path looks like, and what runs behind it."""

    match: Callable[[str], re.Match[str] | None]
    convertors: dict[str, Any]
    route: Any
    endpoint: Any
    app: ASGIApp
    template: str


class Signpost:
    """Knows the routes that an application has now."""

    def __init__(self, framework: FastAPI) -> None:
        self._router = framework.router
        # As the layers of the framework keep them: by class, and by status.
        by_kind = {kind: handler for kind, handler in framework.exception_handlers.items()
                   if kind not in (500, Exception)}
        self._handlers = (
            {kind: handler for kind, handler in by_kind.items() if not isinstance(kind, int)},
            {kind: handler for kind, handler in by_kind.items() if isinstance(kind, int)},
        )
        routes = [(route, _fits_its_own_parts(route)) for route in _routes(framework) if _of_the_interface(route)]
        keys = {_key(method, route.path) for route, fixed in routes if fixed for method in route.methods}
        plain = [(method, route.path) for route, _ in routes if not route.param_convertors for method in route.methods]
        self._ways = {
            key: tuple(
                _Way(route.path_regex.match, route.param_convertors, getattr(route, "original_route", route),
                     route.endpoint, short_way(route), route.path)
                for route, fixed in routes
                # One that may fit paths of other lengths stands in every list, at its place.
                if key[0] in route.methods and (not fixed or _key(key[0], route.path) == key)
            )
            for key in keys
        }
        # Most paths have no variable in them, and are known at once.
        self._plain = {(method, path): found for method, path in plain if (found := self._first(method, path))}

    def points(self, scope: Scope) -> bool:
        """Whether a route for this request is known; it is written down in the scope."""
        asked = scope["method"], scope["path"]
        found = self._plain.get(asked) or self._first(*asked)
        if found is None:
            return False
        scope[_WAY] = found
        return True

    def _first(self, method: str, path: str) -> tuple[_Way, re.Match[str]] | None:
        for way in self._ways.get(_key(method, path), ()):
            found = way.match(path)
            if found is not None:
                return way, found
        return None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        way, found = scope.pop(_WAY)
        given = found.groupdict()
        for name, text in given.items():
            given[name] = way.convertors[name].convert(text)
        scope["path_params"], scope["endpoint"], scope["route"] = given, way.endpoint, way.route
        scope["router"], scope[TEMPLATE] = self._router, way.template
        # What layers of the framework put there: who answers errors, and what closes uploaded files.
        scope["starlette.exception_handlers"] = self._handlers
        async with AsyncExitStack() as stack:
            scope["fastapi_middleware_astack"] = stack
            await way.app(scope, receive, send)


def _routes(app: FastAPI) -> Iterable[Any]:
    """Every route with its whole path; newer versions of the framework keep included ones apart."""
    spread = getattr(fastapi.routing, "iter_route_contexts", None)
    return app.routes if spread is None else spread(app.routes)


def _of_the_interface(route: Any) -> bool:
    original = getattr(route, "original_route", route)
    return isinstance(original, fastapi.routing.APIRoute) and route.path.startswith(PREFIX)


def _fits_its_own_parts(route: Any) -> bool:
    """Whether only paths fit that have as many parts, and begin with the same ones."""
    one_part_each = all(type(each).__name__ in _CONVERTORS_OF_ONE_PART for each in route.param_convertors.values())
    return one_part_each and not any("{" in part for part in route.path.split("/")[:FIRST_PARTS])


def _key(method: str, path: str) -> _Key:
    parts = path.split("/")
    return method, len(parts), tuple(parts[:FIRST_PARTS])

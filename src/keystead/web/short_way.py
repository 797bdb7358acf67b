"""A short way through routes that ask little of the framework.

Most routes take a request, parts of the path and one body, and give a value with a declared form. What the framework
does around those (stacks of contexts, parameters from four places, reading the content type as if it were mail) takes
as long as a whole send. Here the same fields check the same values, with nothing around them. Whatever is out of the
ordinary goes the framework's way as if nothing had happened before: a query, another content type, a body that does not
fit; so who asks wrongly is told so in the framework's words, and the endpoint has not been run.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Final

from fastapi import params
from fastapi.datastructures import DefaultPlaceholder
from pydantic import BaseModel
from starlette._exception_handler import wrap_app_handling_exceptions
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keystead.web.bodies import again, content_of, is_whole, read_whole

JSON: Final = b"application/json"
# Defaults of these need no copy for each request.
_UNCHANGING: Final = (int, str, float, bool, type(None))
_WITHOUT_BODY: Final = frozenset({204, 205, 304})
_NOTHING: Final = object()


def short_way(route: Any) -> ASGIApp:
    """What answers a route of the framework: the short way if it is one of the plain ones, else the framework's."""
    framework: ASGIApp = route.app
    try:
        plain = _plain(route)
    except (AttributeError, TypeError):  # a framework whose routes are made in another way
        return framework
    return framework if plain is None else _ShortWay(plain, framework)


@dataclass(frozen=True, slots=True)
class _Plain:
    """What is to be known of a plain route."""

    endpoint: Callable[..., Awaitable[Any]]
    path: tuple[Any, ...]  # the fields of variables in it
    given: dict[str, Any]  # what parameters of the query are when there is no query
    body: Any  # the field, or None
    result: Any  # the field
    request_name: str | None
    response_name: str | None
    status: int


def _plain(route: Any) -> _Plain | None:
    needs, body = route.dependant, route.body_field
    queries = {field.name: field.get_default() for field in needs.query_params}
    ordinary = (
        iscoroutinefunction(route.endpoint)
        and route.response_field is not None
        and isinstance(route.response_class, DefaultPlaceholder)
        and not (route.response_model_include or route.response_model_exclude or route.response_model_exclude_unset
                 or route.response_model_exclude_defaults or route.response_model_exclude_none)
        and route.response_model_by_alias
        and (route.status_code or 200) not in _WITHOUT_BODY
        and not (needs.dependencies or needs.header_params or needs.cookie_params or needs.http_connection_param_name
                 or needs.background_tasks_param_name or needs.security_scopes_param_name)
        and not any(field.field_info.is_required() or field.field_info.validate_default
                    or field.field_info.default_factory for field in needs.query_params)
        and all(isinstance(default, _UNCHANGING) for default in queries.values())
        and not any(_is_model(field) or field.alias != field.name for field in needs.path_params)
    )
    if not ordinary:
        return None
    if body is not None and (
        len(needs.body_params) != 1 or route._embed_body_fields or isinstance(body.field_info, params.Form)
    ):
        return None
    return _Plain(route.endpoint, tuple(needs.path_params), queries, body, route.response_field,
                  needs.request_param_name, needs.response_param_name, route.status_code or 200)


def _is_model(field: Any) -> bool:
    kind = field.field_info.annotation
    return isinstance(kind, type) and issubclass(kind, BaseModel)


class _ShortWay:
    """Answers one plain route."""

    def __init__(self, plain: _Plain, framework: ASGIApp) -> None:
        self._plain, self._framework = plain, framework

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        plain = self._plain
        read = [] if plain.body is None else await read_whole(receive)
        content = content_of(read)
        try:
            values = self._values(scope, read, content)
        except Exception:  # of a validator: its second time is the framework's, which lets those answer who answer it
            values = None
        if values is None:
            await self._framework(scope, again(read, receive) if read else receive, send)
            return
        request, beside = Request(scope, receive, send), None
        if read:
            request._body = content  # as if it had read it itself
        if plain.request_name:
            values[plain.request_name] = request
        if plain.response_name:
            beside = values[plain.response_name] = Response()
            beside.status_code = 0  # none, unless the endpoint says one
            beside.raw_headers.clear()
        try:
            answer = await plain.endpoint(**values)
        except Exception as error:
            await _told(error, request, scope, receive, send)
            return
        if isinstance(answer, Response):
            await answer(scope, receive, send)
            return
        content, status = self._content(answer), plain.status
        headers = [(b"content-length", str(len(content)).encode()), (b"content-type", JSON)]
        if beside is not None:
            status = beside.status_code or status
            if status in _WITHOUT_BODY:
                content = b""
                del headers[0]
            headers += beside.raw_headers
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _values(self, scope: Scope, read: list[Message], content: bytes) -> dict[str, Any] | None:
        """What the endpoint is called with; None if it is for the framework to read."""
        if scope["query_string"]:
            return None
        values = dict(self._plain.given)
        for field in self._plain.path:
            values[field.name], wrong = field.validate(scope["path_params"][field.name], values, loc=())
            if wrong:
                return None
        if read:
            values[self._plain.body.name] = body = _body(self._plain.body, scope, read, content)
            if body is _NOTHING:
                return None
        return values

    def _content(self, answer: Any) -> bytes:
        value, wrong = self._plain.result.validate(answer, {}, loc=("response",))
        if wrong:
            raise RuntimeError(f"{self._plain.endpoint.__qualname__} gave an answer that is not of its own form: "
                               f"{wrong[0].get('loc')} {wrong[0].get('msg')}")
        content: bytes = self._plain.result.serialize_json(value)
        return content


def _body(field: Any, scope: Scope, read: list[Message], content: bytes) -> Any:
    """What the body says; nothing if it is for the framework to say what is wrong with it."""
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    if kinds != [JSON] or not content or not is_whole(read):
        return _NOTHING
    try:
        given = json.loads(content)
    except (ValueError, RecursionError):
        return _NOTHING
    value, wrong = field.validate(given, {}, loc=("body",))
    return _NOTHING if wrong else value


async def _told(error: Exception, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
    """Let those answer who answer errors of routes."""

    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        raise error

    await wrap_app_handling_exceptions(failing, request)(scope, receive, send)

"""The description of the HTTP interface, made whole: what is true of every operation is said here, once.

The framework knows what a route takes and what it answers when all goes well. Added here: who may ask, every refusal
with the one error body, the headers of limits and of repeats, and an example of each body. A route that can refuse in a
way of its own says so with ``responses=``.
"""

from typing import Any, Final

from fastapi import FastAPI

from keystead.edge import PROBLEM_MEDIA_TYPE, USER_HEADER
from keystead.edge.idempotency import HEADER, MOST_KEY_CHARACTERS, REPLAYED_HEADER
from keystead.web.door import PUBLIC_PATHS, PUBLIC_PREFIXES, WEBHOOK_PATHS
from keystead.web.openapi_examples import example_of

Document = dict[str, Any]

PREFIX: Final = "/api/"
DESCRIPTION: Final = """Everything that Keystead does, over HTTP.

**Credentials.** Send `Authorization: Bearer` with a key (`keystead admin key create`), a token (`keystead token`) or
the token of a person (`POST /api/1/users/{sub}/tokens`); or log in to the dashboard first. A program that acts for a
person names them in the header `X-User-Sub`.

**Refusals** have one body, a problem document (RFC 9457): `type` is for programs and stays as it is, `message` is for
people.

**Long lists** come in pages of `items`: give `limit`, and `cursor` as the page before gave it in `next_cursor`; without
one it was the last page. The two lists that differ say why: the sandbox's outbox, which is followed, and alerts.

**Limits** are by address; every answer says in `RateLimit-*` what is left, and a refusal in `Retry-After` when to come
back.

**Repeats.** A write may carry `Idempotency-Key`: then it is done once, however often it is sent within a day, and each
time answered with the first answer.
"""
# In the order in which a newcomer meets them.
_TAGS: Final = {
    "users": "The people of the installation.", "contacts": "How a person can be reached.",
    "touches": "Telling people of events, on the channels they can be reached by.",
    "reminders": "Daily reminders of a person.",
    "sandbox": "What people would have received, and providers that misbehave on request.",
    "jobs": "Background work: look, enqueue, step in, watch.", "tenants": "Jobs of many tenants, in turns.",
    "stats": "What is counted, by day and month.", "keys": "What may exist in the keyspace, and what does.",
    "files": "Uploads in parts.", "links": "Links in messages, and what follows from a click.",
    "email": "Mail: provider's news, unsubscribing, templates.", "sms": "Texts: the provider's news.",
    "programs": "Who may use this interface: keys of programs.", "alerts": "What somebody should look at.",
    "blocks": "Addresses that are kept out.", "status": "Is it well?",
    "admin": "What waits and how jobs last ran, as older programs ask for it.",
}
PROBLEM: Final[Document] = {
    "title": "Problem", "type": "object", "description": "Why a request was refused (RFC 9457).",
    "required": ["type", "message", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "for programs; stays as it is", "examples": ["not_found"]},
        "message": {"type": "string", "description": "for people", "examples": ["there is no such person"]},
        "title": {"type": "string", "examples": ["Not found"]},
        "status": {"type": "integer", "examples": [404]},
        "detail": {"type": "string", "description": "the same as message", "examples": ["there is no such person"]},
        "markdown": {"type": "string", "description": "the message with emphasis, if it has any"},
    },
}
_REFUSALS: Final = {
    400: ("Something about the request is wrong; the message says what.", "invalid", "Invalid request"),
    401: ("No credential, or one that does not count any more.", "not_logged_in", "Credential needed"),
    403: ("The credential does not reach here, or the address is blocked.", "forbidden", "Not allowed"),
    404: ("There is no such thing.", "not_found", "Not found"),
    409: ("It does not fit the present state, or a request with the same idempotency key still runs.", "conflict",
          "Conflict"),
    413: ("The body is too long.", "too_large", "Request too large"),
    422: ("The idempotency key was used for another request.", "idempotency_key_reused", "Idempotency key reused"),
    429: ("Too many requests, or the queue is full; Retry-After says when to come back.", "limit_reached",
          "Too many requests"),
    503: ("A server that is needed is away; try again.", "unavailable", "Temporarily unavailable"),
}
_WRITES: Final = frozenset({"post", "put", "patch", "delete"})
_LIMIT_HEADERS: Final = {
    "RateLimit-Limit": {"description": "requests allowed in the window", "schema": {"type": "integer"}},
    "RateLimit-Remaining": {"description": "how many are left", "schema": {"type": "integer"}},
    "RateLimit-Reset": {"description": "seconds until the window ends", "schema": {"type": "integer"}},
    "X-Request-Id": {"description": "what the log calls this request", "schema": {"type": "string"}},
}


def complete(app: FastAPI) -> None:
    """Let the application describe itself as a whole."""
    plain = app.openapi

    def whole() -> Document:
        if app.openapi_schema is None:
            _complete(plain())
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = whole  # type: ignore[method-assign]


def _complete(document: Document) -> None:
    document["info"]["description"] = DESCRIPTION
    parts = document.setdefault("components", {})
    parts.setdefault("schemas", {})["Problem"] = PROBLEM
    for unused in ("HTTPValidationError", "ValidationError"):
        parts["schemas"].pop(unused, None)
    parts["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "A key, a program's token, or a person's."},
        "session": {"type": "apiKey", "in": "cookie", "name": "keystead_session",
                    "description": "Of a person who logged in to the dashboard; its name ends with the port."},
    }
    parts["headers"] = _LIMIT_HEADERS
    used = set()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            _complete_operation(path, method, operation)
            _give_examples(operation, parts["schemas"])
            used |= set(operation.get("tags", ()))
    document["tags"] = [{"name": tag, "description": _TAGS.get(tag, tag)} for tag in
                        sorted(used, key=[*_TAGS, *sorted(used - set(_TAGS))].index)]


def _complete_operation(path: str, method: str, operation: Document) -> None:
    is_api, is_webhook = path.startswith(PREFIX), path in WEBHOOK_PATHS
    is_public = is_webhook or path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIXES)
    says = operation.get("description", "")
    if says:
        operation["summary"] = _first_sentence(says)
    responses: Document = operation["responses"]
    _drop_validation(responses)
    operation["security"] = [] if is_public else [{"bearer": []}, {"session": []}]
    added = {400, 401, 403, 503} | ({429} if is_api else set())
    if "{" in path:
        added.add(404)
    if "requestBody" in operation:
        added.add(413)
    if method in _WRITES and is_api and not is_public:
        added |= {409, 422}
        operation.setdefault("parameters", []).append(_IDEMPOTENCY)
    if "/users/me/" in path or "/notifications/push/" in path or path.endswith("/post_login"):
        added.add(404)
        operation.setdefault("parameters", []).append(_USER)
    if path in ("/health", "/ready"):
        added -= {401, 403}
    if is_webhook:
        added = set()  # providers look at the status alone; their routes say which there are
    for number in {*added, *(int(status) for status in responses if int(status) in _REFUSALS and not is_webhook)}:
        if "content" not in responses.get(str(number), {}):
            responses[str(number)] = refusal(number)
    if is_api and not is_webhook:
        for status, response in responses.items():
            response.setdefault("headers", {}).update(
                {name: {"$ref": f"#/components/headers/{name}"} for name in _LIMIT_HEADERS})
            if status.startswith("2") and method in _WRITES and not is_public:
                response["headers"][REPLAYED_HEADER.title()] = {
                    "description": "true on an answer that was kept", "schema": {"type": "string"}}
    operation["responses"] = dict(sorted(responses.items()))


def refusal(status: int, description: str = "") -> Document:
    """How one refusal is described; for ``responses=`` of a route as well."""
    says, kind, title = _REFUSALS[status]
    headers: Document = {}
    if status in (429, 503) or status == 409:
        headers["Retry-After"] = {"description": "seconds to wait", "schema": {"type": "integer"}}
    if status == 401:
        headers["WWW-Authenticate"] = {"description": "Bearer", "schema": {"type": "string"}}
    example = {"type": kind, "message": says, "title": title, "status": status, "detail": says}
    return {
        "description": description or says, "headers": headers,
        "content": {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}},
    }


_IDEMPOTENCY: Final[Document] = {
    "name": HEADER.title(), "in": "header", "required": False,
    "description": "A name for this write, of your own choice: sent again with it, it is done once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MOST_KEY_CHARACTERS, "pattern": "^[ -~]+$"},
    "example": "order-17-reminder",
}
_USER: Final[Document] = {
    "name": USER_HEADER.title(), "in": "header", "required": False,
    "description": "For whom a program or an operator asks; a person's own token needs none.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255}, "example": "user_4yTkW2",
}


def _drop_validation(responses: Document) -> None:
    """What does not validate is answered as any other invalid request is."""
    validation = responses.get("422", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if validation.get("$ref", "").endswith("HTTPValidationError"):
        del responses["422"]


def _first_sentence(text: str) -> str:
    line = " ".join(text.split("\n\n")[0].split())
    return line.partition(". ")[0].rstrip(".").replace("``", "")[:120]


def _give_examples(operation: Document, schemas: Document) -> None:
    bodies = [operation["requestBody"]] if "requestBody" in operation else []
    bodies += [response for status, response in operation["responses"].items() if status.startswith("2")]
    for body in bodies:
        for kind, content in body.get("content", {}).items():
            if kind.endswith("json") and content.get("schema") and "example" not in content:
                content["example"] = example_of(content["schema"], schemas)

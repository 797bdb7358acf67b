"""The HTTP door of the sandbox: everything under ``/sandbox/``, as the providers themselves would answer it."""

from typing import Final

from fastapi import APIRouter
from starlette.routing import Route

from keystead.edge import Caller, ClientAddress
from keystead.messaging.sandbox.http import Receive, SandboxApp, Scope, Send, answered, json_answer
from keystead.messaging.sandbox.sandbox import PREFIX, Sandbox

SCOPE: Final = "messaging"
# Providers have log-ins of their own; whoever stands at the door lets these through.
PROVIDER_PREFIXES: Final = tuple(f"{PREFIX}/{name}/" for name in ("expo", "twilio", "ses", "sns"))


def routes(sandbox: Sandbox) -> APIRouter:
    """At the root: paths of providers are theirs, and bodies and errors speak their language.

    Providers answer only this machine, where the channels are. The rest (faults, outbox, replies) is for those who may
    read messages.
    """
    router = APIRouter()
    router.routes.append(Route(
        PREFIX + "/{rest:path}", _Watched(sandbox.app), methods=["GET", "POST", "DELETE", "PUT"],
        include_in_schema=False,
    ))
    return router


class _Watched:
    """Asks what the door found out about the caller before the sandbox answers."""

    def __init__(self, app: SandboxApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_allowed(scope):
            await self._app(scope, receive, send)
            return
        await answered(send, json_answer(403, {"message": "the sandbox's providers answer only this machine; what it "
                                                          "holds is for those with the scope messages"}))

    def _is_allowed(self, scope: Scope) -> bool:
        state = scope.get("state", {})
        if scope["path"].startswith(PROVIDER_PREFIXES):
            address: ClientAddress | None = state.get("address")
            return address is not None and address.exact is not None and address.exact.is_loopback
        caller: Caller | None = state.get("caller")
        return caller is not None and caller.may(SCOPE)

"""Requests as spans: in front of the door, and only there while somebody listens."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keystead.tracing import span
from keystead.web.requests_seen import template_of


class TracedRequests:
    """Begins a trace for each request, or goes on with the one that its ``traceparent`` names."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        parent = next((value for name, value in scope["headers"] if name == b"traceparent"), b"").decode("latin-1")
        status = 500

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with span(f"HTTP {scope['method']}", parent=parent[:100], kind="server") as here:
            try:
                await self.app(scope, receive, sent)
            finally:
                here.rename(f"{scope['method']} {template_of(scope)}")
                here.set(status=status)
                if status >= 500:
                    here.failed(f"status {status}")

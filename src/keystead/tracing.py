"""Spans: pieces of work that are parts of one trace, over requests, jobs, touches, messages and provider calls.

Nobody listens unless somebody was told to: then a span is a shared object that does nothing, and nothing travels. With
the extra ``keystead[otel]`` a tracer of OpenTelemetry listens, and the place in the trace travels as a W3C
``traceparent`` in requests, in records of jobs and in messages that wait.

No words of exceptions and no addresses are in a span: only names, uids and how it ended.
"""

import contextlib
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import msgspec

from keystead.errors import Invalid

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

Kind = Literal["internal", "server", "client", "producer", "consumer"]
Attribute = str | int | float | bool
EXPORT_SECONDS: Final = 5.0

_tracer: "Tracer | None" = None


class Span:
    """A span that nobody listens to; those that somebody does are made of it."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def set(self, **attributes: Attribute) -> None:
        """Add facts."""

    def rename(self, name: str) -> None:
        """Call it otherwise: what it was about is known only now."""

    def failed(self, why: str) -> None:
        """It did not go well, for a reason in a word."""


_NOTHING: Final = Span()


def span(name: str, *, parent: str | msgspec.UnsetType = "", kind: Kind = "internal", **attributes: Attribute) -> Span:
    """A block that is part of a trace: of the one that ``parent`` (a traceparent) names, or of the one around it."""
    if _tracer is None:
        return _NOTHING
    return _Listened(_tracer, name, parent or "", kind, attributes)


def is_listening() -> bool:
    """Whether spans are made at all."""
    return _tracer is not None


def traceparent() -> str:
    """Where in a trace we are, to be handed on; empty when nobody listens or we are in none."""
    if _tracer is None:
        return ""
    from opentelemetry.trace import get_current_span

    here = get_current_span().get_span_context()
    return f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags:02x}" if here.is_valid else ""


def carried() -> str | msgspec.UnsetType:
    """``traceparent`` for a field that is absent when there is none."""
    return (traceparent() or msgspec.UNSET) if _tracer is not None else msgspec.UNSET


@contextlib.contextmanager
def listening(tracer: "Tracer") -> Iterator[None]:
    """Let this tracer have every span of this process, for as long as the block runs."""
    global _tracer
    before, _tracer = _tracer, tracer
    try:
        yield
    finally:
        _tracer = before


@contextlib.contextmanager
def exporting(url: str, *, service_name: str = "keystead", share: float = 1.0) -> Iterator[None]:
    """Send spans to a collector by OTLP over HTTP while the block runs; without an address to nobody.

    ``share`` of the traces that begin here are kept; of those that began elsewhere, those that were kept there.
    """
    if not url:
        yield
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ImportError:
        raise Invalid("telemetry.otlp_url needs another package: pip install 'keystead[otel]'") from None
    if not url.startswith(("http://", "https://")):
        raise Invalid("telemetry.otlp_url must begin with http:// or https://")
    address = url if url.rstrip("/").endswith("/v1/traces") else f"{url.rstrip('/')}/v1/traces"
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(min(1.0, share))),
        resource=Resource.create({"service.name": service_name}),
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address, timeout=EXPORT_SECONDS)))
    try:
        with listening(provider.get_tracer("keystead")):
            yield
    finally:
        provider.shutdown()


class _Listened(Span):
    """A span of OpenTelemetry, current while its block runs."""

    __slots__ = ("_attributes", "_kind", "_name", "_parent", "_span", "_token", "_tracer")

    def __init__(
        self, tracer: "Tracer", name: str, parent: str, kind: Kind, attributes: dict[str, Attribute]
    ) -> None:
        self._tracer, self._name, self._parent, self._kind, self._attributes = tracer, name, parent, kind, attributes

    def __enter__(self) -> Self:
        from opentelemetry import context, trace

        self._span = self._tracer.start_span(
            self._name, context=_context_of(self._parent), kind=trace.SpanKind[self._kind.upper()],
            attributes={f"keystead.{name}" if "." not in name else name: value
                        for name, value in self._attributes.items()},
            record_exception=False, set_status_on_exception=False,
        )
        self._token = context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from opentelemetry import context

        if kind is not None:
            self.failed(kind.__name__)
        context.detach(self._token)
        self._span.end()

    def set(self, **attributes: Attribute) -> None:
        for name, value in attributes.items():
            self._span.set_attribute(f"keystead.{name}", value)

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def failed(self, why: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        self._span.set_status(Status(StatusCode.ERROR, why))


def _context_of(parent: str) -> Any:
    """The context that a traceparent names; the one around us when it names none."""
    if not parent:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": parent})

"""A listener that keeps the spans it is given."""

from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from keystead.tracing import listening


class Listener:
    """Listens while its block runs; ``spans`` are those that have ended, in that order."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._provider = TracerProvider()
        self._provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._block = listening(self._provider.get_tracer("test"))

    def __enter__(self) -> "Listener":
        self._block.__enter__()
        return self

    def __exit__(self, *how: Any) -> None:
        self._block.__exit__(*how)
        self._provider.shutdown()

    @property
    def spans(self) -> tuple[Any, ...]:
        return self._exporter.get_finished_spans()

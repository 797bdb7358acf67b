"""The page that Prometheus reads: our own counts, and what the server says of itself."""

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from keystead.telemetry import Counts, Durations, Sample
from keystead.web.facts import ServerFacts

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


# Names of facts with what they mean; the documentation is made of them.
SERVER_GAUGES: Final = (
    ("up", "whether the server answers"),
    ("uptime_seconds", "seconds since the server started"),
    ("memory_bytes", "memory in use"),
    ("memory_peak_bytes", "most memory ever in use"),
    ("memory_limit_bytes", "memory limit, 0 for none"),
    ("clients", "connected clients"),
    ("keys", "keys in all databases"),
    ("keys_with_ttl", "keys that will expire"),
    ("persistence_ok", "whether the last write to disk worked"),
    ("replicas", "connected replicas"),
)
SERVER_COUNTERS: Final = (
    ("commands", "commands the server has run"),
    ("lookup_hits", "lookups that found a key"),
    ("lookup_misses", "lookups that found none"),
    ("keys_expired", "keys that ran out"),
    ("keys_evicted", "keys removed to make room"),
)
_FACTS: Final = {"lookup_hits": "hits", "lookup_misses": "misses", "keys_expired": "expired", "keys_evicted": "evicted"}


def metrics_text(
    counts: Counts, facts: ServerFacts | None, *, rooms: Iterable[Sample] = (), durations: Iterable[Durations] = (),
) -> bytes:
    """All numbers in the text format. Without ``facts`` the server is reported as down.

    ``rooms``: what was just asked of the rooms. ``durations``: how long things take in this process.
    """
    registry = CollectorRegistry()
    registry.register(_Collected(counts, facts, rooms, durations))
    return generate_latest(registry)


class _Collected(Collector):
    def __init__(
        self, counts: Counts, facts: ServerFacts | None, rooms: Iterable[Sample], durations: Iterable[Durations]
    ) -> None:
        self._counts, self._facts, self._rooms, self._durations = counts, facts, tuple(rooms), tuple(durations)

    def collect(self) -> Iterator[Metric]:
        yield from _families((*self._counts.samples(), *self._rooms))
        yield from (_histogram(each) for each in self._durations)
        yield GaugeMetricFamily("keystead_server_up", SERVER_GAUGES[0][1], value=self._facts is not None)
        if self._facts is not None:
            yield from _of_server(self._facts)


def _families(samples: Iterable[Sample]) -> Iterator[Metric]:
    families: dict[str, Metric] = {}
    label_names: dict[str, tuple[str, ...]] = {}
    for sample in samples:
        names = tuple(name for name, _ in sample.labels)
        name = f"keystead_{sample.name}"
        if name not in families:
            make = CounterMetricFamily if sample.kind == "counter" else GaugeMetricFamily
            families[name] = make(name, sample.help, labels=names)
            label_names[name] = names
        family = families[name]
        assert isinstance(family, CounterMetricFamily | GaugeMetricFamily)
        labels = dict(sample.labels)
        family.add_metric([labels.get(label, "") for label in label_names[name]], sample.value)
    yield from families.values()


def _histogram(durations: Durations) -> Metric:
    family = HistogramMetricFamily(f"keystead_{durations.name}", durations.help, labels=durations.labels)
    bounds = [*(f"{bound:g}" for bound in durations.bounds), "+Inf"]
    for values, counted, total in durations.rows():
        below = list(zip(bounds, accumulate(counted), strict=True))
        family.add_metric(list(values), below, total)
    return family


def _of_server(facts: ServerFacts) -> Iterator[Metric]:
    info = GaugeMetricFamily("keystead_server_info", "always 1; the labels say what the server is",
                             labels=("product", "version", "role", "mode"))
    info.add_metric((facts.product, facts.version, facts.role, facts.mode), 1)
    yield info
    for name, says in SERVER_GAUGES[1:]:
        yield GaugeMetricFamily(f"keystead_server_{name}", says, value=float(getattr(facts, name)))
    for name, says in SERVER_COUNTERS:
        yield CounterMetricFamily(f"keystead_server_{name}", says, value=getattr(facts, _FACTS.get(name, name)))

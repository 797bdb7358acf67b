"""The page that Prometheus reads: our own counts, and what the server says of itself."""

from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from keystead.telemetry import Counts, Durations, Sample
from keystead.web.facts import ServerFacts

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


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
        yield GaugeMetricFamily("keystead_server_up", "whether the server answers", value=self._facts is not None)
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
    for name, says, value in (
        ("uptime_seconds", "seconds since the server started", facts.uptime_seconds),
        ("memory_bytes", "memory in use", facts.memory_bytes),
        ("memory_peak_bytes", "most memory ever in use", facts.memory_peak_bytes),
        ("memory_limit_bytes", "memory limit, 0 for none", facts.memory_limit_bytes),
        ("clients", "connected clients", facts.clients),
        ("keys", "keys in all databases", facts.keys),
        ("keys_with_ttl", "keys that will expire", facts.keys_with_ttl),
        ("persistence_ok", "whether the last write to disk worked", int(facts.persistence_ok)),
        ("replicas", "connected replicas", facts.replicas),
    ):
        yield GaugeMetricFamily(f"keystead_server_{name}", says, value=value)
    for name, says, value in (
        ("commands", "commands the server has run", facts.commands),
        ("lookup_hits", "lookups that found a key", facts.hits),
        ("lookup_misses", "lookups that found none", facts.misses),
        ("keys_expired", "keys that ran out", facts.expired),
        ("keys_evicted", "keys removed to make room", facts.evicted),
    ):
        yield CounterMetricFamily(f"keystead_server_{name}", says, value=value)

"""The text that Prometheus reads."""

from prometheus_client.parser import text_string_to_metric_families

from keystead.telemetry import Counts
from keystead.web.metrics import metrics_text


def families(counts, facts=None):
    return {family.name: family for family in text_string_to_metric_families(metrics_text(counts, facts).decode())}


def test_counts_and_gauges_come_with_prefix_labels_and_help():
    counts = Counts()
    counts.describe("wire_replies_lost", "answers that never came")
    counts.add("wire_replies_lost", 2, node="a")
    counts.add("wire_replies_lost", 3, node='b"\\\n')
    counts.gauge("wire_in_flight", lambda: 7)
    found = families(counts)
    lost = found["keystead_wire_replies_lost"]
    assert (lost.type, lost.documentation) == ("counter", "answers that never came")
    assert {sample.labels["node"]: sample.value for sample in lost.samples} == {"a": 2, 'b"\\\n': 3}
    assert found["keystead_wire_in_flight"].samples[0].value == 7


def test_samples_of_one_name_may_have_different_labels():
    counts = Counts()
    counts.add("things", 1, kind="a")
    counts.add("things", 2)
    values = {sample.labels["kind"]: sample.value for sample in families(counts)["keystead_things"].samples}
    assert values == {"a": 1, "": 2}


def test_server_that_is_away_is_down():
    found = families(Counts())
    assert found["keystead_server_up"].samples[0].value == 0
    assert "keystead_server_memory_bytes" not in found

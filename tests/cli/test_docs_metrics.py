"""The page of metrics knows every number, and every number says what it is."""

import json
import re

from prometheus_client.parser import text_string_to_metric_families

from keystead.cli.docs_metrics import metrics_page, of_source
from keystead.telemetry import Durations, counts
from keystead.web.metrics import metrics_text
from tests.house.source import PROJECT


def test_every_count_says_what_it_means_and_has_few_labels():
    found = of_source()
    assert {"http_requests", "messages_carried", "job_seconds", "provider_call_seconds"} <= set(found)
    silent = [one.name for one in found.values() if not one.says]
    assert not silent, "describe them with counts.describe"
    assert all(len(one.labels) <= 3 for one in found.values())


def test_histograms_name_their_unit():
    assert all(one.name.endswith("_seconds") for one in of_source().values() if one.kind == "histogram")


def test_what_is_exported_is_on_the_page():
    import keystead.web.server  # noqa: F401 - whoever serves has described its counts

    page = metrics_page("")
    documented = set(re.findall(r"`(keystead_\w+)`", page))
    text = metrics_text(counts, None, durations=Durations.all).decode()
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        if not family.name.startswith(("keystead_things", "keystead_lost", "keystead_level")):
            assert name in documented, name


def test_the_dashboard_for_grafana_asks_only_for_what_there_is():
    page = metrics_page("")
    documented = set(re.findall(r"`(keystead_\w+)`", page))
    dashboard = json.loads((PROJECT / "deploy" / "grafana.json").read_text(encoding="utf-8"))
    asked = {name for panel in dashboard["panels"] for target in panel.get("targets", ())
             for name in re.findall(r"keystead_\w+", target["expr"])}
    assert len(asked) > 10
    unknown = {name for name in asked if re.sub(r"_(bucket|sum|count)$", "", name) not in documented}
    assert not unknown

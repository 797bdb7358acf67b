"""The page of metrics, read from the source: every count, gauge and histogram with its labels and meaning.

The source is read and not run, so that a number that only some process has is on the page too.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).parents[1]
_HEAD = """\
# Metrics

`/metrics` speaks the text format of Prometheus, to whoever has the scope `metrics`: `keystead token` makes one.
Counters and histograms are of the process that answers; what is marked *installation* is read from the server when
somebody asks, and says the same in every process: look at one of them, or take the maximum.

Names end in their unit. Labels hold names from a bounded list and never an address, a number or a uid: routes are
templates, queues are the first hundred, and after 500 combinations of labels of a histogram the rest is `other`.
A dashboard for Grafana is in `deploy/grafana.json`. Some labels are called `job`, for jobs: scrape with
`honor_labels: true`, or find them as `exported_job`.
"""


@dataclass
class Metric:
    """One name."""

    name: str
    kind: str
    says: str = ""
    labels: set[str] = field(default_factory=set)


def metrics_page(generated: str) -> str:
    """The whole page."""
    from keystead.web.metrics import SERVER_COUNTERS, SERVER_GAUGES
    from keystead.web.metrics_rooms import GAUGES

    found = of_source()
    histograms = [one for one in found.values() if one.kind == "histogram"]
    counters = [one for one in found.values() if one.kind != "histogram"]
    rooms = [Metric(name, "gauge", says, set(labels)) for name, (labels, says) in GAUGES.items()]
    info = Metric("server_info", "gauge", "always 1; the labels say what the server is",
                  {"product", "version", "role", "mode"})
    server = [info, *(Metric(f"server_{name}", "gauge", says) for name, says in SERVER_GAUGES),
              *(Metric(f"server_{name}", "counter", says) for name, says in SERVER_COUNTERS)]
    lines = [generated, _HEAD]
    for title, metrics in (
        ("How long things take", histograms), ("What waits in the rooms (installation)", rooms),
        ("The server (installation)", server), ("Counts of this process", counters),
    ):
        lines += [f"## {title}", "", "| metric | kind | labels | meaning |", "|---|---|---|---|"]
        lines += [_row(one) for one in sorted(metrics, key=lambda one: one.name)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _row(metric: Metric) -> str:
    name = f"keystead_{metric.name}" + ("_total" if metric.kind == "counter" else "")
    labels = ", ".join(f"`{label}`" for label in sorted(metric.labels))
    return f"| `{name}` | {metric.kind} | {labels} | {metric.says} |".replace("|  |", "| |")


def of_source() -> dict[str, Metric]:
    """Every number that some module counts, by name."""
    found: dict[str, Metric] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for call in _calls(path):
            _read(call, found)
    return found


def _calls(path: Path) -> Iterator[ast.Call]:
    text = path.read_text(encoding="utf-8")
    if "counts." in text or "Durations(" in text:
        yield from (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))


def _read(call: ast.Call, found: dict[str, Metric]) -> None:
    called = ast.unparse(call.func)
    if not call.args or not isinstance(call.args[0], ast.Constant) or not isinstance(call.args[0].value, str):
        return
    name, labels = call.args[0].value, {keyword.arg for keyword in call.keywords if keyword.arg}
    if called == "counts.describe":
        says = ast.literal_eval(call.args[1])
        found.setdefault(name, Metric(name, "counter")).says = says
    elif called == "counts.add":
        found.setdefault(name, Metric(name, "counter")).labels |= labels - {"amount"}
    elif called == "counts.gauge":
        metric = found.setdefault(name, Metric(name, "gauge"))
        metric.kind, metric.labels = "gauge", metric.labels | labels
    elif called == "Durations":
        given = next(keyword.value for keyword in call.keywords if keyword.arg == "labels")
        found[name] = Metric(name, "histogram", ast.literal_eval(call.args[1]), set(ast.literal_eval(given)))

"""Log lines and counts, as the program around them sees them."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog

from keystead.telemetry import Counts, configure_logging, logger


@pytest.fixture(autouse=True)
def unconfigured() -> Iterator[None]:
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)


def test_a_library_that_nobody_configured_leaves_standard_output_alone() -> None:
    done = run("from keystead.telemetry import logger; logger('engine').warning('connection lost', reason='cut')")
    assert done.stdout == ""
    assert done.stderr == "connection lost reason='cut'\n"


def test_lines_below_warning_are_silent_until_logging_is_configured() -> None:
    done = run("from keystead.telemetry import logger; logger('engine').info('connected')")
    assert (done.stdout, done.stderr) == ("", "")


def test_unconfigured_lines_reach_the_standard_logger_of_the_room(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "keystead"):
        logger("engine").debug("connected", host="a")
        try:
            raise ValueError("broken")
        except ValueError:
            logger("jobs").exception("job failed", job="x")
    assert [(each.name, each.levelname, each.getMessage()) for each in caplog.records] == [
        ("keystead.engine", "DEBUG", "connected host='a'"), ("keystead.jobs", "ERROR", "job failed job='x'"),
    ]  # fmt: skip
    assert caplog.records[1].exc_info is not None
    assert caplog.records[0].pathname == __file__


def test_configured_lines_are_json_on_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    log = logger("engine")
    configure_logging("info", "json")
    log.debug("too quiet")
    log.warning("connection lost", reason="cut")
    captured = capfd.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    written = json.loads(line)
    assert written.pop("timestamp").endswith("Z")
    assert written == {"event": "connection lost", "level": "warning", "room": "engine", "reason": "cut"}


def test_counts_add_up_by_label_and_gauges_are_asked_when_someone_looks() -> None:
    counts = Counts()
    counts.describe("lost", "answers lost")
    counts.add("lost", node="a")
    counts.add("lost", 2, node="a")
    remove = counts.gauge("waiting", lambda: 7.0)
    assert counts.value("lost", node="a") == 3
    assert counts.value("lost", node="b") == 0
    assert [(each.name, each.help, each.kind, each.value) for each in counts.samples()] == [
        ("lost", "answers lost", "counter", 3), ("waiting", "waiting", "gauge", 7.0),
    ]  # fmt: skip
    remove()
    assert [each.name for each in counts.samples()] == ["lost"]

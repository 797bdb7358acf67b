"""Counts are exact, and a library's log lines never reach the standard output."""

import logging
import subprocess
import sys

import pytest

from keystead.telemetry import Counts, LogRing, _Foreign, log_lines, logger


def test_counters_grow_by_label() -> None:
    counts = Counts()
    counts.describe("lost", "things that were lost")
    counts.add("lost")
    counts.add("lost", 2, where="here")
    counts.add("lost", where="here")
    assert counts.value("lost") == 1
    assert counts.value("lost", where="here") == 3
    samples = {(sample.name, sample.labels): sample for sample in counts.samples()}
    assert samples["lost", (("where", "here"),)].value == 3
    assert samples["lost", ()].help == "things that were lost"


def test_a_gauge_is_read_when_someone_looks_and_goes_when_removed() -> None:
    counts, level = Counts(), [1.0]
    remove = counts.gauge("level", lambda: level[0])
    level[0] = 5
    assert [sample.value for sample in counts.samples()] == [5]
    remove()
    assert list(counts.samples()) == []


def test_removing_an_old_gauge_leaves_its_successor() -> None:
    counts = Counts()
    remove_first = counts.gauge("level", lambda: 1)
    counts.gauge("level", lambda: 2)
    remove_first()
    assert [sample.value for sample in counts.samples()] == [2]


def test_an_unconfigured_library_logs_as_libraries_do(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="keystead.engine"):
        logger("engine").warning("connection lost", reason="gone")
    assert caplog.messages == ["connection lost reason='gone'"]


def test_nothing_reaches_standard_output_and_structlog_is_not_even_imported() -> None:
    program = (
        "import sys\nfrom keystead.telemetry import logger\nlogger('engine').warning('lost', key='k')\n"
        "assert 'structlog' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert "lost key='k'" in done.stderr


def test_configured_lines_are_json_on_standard_error() -> None:
    program = (
        "from keystead.telemetry import configure_logging, logger\nconfigure_logging('info', 'json')\n"
        "logger('engine').info('up', port=1)\nlogger('engine').debug('noise')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert '"event": "up"' in done.stderr and '"room": "engine"' in done.stderr and "noise" not in done.stderr


def test_the_last_lines_are_kept_and_no_more_than_so_many() -> None:
    ring = LogRing(kept=3)
    for number in range(10):
        ring.add(logging.INFO, "jobs", f"event {number}", {"queue": "mail", "amount": number})
    lines = ring.after()
    assert [line.event for line in lines] == ["event 7", "event 8", "event 9"]
    assert [line.number for line in ring.after(lines[1].number)] == [10]
    assert lines[0].fields == {"queue": "mail", "amount": "7"} and lines[0].level == "info"


def test_a_line_is_kept_with_its_exception_and_request_and_without_personal_data() -> None:
    import structlog

    log_lines.clear()
    with structlog.contextvars.bound_contextvars(request_id="req_1"):
        try:
            raise ValueError("no room for ann@example.com")
        except ValueError:
            logger("edge").exception("request failed", number="+14155550123", path="/a+b")
    (line,) = log_lines.after()
    assert (line.room, line.level, line.fields["request_id"], line.fields["path"]) == ("edge", "error", "req_1", "/a+b")
    assert line.fields["exception"] == "ValueError" and line.fields["number"] == "•••", "foreign words are not kept"
    logger("edge").debug("too small to keep")
    assert len(log_lines.after()) == 1


def test_lines_of_other_libraries_are_written_as_ours_are() -> None:
    program = (
        "import logging\nfrom keystead.telemetry import configure_logging\nconfigure_logging('info', 'json')\n"
        "try:\n    raise ValueError('Grace said hello')\n"
        "except ValueError:\n    logging.getLogger('uvicorn.error').exception('it broke for ann@example.com\\nGrace')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert '"room": "uvicorn.error"' in done.stderr and "ValueError" in done.stderr
    assert "ann@" not in done.stderr and "Grace" not in done.stderr


def test_a_long_line_of_another_library_is_not_cut_through_an_address() -> None:
    log_lines.clear()
    words = "x " * 195 + "ann.lovelace@example.com"
    _Foreign().emit(logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, words, (), None))
    assert "ann" not in log_lines.after()[-1].event


def test_lines_that_a_demonstration_expects_are_kept_and_not_written() -> None:
    program = (
        "from keystead.telemetry import configure_logging, log_lines, logger\n"
        "configure_logging('info', 'json', expected=lambda line: line.get('job') == 'demo.fails')\n"
        "logger('jobs').error('job failed', job='demo.fails')\nlogger('jobs').error('job failed', job='shop.fails')\n"
        "print([line.fields['job'] for line in log_lines.after()])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "shop.fails" in done.stderr and "demo.fails" not in done.stderr
    assert done.stdout == "['demo.fails', 'shop.fails']\n"
